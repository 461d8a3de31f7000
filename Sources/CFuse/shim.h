#pragma once
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <sys/socket.h>

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

/// `fuse_reply_data` of a range of an open file: spliced into the device where the kernel can.
static inline int httpfs_reply_file_range(
    fuse_req_t request, int descriptor, off_t offset, size_t byteCount) {
  struct fuse_bufvec vector = FUSE_BUFVEC_INIT(byteCount);
  vector.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
  vector.buf[0].fd = descriptor;
  vector.buf[0].pos = offset;
  return fuse_reply_data(request, &vector, FUSE_BUF_SPLICE_MOVE);
}

/// Receives one descriptor that the peer sends over a Unix socket (SCM_RIGHTS); the macros that walk
/// a control message cannot be imported. Returns the descriptor, close-on-exec, or -1.
static inline int httpfs_receive_descriptor(int socket) {
  char byte;
  struct iovec part = {&byte, 1};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1,
      .msg_control = &control, .msg_controllen = sizeof control};
  ssize_t count;
  do {
    count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  struct cmsghdr *header = count > 0 ? CMSG_FIRSTHDR(&message) : NULL;
  if (!header || header->cmsg_type != SCM_RIGHTS || header->cmsg_len != CMSG_LEN(sizeof(int)))
    return -1;
  int descriptor;
  memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
  return descriptor;
}
