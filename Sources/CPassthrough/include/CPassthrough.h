#pragma once
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <stdbool.h>

// Kernel passthrough (Linux 6.9 and later) with a libfuse that does not support it.
//
// libfuse 3.14 negotiates and replies with structures in which the fields of passthrough are
// padding. These functions stand between libfuse and the device and fill the padding in. They also
// see what libfuse does not report: that it has sent an error instead of a file's bytes.

/// Installs the functions between `session`, which must be mounted, and its device. If `offers`
/// is true, the reply to INIT offers passthrough. Returns 0, or a negated errno.
int httpfs_passthrough_install(struct fuse_session *session, bool offers);

/// Closes the device of a session whose loop has ended. Later replies are dropped. Returns whether
/// the kernel had already ended the connection by an unmount or an abort.
bool httpfs_session_close(struct fuse_session *session);

/// Replies like `fuse_reply_data` with a range of an open file, spliced into the device if the
/// kernel can.
///
/// If the file cannot be read, the reply is an error. `on_error` is called before the reply is
/// sent, because the kernel repeats the request for each page immediately.
void httpfs_reply_file_range(
    fuse_req_t request, int descriptor, off_t offset, size_t byte_count,
    void (*on_error)(void *context), void *context);

/// Whether this process may enlarge a pipe to so many bytes, as libfuse does to splice a reply.
bool httpfs_pipe_holds(int byte_count);

/// Replies like `fuse_reply_open`; reads of the handle then go to the file behind `backing_id`.
int httpfs_passthrough_reply_open(
    fuse_req_t request, const struct fuse_file_info *info, int backing_id);

/// Registers an open file with the kernel as a backing file.
/// Returns its id, above 0, or a negated errno.
int httpfs_passthrough_open_backing(struct fuse_session *session, int descriptor);

/// Removes a registration. Handles that use it keep the file open themselves.
void httpfs_passthrough_close_backing(struct fuse_session *session, int backing_id);
