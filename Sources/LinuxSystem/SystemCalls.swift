package import CLinux
internal import Glibc

/// The only door to the operating system: one thin function per call.
///
/// Calls are repeated if a signal interrupts them. Transfers are repeated until they are complete.
/// With a directory, a relative `name` must be a single component, because `O_NOFOLLOW` guards only
/// the last component.
package enum SystemCalls {
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

  /// Runs a call that returns −1 and sets `errno` on failure; repeats it after a signal.
  @inline(__always)
  static func checked<Value: BinaryInteger>(
    _ call: () -> Value
  ) throws(ErrorNumber) -> Value {
    while true {
      let value = call()
      if value != -1 { return value }
      let number = errno
      if number != EINTR { throw ErrorNumber(rawValue: number) }
    }
  }

  // MARK: Descriptors

  /// `openat(2)` with `O_CLOEXEC | O_NOFOLLOW`; `EINVAL` if a directory is given and the name is a
  /// path, because links before its last component would be followed.
  package static func open(
    _ name: String, in directory: CInt, flags: CInt, permissions: mode_t = 0
  ) throws(ErrorNumber) -> Descriptor {
    guard directory == AT_FDCWD || !name.utf8.contains(UInt8(ascii: "/")) else {
      throw ErrorNumber(rawValue: EINVAL)
    }
    let all = flags | O_CLOEXEC | O_NOFOLLOW
    return Descriptor(try checked { Glibc.openat(directory, name, all, permissions) })
  }

  /// Creates a file for reading and writing, with mode 0600 by default.
  ///
  /// The file must not exist yet.
  package static func createFile(
    _ name: String, in directory: CInt, permissions: mode_t = 0o600
  ) throws(ErrorNumber) -> Descriptor {
    try open(name, in: directory, flags: O_RDWR | O_CREAT | O_EXCL, permissions: permissions)
  }

  /// Opens a file for reading and writing; creates it with mode 0600 if it is missing.
  package static func openOrCreateFile(
    _ name: String, in directory: CInt
  ) throws(ErrorNumber) -> Descriptor {
    try open(name, in: directory, flags: O_RDWR | O_CREAT | O_NONBLOCK, permissions: 0o600)
  }

  /// Opens a file for reading and, unless the file system is read-only, writing.
  ///
  /// Never waits, even for a FIFO.
  package static func openFile(_ name: String, in directory: CInt) throws(ErrorNumber) -> Descriptor
  {
    do throws(ErrorNumber) {
      return try open(name, in: directory, flags: O_RDWR | O_NONBLOCK)
    } catch {
      guard error.rawValue == EROFS else { throw error }
      return try open(name, in: directory, flags: O_RDONLY | O_NONBLOCK)
    }
  }

  /// Opens a directory.
  package static func openDirectory(
    _ name: String, in directory: CInt
  ) throws(ErrorNumber) -> Descriptor {
    try open(name, in: directory, flags: O_RDONLY | O_DIRECTORY)
  }

  /// Opens the directory at `path` (`open(2)`) and follows symbolic links: for places that a user
  /// names.
  ///
  /// - Parameters:
  ///   - path: absolute, or relative to the working directory.
  ///   - creatingMissing: whether to create missing directories (`mkdir(2)`).
  /// - Returns: its descriptor.
  /// - Throws: the error of the failed call.
  package static func openDirectory(
    atPath path: String, creatingMissing: Bool
  ) throws(ErrorNumber) -> Descriptor {
    do throws(ErrorNumber) {
      return Descriptor(
        try checked { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
    } catch {
      guard creatingMissing, error.rawValue == ENOENT else { throw error }
    }
    let slash = UInt8(ascii: "/")
    var made = path.utf8.first == slash ? "/" : ""
    for part in path.utf8.split(separator: slash) {
      made += String(decoding: part, as: UTF8.self)
      do throws(ErrorNumber) {
        _ = try checked { mkdir(made, 0o777) }
      } catch {
        guard error.rawValue == EEXIST else { throw error }
      }
      made += "/"
    }
    return Descriptor(try checked { Glibc.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
  }

  /// Opens a file that a user names, for reading; never waits, even for a FIFO.
  package static func openForReading(atPath path: String) throws(ErrorNumber) -> Descriptor {
    Descriptor(try checked { Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) })
  }

  /// Throws unless files can be created in a directory (`faccessat(2)` with the effective user).
  package static func checkWritable(_ directory: CInt) throws(ErrorNumber) {
    _ = try checked { faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) }
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

  /// `close(2)`.
  ///
  /// Not repeated after a signal, because Linux has already released the descriptor.
  package static func close(_ descriptor: CInt) {
    _ = Glibc.close(descriptor)
  }

  /// How many descriptors this process may have (`getrlimit(2)`, `RLIMIT_NOFILE`).
  package static var descriptorLimit: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_cur)
  }

  /// The lowest number that a new descriptor would get (`fcntl(2)`, `F_DUPFD_CLOEXEC`).
  ///
  /// Linux assigns the lowest free number, so about this many descriptors are in use.
  package static func lowestFreeDescriptor(_ descriptor: CInt) -> Int? {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return nil }
    close(copy)
    return Int(copy)
  }

  /// `flock(2)` with `LOCK_EX | LOCK_NB`; false if another descriptor holds the lock.
  package static func lockExclusively(_ descriptor: CInt) throws(ErrorNumber) -> Bool {
    do throws(ErrorNumber) {
      _ = try checked { flock(descriptor, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.rawValue == EWOULDBLOCK { return false }
      throw error
    }
  }

  /// `flock(2)` with `LOCK_UN`.
  package static func unlock(_ descriptor: CInt) { _ = flock(descriptor, LOCK_UN) }

  // MARK: Transfers

  /// `pread(2)` until `buffer` is full or the file ends; returns the number of bytes read.
  package static func read(
    _ descriptor: CInt, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(ErrorNumber) -> Int {
    var done = 0
    while done < buffer.count {
      let count = try checked {
        Glibc.pread(
          descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done,
          off_t(offset) + off_t(done))
      }
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// `pread(2)` until `bytes` is full or the file ends; returns the number of bytes read.
  package static func read(
    _ descriptor: CInt, into bytes: inout [UInt8], at offset: Int64
  ) throws(ErrorNumber) -> Int {
    try bytes.withUnsafeMutableBytes { buffer in
      Result { () throws(ErrorNumber) in try read(descriptor, into: buffer, at: offset) }
    }.get()
  }

  /// `pwrite(2)` until every byte is written.
  package static func write(
    _ descriptor: CInt, _ bytes: [UInt8], at offset: Int64
  ) throws(ErrorNumber) {
    try bytes.withUnsafeBytes { buffer in
      Result { () throws(ErrorNumber) in try write(descriptor, buffer, at: offset) }
    }.get()
  }

  /// `pwrite(2)` until every byte is written.
  @inline(__always)
  package static func write(
    _ descriptor: CInt, _ bytes: UnsafeRawBufferPointer, at offset: Int64
  ) throws(ErrorNumber) {
    var done = 0
    while done < bytes.count {
      let count = try checked {
        Glibc.pwrite(
          descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done,
          off_t(offset) + off_t(done))
      }
      // A regular file takes at least one byte or fails. This keeps a broken one from causing a
      // busy loop.
      if count == 0 { throw ErrorNumber(rawValue: EIO) }
      done += count
    }
  }

  /// `ftruncate(2)`.
  package static func truncate(_ descriptor: CInt, to byteCount: Int64) throws(ErrorNumber) {
    _ = try checked { Glibc.ftruncate(descriptor, off_t(byteCount)) }
  }

  /// `fdatasync(2)`.
  ///
  /// Repeat an interrupted call, but never a failed one: the kernel may have dropped the pages that
  /// it could not write.
  package static func syncData(_ descriptor: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.fdatasync(descriptor) }
  }

  /// Throws if the kernel failed to write pages of the file by itself, which it may then drop.
  ///
  /// Each failure is thrown once, here or by the next ``syncData(_:)``.
  ///
  /// Never waits for the disk. Throws nothing if the kernel cannot tell.
  package static func checkWriteback(_ descriptor: CInt) throws(ErrorNumber) {
    do throws(ErrorNumber) {
      _ = try checked { httpfs_check_writeback(descriptor) }
    } catch {
      guard [EIO, ENOSPC, EDQUOT].contains(error.rawValue) else { return }
      throw error
    }
  }

  /// `fsync(2)`.
  package static func sync(_ descriptor: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.fsync(descriptor) }
  }

  /// Creates a file in memory (`memfd_create(2)`).
  package static func createMemoryFile(label: String) throws(ErrorNumber) -> Descriptor {
    Descriptor(try checked { httpfs_memory_file(label) })
  }

  /// Frees the blocks of a range (`fallocate(2)` with `FALLOC_FL_PUNCH_HOLE`).
  package static func punchHole(
    _ descriptor: CInt, _ offset: Int64, byteCount: Int64
  ) throws(ErrorNumber) {
    _ = try checked { httpfs_punch_hole(descriptor, offset, byteCount) }
  }

  /// Asks the kernel to drop the clean pages of a file (`posix_fadvise(2)` with
  /// `POSIX_FADV_DONTNEED`).
  ///
  /// It names the whole file, because the kernel keeps a large folio if only a part of it is named.
  package static func forgetPages(_ descriptor: CInt) {
    _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
  }

  /// The offset of the first data at or after `offset` (`lseek(2)` with `SEEK_DATA`); nil if there
  /// is none.
  ///
  /// Pages in memory count as data, even those of a block that was never written.
  package static func firstData(
    _ descriptor: CInt, from offset: Int64
  ) throws(ErrorNumber) -> Int64? {
    do throws(ErrorNumber) {
      return try checked { httpfs_first_data(descriptor, offset) }
    } catch {
      if error.rawValue == ENXIO { return nil }
      throw error
    }
  }

  // MARK: Metadata

  /// `fstat(2)`.
  package static func status(_ descriptor: CInt) throws(ErrorNumber) -> Status {
    var status = stat()
    _ = try checked { Glibc.fstat(descriptor, &status) }
    return Status(status)
  }

  /// Whether `name` refers to an open file (`fstat(2)`, `fstatat(2)`).
  package static func isSameFile(
    _ descriptor: CInt, _ name: String, in directory: CInt
  ) throws(ErrorNumber) -> Bool {
    var open = stat()
    _ = try checked { Glibc.fstat(descriptor, &open) }
    var named = stat()
    guard fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) == 0 else { return false }
    return open.st_dev == named.st_dev && open.st_ino == named.st_ino
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

  /// The block size of the file system of a descriptor, in bytes (`fstatvfs(3)`).
  package static func blockByteCount(_ descriptor: CInt) throws(ErrorNumber) -> Int64 {
    var status = statvfs()
    _ = try checked { Glibc.fstatvfs(descriptor, &status) }
    return Int64(clamping: status.f_bsize)
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

  /// `fstatat(2)` with `AT_SYMLINK_NOFOLLOW`.
  package static func status(_ name: String, in directory: CInt) throws(ErrorNumber) -> Status {
    var status = stat()
    _ = try checked { Glibc.fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
    return Status(status)
  }

  /// Whether `name` is a symbolic link (`fstatat(2)` with `AT_SYMLINK_NOFOLLOW`).
  package static func isSymbolicLink(_ name: String, in directory: CInt) throws(ErrorNumber) -> Bool
  {
    var status = stat()
    _ = try checked { Glibc.fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) }
    return status.st_mode & S_IFMT == S_IFLNK
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

  // MARK: Directories

  /// `mkdirat(2)`, with mode 0700 by default; false if the name already exists.
  package static func makeDirectory(
    _ name: String, in directory: CInt, permissions: mode_t = 0o700
  ) throws(ErrorNumber) -> Bool {
    do throws(ErrorNumber) {
      _ = try checked { Glibc.mkdirat(directory, name, permissions) }
      return true
    } catch {
      if error.rawValue == EEXIST { return false }
      throw error
    }
  }

  /// `renameat(2)` within one directory.
  package static func rename(
    _ name: String, to newName: String, in directory: CInt
  ) throws(ErrorNumber) {
    _ = try checked { Glibc.renameat(directory, name, directory, newName) }
  }

  /// `unlinkat(2)`.
  package static func unlink(_ name: String, in directory: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.unlinkat(directory, name, 0) }
  }

  /// `unlinkat(2)` with `AT_REMOVEDIR`: removes an empty directory.
  package static func removeDirectory(_ name: String, in directory: CInt) throws(ErrorNumber) {
    _ = try checked { Glibc.unlinkat(directory, name, AT_REMOVEDIR) }
  }

  /// The names in a directory, without `.` and `..` and without names that are not UTF-8
  /// (`fdopendir(3)`, `readdir(3)`).
  package static func names(in directory: CInt) throws(ErrorNumber) -> [String] {
    // Uses a descriptor of its own, because the stream owns it and moves its file offset.
    try names(
      inOwned: checked {
        Glibc.openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
      })
  }

  /// The descriptors that this process has open now (`proc_pid_fd(5)`).
  package static func openDescriptors() throws(ErrorNumber) -> [CInt] {
    let directory = try checked {
      Glibc.open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    }
    return try names(inOwned: directory).compactMap { CInt($0) }.filter { $0 != directory }
  }

  private static func names(inOwned directory: CInt) throws(ErrorNumber) -> [String] {
    guard let stream = fdopendir(directory) else {
      let error = ErrorNumber.last
      close(directory)
      throw error
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw ErrorNumber(rawValue: errno) }
        return names
      }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if let name, name != ".", name != ".." { names.append(name) }
    }
  }

  // MARK: The system

  /// The identifier of the current boot; nil if `/proc` does not have it (`proc_sys_kernel(5)`,
  /// `random/boot_id`).
  package static func bootID() -> String? {
    var text = [UInt8](repeating: 0, count: 64)
    guard
      let file = try? openForReading(atPath: "/proc/sys/kernel/random/boot_id"),
      let count = try? read(file.rawValue, into: &text, at: 0), count > 1
    else { return nil }
    return String(validating: text[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  /// The time of day since the beginning of 1970 in UTC (`clock_gettime(2)`, `CLOCK_REALTIME`).
  package static var timeOfDay: Duration {
    var time = timespec()
    _ = clock_gettime(CLOCK_REALTIME, &time)
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
  }

  // MARK: The process

  /// `geteuid(2)`.
  package static var effectiveUserID: uid_t { geteuid() }

  /// `getpid(2)`.
  package static var processID: CInt { getpid() }

  /// The text of an `errno` value (`strerror_r(3)`).
  package static func text(of number: CInt) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress, strerror_r(number, base, buffer.count) == 0 else {
        return "error \(number)"
      }
      return String(cString: base)
    }
  }
}
