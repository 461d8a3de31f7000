#pragma once
// System calls that glibc declares only for _GNU_SOURCE. Swift's Glibc module is built without it.
#include <linux/falloc.h>
#include <linux/magic.h>
#include <linux/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

/// Opens a file again, to read its disk and not the page cache (`open(2)` with `O_DIRECT`).
static inline int httpfs_open_directly(const char *path) {
  return open(path, O_RDONLY | O_CLOEXEC | __O_DIRECT);
}

/// Reads names of an open directory (`getdents64(2)`), without a stream of its own.
static inline long httpfs_read_directory(int descriptor, void *buffer, unsigned long byte_count) {
  return syscall(SYS_getdents64, descriptor, buffer, byte_count);
}

/// When the open file was created, in nanoseconds since 1970 (`statx(2)`); 0 if its file system
/// does not record that.
static inline int64_t httpfs_birth_time(int descriptor) {
  struct statx status;
  const int empty_path = 0x1000;  // AT_EMPTY_PATH
  if (syscall(SYS_statx, descriptor, "", empty_path, STATX_BTIME, &status) != 0) return 0;
  if (!(status.stx_mask & STATX_BTIME)) return 0;
  return status.stx_btime.tv_sec * 1000000000LL + status.stx_btime.tv_nsec;
}

/// Whether reads of the open file with `O_DIRECT` bypass the page cache (`statx(2)`, since Linux
/// 6.1).
static inline int httpfs_has_direct_reads(int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx status;
  const int empty_path = 0x1000;  // AT_EMPTY_PATH
  if (syscall(SYS_statx, descriptor, "", empty_path, STATX_DIOALIGN, &status) != 0) return 0;
  return (status.stx_mask & STATX_DIOALIGN) && status.stx_dio_mem_align != 0;
#else
  (void)descriptor;
  return 0;
#endif
}

/// Shows whether a file was changed. Times are seconds and nanoseconds since 1970.
struct httpfs_file_stamp {
  /// Identifies a mount of a file system. Linux does not reuse it before the system restarts.
  uint64_t mount;
  uint64_t device;
  uint64_t inode;
  int64_t byte_count;
  int64_t modified_seconds;
  int64_t modified_nanoseconds;
  int64_t changed_seconds;
  int64_t changed_nanoseconds;
};

/// Reads the stamp of an open file (`statx(2)`). Returns −1 on failure, and before Linux 6.8, which
/// does not distinguish mounts.
static inline int httpfs_get_file_stamp(int descriptor, struct httpfs_file_stamp *stamp) {
  struct statx status;
  const int empty_path = 0x1000;            // AT_EMPTY_PATH
  const unsigned unique_mount_id = 0x4000;  // STATX_MNT_ID_UNIQUE, which older headers do not have
  const unsigned wanted = STATX_INO | STATX_SIZE | STATX_MTIME | STATX_CTIME | unique_mount_id;
  if (syscall(SYS_statx, descriptor, "", empty_path, wanted, &status) != 0) return -1;
  if ((status.stx_mask & wanted) != wanted) return -1;
  stamp->mount = status.stx_mnt_id;
  stamp->device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
  stamp->inode = status.stx_ino;
  stamp->byte_count = (int64_t)status.stx_size;
  stamp->modified_seconds = status.stx_mtime.tv_sec;
  stamp->modified_nanoseconds = status.stx_mtime.tv_nsec;
  stamp->changed_seconds = status.stx_ctime.tv_sec;
  stamp->changed_nanoseconds = status.stx_ctime.tv_nsec;
  return 0;
}

/// Whether the file system of an open file updates the change time with every change
/// (`fstatfs(2)`). That holds if only this kernel writes to it: not for network file systems and
/// not for those of other processes.
static inline int httpfs_keeps_change_times(int descriptor) {
  struct statfs status;
  if (fstatfs(descriptor, &status) != 0) return 0;
  switch ((unsigned long)status.f_type) {
    case EXT4_SUPER_MAGIC:  // and ext2 and ext3
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case TMPFS_MAGIC:
      return 1;
    default:
      return 0;
  }
}

/// Starts writing the dirty pages of a range to the disk, without waiting for it
/// (`sync_file_range(2)` with `SYNC_FILE_RANGE_WRITE`).
static inline int httpfs_start_writeback(int descriptor, int64_t offset, int64_t byte_count) {
  return (int)syscall(SYS_sync_file_range, descriptor, offset, byte_count, 2);
}

/// Asks whether the kernel has failed to write any page of an open file since the last such
/// question, or since the file was opened. This call and fdatasync(2) both count as a question.
/// Returns −1 once for each failure.
///
/// `sync_file_range(2)` waits for the pages of the range and then checks the errors of the whole
/// file. No file has a page at this offset, so the call never waits.
static inline int httpfs_check_writeback(int descriptor) {
  const int64_t no_page = INT64_C(1) << 62;
  return (int)syscall(SYS_sync_file_range, descriptor, no_page, (int64_t)1, 1u);
}

/// Creates a nameless file in memory (`memfd_create(2)` with `MFD_CLOEXEC`); −1 on failure.
static inline int httpfs_memory_file(const char *label) {
  return (int)syscall(SYS_memfd_create, label, 1u);
}

/// Frees the blocks of a range, which then reads as zeros (`fallocate(2)` with
/// `FALLOC_FL_PUNCH_HOLE`); −1 on failure.
static inline int httpfs_punch_hole(int descriptor, int64_t offset, int64_t byte_count) {
  return (int)syscall(
      SYS_fallocate, descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, byte_count);
}

/// The offset of the first data at or after an offset (`lseek(2)` with `SEEK_DATA`); −1 on failure.
static inline int64_t httpfs_first_data(int descriptor, int64_t offset) {
  // SEEK_DATA, which is declared only for _GNU_SOURCE.
  return (int64_t)lseek(descriptor, (off_t)offset, 3);
}

/// The magic number of the file system at a path (`statfs(2)`); 0 on failure.
static inline uint32_t httpfs_file_system_type(const char *path) {
  struct statfs status;
  return statfs(path, &status) == 0 ? (uint32_t)status.f_type : 0;
}

int pipe2(int ends[2], int flags);

/// Creates a pipe whose ends child processes do not inherit (`pipe2(2)` with `O_CLOEXEC`).
static inline int httpfs_pipe(int ends[2]) { return pipe2(ends, O_CLOEXEC); }

int renameat2(int old_directory, const char *old_name, int new_directory, const char *new_name,
              unsigned int flags);

/// Renames a file within one directory. Fails with `EEXIST` if the new name is taken
/// (`renameat2(2)` with `RENAME_NOREPLACE`).
static inline int httpfs_rename_to_free_name(int directory, const char *name, const char *new_name) {
  return renameat2(directory, name, directory, new_name, 1u);
}

/// Exchanges the names of two files of one directory (`renameat2(2)` with `RENAME_EXCHANGE`).
static inline int httpfs_exchange_names(int directory, const char *one, const char *other) {
  return renameat2(directory, one, directory, other, 2u);
}

/// Whether the file system of an open file keeps it in memory only (`fstatfs(2)`).
static inline int httpfs_is_in_memory(int descriptor) {
  struct statfs status;
  return fstatfs(descriptor, &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

/// Whether an open directory belongs to `/proc` (`fstatfs(2)`).
static inline int httpfs_is_of_proc(int directory) {
  struct statfs status;
  return fstatfs(directory, &status) == 0 && status.f_type == PROC_SUPER_MAGIC;
}

/// The text and the owner of a symbolic link. Both belong to the same link, even if its name
/// changes meanwhile. Returns the length of the text, or −1 if `name` is not a link (`EINVAL`) or
/// does not exist.
static inline long httpfs_read_link(
    int directory, const char *name, char *text, unsigned long size, uint32_t *owner) {
  const int path_only = 010000000;  // O_PATH
  int link = openat(directory, name, path_only | O_NOFOLLOW | O_CLOEXEC);
  if (link < 0) return -1;
  struct stat status;
  long length = fstat(link, &status);
  if (length == 0 && (status.st_mode & S_IFMT) != S_IFLNK) {
    errno = EINVAL;
    length = -1;
  }
  if (length == 0) {
    *owner = status.st_uid;
    length = readlinkat(link, "", text, size);
  }
  int number = errno;
  close(link);
  errno = number;
  return length;
}
