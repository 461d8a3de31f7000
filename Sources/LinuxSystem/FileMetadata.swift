package import CLinux
package import Glibc

/// The fields of `fstat(2)` that a cache needs.
package struct FileMetadata {
  package let byteCount: Int64
  /// The bytes that the file occupies on disk (`st_blocks` × 512).
  package let allocatedByteCount: Int64
  package let owner: uid_t
  package let group: gid_t
  /// The permission bits alone.
  package let permissions: mode_t
  package let isRegularFile: Bool
  package let isDirectory: Bool
  package let isSymbolicLink: Bool
  /// How many names the file has.
  package let linkCount: Int
  /// Unique among the system's files while this one is open.
  package let identity: Identity
  /// Seconds and nanoseconds of the last modification.
  package let modified: (seconds: Int, nanoseconds: Int)

  /// A file's device and inode number.
  package struct Identity: Hashable, Sendable {
    let device: dev_t
    package let inode: ino_t
  }

  package init(_ status: stat) {
    identity = Identity(device: status.st_dev, inode: status.st_ino)
    byteCount = Int64(status.st_size)
    // A file system may report any number. No file occupies more than 8 PiB.
    allocatedByteCount = max(0, min(Int64(status.st_blocks), 1 << 44)) * 512
    owner = status.st_uid
    group = status.st_gid
    permissions = status.st_mode & 0o7777
    isRegularFile = status.st_mode & S_IFMT == S_IFREG
    isDirectory = status.st_mode & S_IFMT == S_IFDIR
    isSymbolicLink = status.st_mode & S_IFMT == S_IFLNK
    linkCount = Int(status.st_nlink)
    modified = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }

  /// Whether only this user and root can have written the file or can write it: a regular file that
  /// belongs to this user, gives others no write permission, and has one name.
  package var isOwnAlone: Bool {
    isRegularFile && owner == geteuid() && permissions & 0o022 == 0
      && linkCount == 1
  }

  /// Whether every user may create names in a directory, and remove only their own.
  package var isSharedAndSticky: Bool { isDirectory && permissions & 0o1002 == 0o1002 }
}
