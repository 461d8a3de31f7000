package import CLinux
package import Glibc

/// Tells what files and file systems are, and changes what files say of themselves.
extension SystemCalls {
  /// The fields of `fstat(2)` that a cache needs.
  package struct Status {
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
      allocatedByteCount = Int64(status.st_blocks) * 512
      owner = status.st_uid
      group = status.st_gid
      permissions = status.st_mode & 0o7777
      isRegularFile = status.st_mode & S_IFMT == S_IFREG
      isDirectory = status.st_mode & S_IFMT == S_IFDIR
      isSymbolicLink = status.st_mode & S_IFMT == S_IFLNK
      linkCount = Int(status.st_nlink)
      modified = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
  }

  /// `fstat(2)`.
  package static func status(_ descriptor: CInt) throws(ErrorNumber) -> Status {
    var status = stat()
    _ = try checked { Glibc.fstat(descriptor, &status) }
    return Status(status)
  }

  /// `fstatat(2)` with `AT_SYMLINK_NOFOLLOW`.
  package static func status(_ name: String, in directory: CInt) throws(ErrorNumber) -> Status {
    var status = stat()
    _ = try checked { Glibc.fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
    return Status(status)
  }

  /// Whether `name` refers to an open file (`fstat(2)`, `fstatat(2)`).
  package static func isSameFile(
    _ descriptor: CInt, _ name: String, in directory: CInt
  ) throws(ErrorNumber) -> Bool {
    let open = try status(descriptor)
    return open.identity == (try? status(name, in: directory))?.identity
  }

  /// Whether `name` is a symbolic link (`fstatat(2)` with `AT_SYMLINK_NOFOLLOW`).
  package static func isSymbolicLink(_ name: String, in directory: CInt) throws(ErrorNumber) -> Bool
  {
    var status = stat()
    _ = try checked { Glibc.fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
    return status.st_mode & S_IFMT == S_IFLNK
  }

  /// A stamp that later shows whether an open file was changed (`statx(2)`); nil if nothing shows
  /// it.
  package static func stamp(_ descriptor: CInt) -> FileStamp? {
    var raw = httpfs_file_stamp()
    guard httpfs_get_file_stamp(descriptor, &raw) == 0 else { return nil }
    return FileStamp(
      mount: raw.mount, device: raw.device, inode: raw.inode, byteCount: raw.byte_count,
      modified: .seconds(raw.modified_seconds) + .nanoseconds(raw.modified_nanoseconds),
      changed: .seconds(raw.changed_seconds) + .nanoseconds(raw.changed_nanoseconds))
  }

  /// Whether the file system of a descriptor maintains the times that a ``FileStamp`` needs
  /// (`fstatfs(2)`).
  package static func keepsChangeTimes(_ descriptor: CInt) -> Bool {
    httpfs_keeps_change_times(descriptor) != 0
  }

  /// A number unique to an open file, made of its inode number and its time of creation.
  ///
  /// A later file with the same inode number gets another number.
  package static func identity(_ descriptor: CInt) throws(ErrorNumber) -> UInt64 {
    var status = stat()
    _ = try checked { Glibc.fstat(descriptor, &status) }
    let birth = UInt64(bitPattern: httpfs_birth_time(descriptor))
    return UInt64(status.st_ino) &* 0x9E37_79B9_7F4A_7C15 ^ birth
  }

  /// The block size of the file system of a descriptor, in bytes (`fstatvfs(3)`).
  package static func blockByteCount(_ descriptor: CInt) throws(ErrorNumber) -> Int64 {
    var status = statvfs()
    _ = try checked { Glibc.fstatvfs(descriptor, &status) }
    return Int64(clamping: status.f_bsize)
  }

  /// The size of a descriptor's file system in bytes, and how many of them this user can use
  /// (`fstatvfs(3)`).
  package static func space(_ descriptor: CInt) -> (total: Int64, available: Int64)? {
    var status = statvfs()
    guard fstatvfs(descriptor, &status) == 0 else { return nil }
    let unit = UInt64(status.f_frsize)
    let total = UInt64(status.f_blocks).multipliedReportingOverflow(by: unit)
    let available = UInt64(status.f_bavail).multipliedReportingOverflow(by: unit)
    guard !total.overflow, !available.overflow else { return nil }
    return (Int64(clamping: total.partialValue), Int64(clamping: available.partialValue))
  }

  /// Throws unless files can be created in a directory (`faccessat(2)` with the effective user).
  package static func checkWritable(_ directory: CInt) throws(ErrorNumber) {
    _ = try checked { faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) }
  }

  /// `fchmod(2)`.
  package static func setPermissions(
    _ descriptor: CInt, to permissions: mode_t
  ) throws(ErrorNumber) {
    _ = try checked { Glibc.fchmod(descriptor, permissions) }
  }

  /// `futimens(3)`: sets both times to now.
  package static func touch(_ descriptor: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.futimens(descriptor, nil) }
  }
}
