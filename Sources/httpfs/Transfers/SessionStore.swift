import CLinux
import Glibc
import LinuxSystem

/// The file of a session.
///
/// One process at a time uses it, replaces it in one step and removes it.
///
/// Its lock is the file that will become the next session, `PATH.httpfs-next`. It is created before
/// anything is read and exists until the end. A process that finds one without a lock takes it over
/// and discards what a killed process has left in it. If another program has meanwhile put a file
/// at the session's path, that file is neither replaced nor removed.
final class SessionStore {
  let path: String
  private let temporary: String
  private static let suffix = ".httpfs-next"
  /// The next session, locked.
  private var next: Int32
  /// The current session file, as far as this process knows; nil if there is none.
  private var current: FileMetadata.Identity?

  /// - Throws: if another process uses the session, or if none can be written there.
  init(path: String) throws(CommandFailure) {
    self.path = path
    temporary = path + Self.suffix
    next = -1
    next = try openNext()
  }

  deinit {
    // Before releasing the lock, which another process may be waiting for.
    if isNext(next) { unlink(temporary) }
    close(next)
  }

  /// Creates the next session and locks it.
  private func openNext() throws(CommandFailure) -> Int32 {
    for _ in 0..<10 {
      let flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC
      let descriptor = open(temporary, flags, 0o600)
      guard descriptor >= 0 else { throw failure(.last) }
      var status = stat()
      guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
        status.st_uid == geteuid(), status.st_mode & 0o077 == 0, status.st_nlink <= 1,
        Self.isOfSession(descriptor)
      else {
        close(descriptor)
        throw CommandFailure(
          "'\(temporary)', which the session needs, is not a private file that you own: remove it")
      }
      guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
        close(descriptor)
        throw CommandFailure("the session '\(path)' is in use by another process")
      }
      // The previous holder may have made it the session, or removed it.
      if isNext(descriptor) { return descriptor }
      close(descriptor)
    }
    throw CommandFailure("the session '\(path)' is in use by another process")
  }

  /// Whether the leftover of an earlier process is a session, or the start of one.
  private static func isOfSession(_ descriptor: Int32) -> Bool {
    let heading = Array(SessionFile.heading.utf8)
    var start = [UInt8](repeating: 0, count: heading.count)
    let count = pread(descriptor, &start, start.count, 0)
    return count >= 0 && heading.starts(with: start.prefix(count))
  }

  private func isNext(_ descriptor: Int32) -> Bool {
    (try? SystemCalls.isSameFile(descriptor, temporary, in: AT_FDCWD)) == true
  }

  /// The identity of the file at a path; nil if it does not exist.
  private static func identity(
    at path: String, followingLinks: Bool
  ) -> FileMetadata.Identity? {
    var status = stat()
    guard (followingLinks ? stat(path, &status) : lstat(path, &status)) == 0 else { return nil }
    return FileMetadata(status).identity
  }

  /// Whether `path` is that of the session or of its next one, under any name of its directory.
  func isUsed(by path: String) -> Bool {
    let (own, other) = (Self.place(self.path), Self.place(path))
    // Most paths have other names, so their directories need not be compared.
    guard other.name == own.name || other.name == own.name + Self.suffix else { return false }
    let directory = Self.identity(at: own.directory, followingLinks: true)
    return directory != nil
      && directory == Self.identity(at: other.directory, followingLinks: true)
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
    let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw CommandFailure("cannot open session '\(path)'", .last)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
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
    // If it is a link, the link is replaced.
    current = Self.identity(at: path, followingLinks: false)
    do throws(ErrorNumber) {
      return try StreamCalls.contents(of: descriptor)
    } catch {
      throw CommandFailure("cannot read session '\(path)'", error)
    }
  }

  /// Replaces the file in one step.
  ///
  /// It is private, because it contains URLs with credentials.
  func write(_ text: String) throws(CommandFailure) {
    if next < 0 { next = try openNext() }
    try fill(next, text)
    try checkCurrent()
    var status = stat()
    guard fstat(next, &status) == 0, isNext(next) else {
      throw failure(ErrorNumber(rawValue: ESTALE))
    }
    guard rename(temporary, path) == 0 else { throw failure(.last) }
    current = FileMetadata(status).identity
    // The file keeps the lock until the next one exists, so that no other process can take it in
    // between.
    let written = next
    next = -1
    defer { close(written) }
    next = try openNext()
  }

  /// Removes the session.
  func remove() throws(CommandFailure) {
    try checkCurrent()
    guard current == nil || unlink(path) == 0 else { throw failure(.last) }
    current = nil
  }

  /// - Throws: if another program has put a different file there.
  private func checkCurrent() throws(CommandFailure) {
    guard Self.identity(at: path, followingLinks: false) != current else { return }
    // If the file is gone, nothing is destroyed.
    if Self.identity(at: path, followingLinks: false) == nil {
      current = nil
      return
    }
    throw CommandFailure(
      "another file has come to be at '\(path)', which was the session: it is left as it is")
  }

  private func fill(_ descriptor: Int32, _ text: String) throws(CommandFailure) {
    guard ftruncate(descriptor, 0) == 0, lseek(descriptor, 0, SEEK_SET) == 0 else {
      throw failure(.last)
    }
    do throws(ErrorNumber) {
      try StreamCalls.write(Array(text.utf8), to: descriptor)
    } catch {
      // On a full disk, it would waste space.
      ftruncate(descriptor, 0)
      throw failure(error)
    }
    guard fsync(descriptor) == 0 else { throw failure(.last) }
  }

  private func failure(_ error: ErrorNumber) -> CommandFailure {
    CommandFailure("cannot write session '\(path)'", error)
  }
}
