#pragma once
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>

// Function-like macros and versioned names, which Swift cannot import.

/// `fuse_session_loop_mt` is a macro for a versioned symbol.
static inline int httpfs_session_loop(struct fuse_session *session, unsigned maximumThreads) {
  struct fuse_loop_config *config = fuse_loop_cfg_create();
  if (!config) return -ENOMEM;
  fuse_loop_cfg_set_max_threads(config, maximumThreads);
  fuse_loop_cfg_set_idle_threads(config, maximumThreads);
  int result = fuse_session_loop_mt(session, config);
  fuse_loop_cfg_destroy(config);
  return result;
}
