#pragma once
#define FUSE_USE_VERSION 314
#include <fuse_lowlevel.h>
#include <stdbool.h>

// Kernel passthrough (Linux 6.9 and later) with a libfuse that does not know it.
//
// libfuse 3.14 negotiates and answers with structures in which the fields of passthrough are
// padding. These functions stand between libfuse and the device and fill the padding in. There they also
// see what libfuse does not tell: that it has sent an error in the place of a file's bytes.

/// Stands between `session`, which is mounted already, and its device; where it `offers` passthrough, the
/// reply to INIT says so. Returns 0, or a negated errno.
int httpfs_passthrough_install(struct fuse_session *session, bool offers);

/// Closes the device of a session whose loop has ended; what is still sent over it goes nowhere.
/// Returns whether the kernel has ended the connection before: unmounted or aborted it.
bool httpfs_session_close(struct fuse_session *session);

/// `fuse_reply_data` of a range of an open file: spliced into the device where the kernel can.
///
/// Where the file cannot be read the reply is an error; `on_error` is called before it is sent, because the
/// kernel repeats the request for each page at once.
void httpfs_reply_file_range(
    fuse_req_t request, int descriptor, off_t offset, size_t byte_count,
    void (*on_error)(void *context), void *context);

/// As `fuse_reply_open`; reads of the handle go to the file behind `backing_id`.
int httpfs_passthrough_reply_open(
    fuse_req_t request, const struct fuse_file_info *info, int backing_id);

/// Registers an open file with the kernel as a backing file.
/// Returns its id, above 0, or a negated errno.
int httpfs_passthrough_open_backing(struct fuse_session *session, int descriptor);

/// Takes a registration back. Handles that use it keep the file open themselves.
void httpfs_passthrough_close_backing(struct fuse_session *session, int backing_id);
