package import CLinux
package import Glibc

/// Reads and changes the attributes of files.
extension SystemCalls {
  /// `fstat(2)`.
  package static func status(_ descriptor: CInt) throws(ErrorNumber) -> FileMetadata {
    var status = stat()
    _ = try checked { Glibc.fstat(descriptor, &status) }
    return FileMetadata(status)
  }

  /// `fstatat(2)` with `AT_SYMLINK_NOFOLLOW`.
  package static func status(_ name: String, in directory: CInt) throws(ErrorNumber) -> FileMetadata
  {
    var status = stat()
    _ = try checked { Glibc.fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
    return FileMetadata(status)
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

  /// A stamp that later shows whether an open file was changed (`statx(2)`); nil if the
  /// system cannot show it.
  package static func stamp(_ descriptor: CInt) -> FileFingerprint? {
    var raw = httpfs_file_stamp()
    guard httpfs_get_file_stamp(descriptor, &raw) == 0 else { return nil }
    return FileFingerprint(
      mount: raw.mount, device: raw.device, inode: raw.inode, byteCount: raw.byte_count,
      modified: .seconds(raw.modified_seconds) + .nanoseconds(raw.modified_nanoseconds),
      changed: .seconds(raw.changed_seconds) + .nanoseconds(raw.changed_nanoseconds))
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

  /// `futimens(3)`: sets the modification time to seconds since 1970, and leaves the access time.
  package static func setModificationTime(
    _ descriptor: Int32, to seconds: Int64
  ) throws(ErrorNumber) {
    // UTIME_OMIT, a macro that Swift does not import.
    let omitted = (1 << 30) - 2
    let times = [
      timespec(tv_sec: 0, tv_nsec: omitted), timespec(tv_sec: Int(seconds), tv_nsec: 0),
    ]
    _ = try checked { Glibc.futimens(descriptor, times) }
  }

  /// `utimensat(2)`: sets both times of a file to now; follows no link in its place.
  package static func touch(_ name: String, in directory: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.utimensat(directory, name, nil, AT_SYMLINK_NOFOLLOW) }
  }
}
