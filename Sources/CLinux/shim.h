#pragma once
// System calls that glibc declares for _GNU_SOURCE only, which Swift's Glibc module is built without.
#include <linux/falloc.h>
#include <linux/stat.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/// When the open file was created, in nanoseconds since 1970 (`statx(2)`); 0 where its file system
/// does not keep that.
static inline int64_t httpfs_birth_time(int descriptor) {
  struct statx status;
  const int empty_path = 0x1000;  // AT_EMPTY_PATH
  if (syscall(SYS_statx, descriptor, "", empty_path, STATX_BTIME, &status) != 0) return 0;
  if (!(status.stx_mask & STATX_BTIME)) return 0;
  return status.stx_btime.tv_sec * 1000000000LL + status.stx_btime.tv_nsec;
}

/// Starts writing the dirty pages of a range to the disk, without waiting for it
/// (`sync_file_range(2)` with `SYNC_FILE_RANGE_WRITE`).
static inline int httpfs_start_writeback(int descriptor, int64_t offset, int64_t byte_count) {
  return (int)syscall(SYS_sync_file_range, descriptor, offset, byte_count, 2);
}

/// Creates a file that lies in memory and has no name (`memfd_create(2)` with `MFD_CLOEXEC`); −1 on
/// failure.
static inline int httpfs_memory_file(const char *label) {
  return (int)syscall(SYS_memfd_create, label, 1u);
}

/// Gives the blocks of a range back, so that it reads as zeros (`fallocate(2)` with
/// `FALLOC_FL_PUNCH_HOLE`); −1 on failure.
static inline int httpfs_punch_hole(int descriptor, int64_t offset, int64_t byte_count) {
  return (int)syscall(
      SYS_fallocate, descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, byte_count);
}
