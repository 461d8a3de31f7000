#define _GNU_SOURCE
#include "CPassthrough.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

// From the kernel's include/uapi/linux/fuse.h, 7.40; Debian 12's copy is older.
enum {
  out_header_size = 16,
  init_out_size = 64,
  init_out_flags = 12,
  init_out_flags2 = 32,
  init_out_max_stack_depth = 36,
  open_out_size = 16,
  open_out_flags = 8,
  open_out_backing_id = 12,
};
static const uint32_t flag_parallel_dirops = UINT32_C(1) << 18;
static const uint32_t flag_init_ext = UINT32_C(1) << 30;
static const uint32_t flag2_passthrough = UINT32_C(1) << 5;  // bit 37 of both words
static const uint32_t open_keep_cache = UINT32_C(1) << 1;
static const uint32_t open_passthrough = UINT32_C(1) << 7;

struct backing_map {
  int32_t fd;
  uint32_t flags;
  uint64_t padding;
};
#define DEV_IOC_BACKING_OPEN _IOW(229, 1, struct backing_map)
#define DEV_IOC_BACKING_CLOSE _IOW(229, 2, uint32_t)

/// Whether the reply to INIT, the first one of a session, has not been sent yet. A process has one
/// session.
static atomic_bool init_pending;
static atomic_bool offers_passthrough;

/// The backing id to insert into the reply that this thread is sending; 0 for none.
static _Thread_local int32_t reply_backing_id;

/// Called before this thread sends an error instead of a file's bytes.
static _Thread_local void (*reply_error_handler)(void *context);
static _Thread_local void *reply_error_context;

static uint32_t get_word(const unsigned char *bytes, int offset) {
  uint32_t word;
  memcpy(&word, bytes + offset, sizeof word);
  return word;
}

static void put_word(unsigned char *bytes, int offset, uint32_t word) {
  memcpy(bytes + offset, &word, sizeof word);
}

static ssize_t write_reply(int device, struct iovec *parts, int count, void *context) {
  (void)context;
  // The header of each reply holds length, error and request. An interrupted call does not show
  // that the file is unreadable: the program sees the interruption and reads again.
  if (reply_error_handler && parts[0].iov_len == out_header_size) {
    uint32_t error = get_word(parts[0].iov_base, 4);
    if (error != 0 && error != (uint32_t)-EINTR) reply_error_handler(reply_error_context);
  }
  if (count == 2 && parts[0].iov_len == out_header_size) {
    unsigned char body[init_out_size];
    struct iovec patched[2] = {parts[0], {body, parts[1].iov_len}};
    if (parts[1].iov_len == init_out_size && atomic_exchange(&init_pending, false)) {
      memcpy(body, parts[1].iov_base, init_out_size);
      // libfuse 3.14 does not pass this flag on. Without it, one lookup that waits would block the
      // directory.
      uint32_t flags = get_word(body, init_out_flags) | flag_parallel_dirops;
      if (atomic_load(&offers_passthrough)) {
        flags |= flag_init_ext;
        put_word(body, init_out_flags2, get_word(body, init_out_flags2) | flag2_passthrough);
        put_word(body, init_out_max_stack_depth, 1);
      }
      put_word(body, init_out_flags, flags);
      return writev(device, patched, 2);
    }
    if (reply_backing_id > 0 && parts[1].iov_len == open_out_size) {
      memcpy(body, parts[1].iov_base, open_out_size);
      uint32_t flags = get_word(body, open_out_flags);
      put_word(body, open_out_flags, (flags & ~open_keep_cache) | open_passthrough);
      put_word(body, open_out_backing_id, (uint32_t)reply_backing_id);
      return writev(device, patched, 2);
    }
  }
  return writev(device, parts, count);
}

static ssize_t read_request(int device, void *buffer, size_t size, void *context) {
  (void)context;
  return read(device, buffer, size);
}

static ssize_t splice_through(
    int from, off_t *from_offset, int to, off_t *to_offset, size_t size, unsigned flags,
    void *context) {
  (void)context;
  return splice(from, from_offset, to, to_offset, size, flags);
}

/// Replaces the device after a session was closed.
static int null_device = -1;

bool httpfs_session_close(struct fuse_session *session) {
  int device = fuse_session_fd(session);
  struct pollfd request = {.fd = device};
  bool has_ended = poll(&request, 1, 0) == 1 && (request.revents & POLLERR);
  // In one step, so that no other file can take the descriptor's number.
  while (dup3(null_device, device, O_CLOEXEC) < 0 && errno == EINTR) {
  }
  return has_ended;
}

int httpfs_passthrough_install(struct fuse_session *session, bool offers) {
  null_device = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null_device < 0) return -errno;
  const struct fuse_custom_io io = {
      .writev = write_reply,
      .read = read_request,
      .splice_receive = splice_through,
      .splice_send = splice_through,
  };
  atomic_store(&offers_passthrough, offers);
  atomic_store(&init_pending, true);
  return fuse_session_custom_io(session, &io, fuse_session_fd(session));
}

int httpfs_passthrough_reply_open(
    fuse_req_t request, const struct fuse_file_info *info, int backing_id) {
  reply_backing_id = backing_id;
  int result = fuse_reply_open(request, info);
  reply_backing_id = 0;
  return result;
}

void httpfs_reply_file_range(
    fuse_req_t request, int descriptor, off_t offset, size_t byte_count,
    void (*on_error)(void *context), void *context) {
  struct fuse_bufvec vector = FUSE_BUFVEC_INIT(byte_count);
  vector.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
  vector.buf[0].fd = descriptor;
  vector.buf[0].pos = offset;
  // If libfuse cannot read the file, it replies with the error and reports success.
  reply_error_handler = on_error;
  reply_error_context = context;
  fuse_reply_data(request, &vector, 0);
  reply_error_handler = NULL;
}

bool httpfs_pipe_holds(int byte_count) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  bool holds = fcntl(ends[0], F_SETPIPE_SZ, byte_count) >= byte_count;
  close(ends[0]);
  close(ends[1]);
  return holds;
}

int httpfs_passthrough_open_backing(struct fuse_session *session, int descriptor) {
  struct backing_map map = {.fd = descriptor};
  int id = ioctl(fuse_session_fd(session), DEV_IOC_BACKING_OPEN, &map);
  return id >= 0 ? id : -errno;
}

void httpfs_passthrough_close_backing(struct fuse_session *session, int backing_id) {
  uint32_t id = (uint32_t)backing_id;
  ioctl(fuse_session_fd(session), DEV_IOC_BACKING_CLOSE, &id);
}
