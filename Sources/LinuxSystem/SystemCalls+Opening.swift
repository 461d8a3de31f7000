package import CLinux
package import Glibc

/// Opens and creates files and directories, and looks after descriptors.
extension SystemCalls {
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

  /// Creates a file for reading and writing whose name is removed at once (`unlink(2)`).
  package static func createNamelessFile(in directory: String) throws(ErrorNumber) -> Descriptor {
    let path = "\(directory)/httpfs-\(UInt64.random(in: 0 ... .max))"
    let file = try createFile(path, in: AT_FDCWD)
    _ = try checked { Glibc.unlink(path) }
    return file
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

  /// Opens a file that a user names, for reading; never waits, even for a FIFO.
  package static func openForReading(atPath path: String) throws(ErrorNumber) -> Descriptor {
    Descriptor(try checked { Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) })
  }

  /// Opens a file for reading.
  ///
  /// Never waits, even for a FIFO, and follows no link.
  package static func openForReading(
    _ name: String, in directory: CInt
  ) throws(ErrorNumber) -> Descriptor {
    try open(name, in: directory, flags: O_RDONLY | O_NONBLOCK)
  }

  /// Creates a file as ``createFile(_:in:permissions:)`` does, under a name that only the caller
  /// uses.
  ///
  /// Removes the leftover of a killed process under that name.
  package static func createAnew(
    _ name: String, in directory: CInt, permissions: mode_t = 0o600
  ) throws(ErrorNumber) -> Descriptor {
    do throws(ErrorNumber) {
      return try createFile(name, in: directory, permissions: permissions)
    } catch {
      guard error.rawValue == EEXIST else { throw error }
    }
    try unlink(name, in: directory)
    return try createFile(name, in: directory, permissions: permissions)
  }

  /// Opens a directory.
  package static func openDirectory(
    _ name: String, in directory: CInt
  ) throws(ErrorNumber) -> Descriptor {
    try open(name, in: directory, flags: O_RDONLY | O_DIRECTORY)
  }

  /// Opens the directory at `path` (`open(2)`) and follows symbolic links: for paths from a user.
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

  /// Creates a file in memory (`memfd_create(2)`).
  package static func createMemoryFile(label: String) throws(ErrorNumber) -> Descriptor {
    Descriptor(try checked { httpfs_memory_file(label) })
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
}
