import CLinux
import Glibc
import HTTPTransferCore

/// Opens a file that a user names to be written, unless another user has chosen which file that is.
///
/// Links are followed by the rule of a download's destination (`FileLocation`), which is that of
/// `fs.protected_symlinks` (proc_sys_fs(5)): in a directory where everybody may put names, only
/// those of this user and of the directory's owner. What is opened then must be this user's or
/// root's. Devices, and what the process was started with, may be anybody's.
enum OwnFile {
  /// Why a file is not opened: what stands after its name.
  struct Refusal: Error, CustomStringConvertible {
    let description: String

    fileprivate init(_ description: String) { self.description = description }

    /// What the last failed call of this thread has left.
    static var last: Refusal { Refusal(SystemError.last.description) }
  }

  /// As many as the kernel follows (path_resolution(7)).
  private static let linkLimit = 40

  /// `O_PATH` of Linux's fcntl.h, which Swift does not see: a directory need not be readable.
  private static let pathOnly: Int32 = 0o10_000_000

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - path: where it is, absolute or relative to the working directory.
  ///   - flags: those of open(2); with `O_CREAT` a file that is missing is made, and private.
  /// - Returns: its descriptor, which no other program gets.
  /// - Throws: why it is not opened; it then is as it was.
  static func open(_ path: String, _ flags: Int32) throws(Refusal) -> Int32 {
    var path = path
    for _ in 0..<linkLimit {
      let parts = path.pathParts()
      guard let name = parts.last, name != ".", name != "..", !path.hasFinalSlash else {
        throw Refusal(SystemError(code: EISDIR).description)
      }
      var parent = parts.dropLast().joined(separator: "/")
      if path.isAbsolutePath { parent = "/" + parent } else if parent.isEmpty { parent = "." }
      let directory = Glibc.open(parent, pathOnly | O_DIRECTORY | O_CLOEXEC)
      guard directory >= 0 else { throw .last }
      defer { close(directory) }
      var status = stat()
      guard fstat(directory, &status) == 0 else { throw .last }
      let isShared = status.st_mode & 0o1002 == 0o1002
      guard let link = try symbolicLink(name, in: directory) else {
        return try openFile(name, in: directory, flags | O_NOFOLLOW, isShared: isShared)
      }
      guard !isShared || link.owner == geteuid() || link.owner == status.st_uid else {
        throw Refusal(
          "it is a symbolic link of another user, in a directory that all users may write; name"
            + " what it leads to")
      }
      // What a link of /proc leads to need not have a path: a pipe has none.
      if httpfs_is_of_proc(directory) != 0 {
        return try openFile(name, in: directory, flags, isShared: false)
      }
      path = link.target.isAbsolutePath ? link.target : "\(parent)/\(link.target)"
    }
    throw Refusal(SystemError(code: ELOOP).description)
  }

  /// What a link says and whose it is; nil where `name` is none, or is not there.
  private static func symbolicLink(
    _ name: String, in directory: Int32
  ) throws(Refusal) -> (target: String, owner: uid_t)? {
    var text = [CChar](repeating: 0, count: Int(PATH_MAX))
    var owner: uid_t = 0
    let count = Int(httpfs_read_link(directory, name, &text, UInt(text.count), &owner))
    guard count >= 0 else {
      if errno == EINVAL || errno == ENOENT { return nil }
      throw .last
    }
    let bytes = text[..<count].map { UInt8(bitPattern: $0) }
    guard count < text.count, let target = String(validating: bytes, as: UTF8.self) else {
      throw Refusal(SystemError(code: ENAMETOOLONG).description)
    }
    return (target, owner)
  }

  private static func openFile(
    _ name: String, in directory: Int32, _ flags: Int32, isShared: Bool
  ) throws(Refusal) -> Int32 {
    let descriptor = openat(directory, name, flags | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .last }
    do throws(Refusal) {
      try check(descriptor, isShared: isShared)
    } catch {
      close(descriptor)
      throw error
    }
    return descriptor
  }

  /// - Throws: where the open file may be one that another user has put there.
  private static func check(_ descriptor: Int32, isShared: Bool) throws(Refusal) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .last }
    let isRegular = status.st_mode & S_IFMT == S_IFREG
    // A pipe of another user's is a service of his, but for one that may stand where ours was.
    let isSharedPipe = isShared && status.st_mode & S_IFMT == S_IFIFO
    guard isRegular || isSharedPipe, !isInherited(status) else { return }
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw Refusal("it belongs to another user; name a file of your own")
    }
    guard !isShared || status.st_nlink <= 1 else {
      throw Refusal(
        "it has another name, too, in a directory that all users may write; name another file")
    }
  }

  /// Whether a file is one of those that the process was started with, such as by `2>FILE`.
  private static func isInherited(_ status: stat) -> Bool {
    [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].contains { descriptor in
      var other = stat()
      return fstat(descriptor, &other) == 0 && other.st_dev == status.st_dev
        && other.st_ino == status.st_ino
    }
  }
}
