import CLinux
import Glibc
import LinuxSystem

/// The file of a session.
///
/// One process at a time uses it, replaces it in one step and removes it.
///
/// Its lock is an empty file, `PATH.httpfs-lock`, which exists under that name from before anything
/// is read until the end. A process that finds one without a lock takes it over, and removes what
/// a killed process has left of the next session, `PATH.httpfs-next`. If another program has
/// meanwhile put a file at the session's path, that file is neither replaced nor removed.
final class SessionStore {
  let path: String
  private let lock: Descriptor
  /// The current session file, as far as this process knows; nil if there is none.
  ///
  /// While it is open, no other file gets its inode number.
  private var current: Descriptor?

  private static let (lockSuffix, nextSuffix) = (".httpfs-lock", ".httpfs-next")
  private var nextPath: String { path + Self.nextSuffix }

  /// - Throws: if another process uses the session, or if none can be written there.
  init(path: String) throws(CommandFailure) {
    self.path = path
    lock = try Self.makeLock(path)
    try removeLeftover()
  }

  deinit {
    // Before releasing the lock, which another process may be waiting for.
    let lockPath = path + Self.lockSuffix
    if Self.isAt(lockPath, lock) { unlink(lockPath) }
  }

  private static func makeLock(_ path: String) throws(CommandFailure) -> Descriptor {
    let lockPath = path + lockSuffix
    for _ in 0..<10 {
      let lock: Descriptor
      do throws(ErrorNumber) {
        lock = try open(lockPath, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK)
      } catch {
        throw CommandFailure("cannot write session '\(path)'", error)
      }
      guard let status = privateStatus(lock), status.st_size == 0 else {
        throw foreignFile(at: lockPath)
      }
      guard flock(lock.rawValue, LOCK_EX | LOCK_NB) == 0 else {
        let error = ErrorNumber.last
        if error.rawValue == EINTR { continue }
        if error.rawValue == EWOULDBLOCK { break }
        // Another process may hold the lock: only its holder removes the file.
        throw CommandFailure("cannot lock session '\(path)'", error)
      }
      // The previous holder may have removed it.
      if isAt(lockPath, lock) { return lock }
    }
    throw CommandFailure("the session '\(path)' is in use by another process")
  }

  /// Removes the next session of a killed process.
  private func removeLeftover() throws(CommandFailure) {
    do throws(ErrorNumber) {
      let leftover = try Self.open(nextPath, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
      guard Self.privateStatus(leftover) != nil, Self.isOfSession(leftover) else {
        throw ErrorNumber(rawValue: EEXIST)
      }
    } catch {
      if error.rawValue == ENOENT { return }
      throw Self.foreignFile(at: nextPath)
    }
    guard unlink(nextPath) == 0 else { throw failure(.last) }
  }

  private static func open(_ path: String, _ flags: CInt) throws(ErrorNumber) -> Descriptor {
    let file = Glibc.open(path, flags | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw .last }
    return Descriptor(file)
  }

  /// The status of a regular file that belongs to this user alone; nil of another.
  private static func privateStatus(_ file: Descriptor) -> stat? {
    var status = stat()
    guard fstat(file.rawValue, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
      status.st_uid == geteuid(), status.st_mode & 0o077 == 0, status.st_nlink <= 1
    else { return nil }
    return status
  }

  private static func foreignFile(at path: String) -> CommandFailure {
    CommandFailure(
      "'\(path)', which the session needs, is not a private file that it has left: remove it")
  }

  /// Whether a file is a session, or the start of one.
  private static func isOfSession(_ file: Descriptor) -> Bool {
    let heading = Array(SessionFile.heading.utf8)
    var start = [UInt8](repeating: 0, count: heading.count)
    let count = pread(file.rawValue, &start, start.count, 0)
    return count >= 0 && heading.starts(with: start.prefix(count))
  }

  /// Whether an open file is at a path; a link there is not followed.
  private static func isAt(_ path: String, _ file: Descriptor) -> Bool {
    (try? SystemCalls.isSameFile(file.rawValue, path, in: AT_FDCWD)) == true
  }

  /// Whether `path` is that of the session, or of a file beside it that the session needs, under
  /// any name of its directory.
  func isUsed(by path: String) -> Bool {
    let (own, other) = (Self.place(self.path), Self.place(path))
    // Most paths have other names, so their directories need not be compared.
    let names = ["", Self.lockSuffix, Self.nextSuffix].map { own.name + $0 }
    guard names.contains(other.name) else { return false }
    let directory = Self.identity(ofDirectory: own.directory)
    return directory != nil && directory == Self.identity(ofDirectory: other.directory)
  }

  private static func identity(ofDirectory path: String) -> FileMetadata.Identity? {
    var status = stat()
    return stat(path, &status) == 0 ? FileMetadata(status).identity : nil
  }

  private static func place(_ path: String) -> (directory: String, name: String) {
    let bytes = Array(path.utf8)
    let start = bytes.lastIndex(of: UInt8(ascii: "/")).map { $0 + 1 } ?? 0
    let directory = String(decoding: bytes[..<start], as: UTF8.self)
    let name = String(decoding: bytes[start...], as: UTF8.self)
    return (directory.isEmpty ? "." : directory, name)
  }

  /// The bytes of the file; nil if it does not exist.
  ///
  /// It determines where files go, so it must belong to this user and must not be writable by
  /// others.
  func contents() throws(CommandFailure) -> [UInt8]? {
    let file: Descriptor
    do throws(ErrorNumber) {
      file = try Self.open(path, O_RDONLY | O_NONBLOCK)
    } catch {
      if error.rawValue == ENOENT { return nil }
      throw CommandFailure("cannot open session '\(path)'", error)
    }
    var status = stat()
    guard fstat(file.rawValue, &status) == 0 else {
      throw CommandFailure("cannot open session '\(path)'", .last)
    }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw CommandFailure("the session '\(path)' is not a regular file; name another")
    }
    guard status.st_uid == geteuid() else {
      throw CommandFailure(
        "the session '\(path)' belongs to another user; name a file of your own")
    }
    guard status.st_mode & 0o022 == 0 else {
      throw CommandFailure(
        "the session '\(path)' may be changed by other users: look through it, then chmod go-w it")
    }
    // The file will be replaced and finally removed, so it must not be a list that a user wrote.
    guard Self.isOfSession(file), status.st_size >= SessionFile.heading.utf8.count else {
      throw CommandFailure(
        "'\(path)' is not a session; fetch a list with -i, and name another file for the session")
    }
    // If it is a link, the link is replaced.
    current = Self.isAt(path, file) ? file : try openLink()
    do throws(ErrorNumber) {
      return try StreamCalls.contents(of: file.rawValue)
    } catch {
      throw CommandFailure("cannot read session '\(path)'", error)
    }
  }

  /// The symbolic link at the path, itself.
  private func openLink() throws(CommandFailure) -> Descriptor {
    let pathOnly: CInt = 0o10_000_000  // O_PATH, which Swift does not import
    do throws(ErrorNumber) {
      let link = try Self.open(path, pathOnly | O_NOFOLLOW)
      // A file that has come there meanwhile is not the one that was read.
      guard try SystemCalls.isSymbolicLink(path, in: AT_FDCWD), Self.isAt(path, link) else {
        throw ErrorNumber(rawValue: ESTALE)
      }
      return link
    } catch {
      throw CommandFailure("cannot open session '\(path)'", error)
    }
  }

  /// Replaces the file in one step.
  ///
  /// It is private, because it contains URLs with credentials.
  func write(_ text: String) throws(CommandFailure) {
    let next: Descriptor
    do throws(ErrorNumber) {
      next = try Self.open(nextPath, O_WRONLY | O_CREAT | O_EXCL)
    } catch {
      throw failure(error)
    }
    do throws(CommandFailure) {
      try fill(next, text)
      try checkCurrent()
      guard Self.isAt(nextPath, next) else { throw failure(ErrorNumber(rawValue: ESTALE)) }
      guard rename(nextPath, path) == 0 else { throw failure(.last) }
    } catch {
      if Self.isAt(nextPath, next) { unlink(nextPath) }
      throw error
    }
    current = next
  }

  /// Removes the session.
  func remove() throws(CommandFailure) {
    try checkCurrent()
    guard current == nil || unlink(path) == 0 else { throw failure(.last) }
    current = nil
  }

  /// - Throws: if another program has put a different file there.
  private func checkCurrent() throws(CommandFailure) {
    if let current, Self.isAt(path, current) { return }
    // If the file is gone, nothing is destroyed.
    var status = stat()
    guard lstat(path, &status) == 0 else {
      current = nil
      return
    }
    throw CommandFailure(
      "another file has come to be at '\(path)', which was the session: it is left as it is")
  }

  private func fill(_ file: Descriptor, _ text: String) throws(CommandFailure) {
    do throws(ErrorNumber) {
      try StreamCalls.write(Array(text.utf8), to: file.rawValue)
    } catch {
      throw failure(error)
    }
    guard fsync(file.rawValue) == 0 else { throw failure(.last) }
  }

  private func failure(_ error: ErrorNumber) -> CommandFailure {
    CommandFailure("cannot write session '\(path)'", error)
  }
}
