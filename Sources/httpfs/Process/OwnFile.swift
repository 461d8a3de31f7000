import CLinux
import Glibc
import HTTPTransferCore
import LinuxSystem

/// Opens a file that a user names for writing, unless another user has chosen its target.
///
/// Links are followed by the same rule as for a download's destination (`FileLocation`), which is
/// that of `fs.protected_symlinks` (proc_sys_fs(5)): in a directory where every user may create
/// names, only links of this user and of the directory's owner are followed. The opened file must
/// belong to this user or to root. Devices, and the files that the process was started with, may
/// belong to any user.
enum OwnFile {
  /// Why a file is not opened: the text after its name.
  struct Refusal: Error, CustomStringConvertible {
    let description: String

    fileprivate init(_ description: String) { self.description = description }

    /// The error of the last failed call of this thread.
    static var last: Refusal { Refusal(ErrorNumber.last.description) }
  }

  /// The kernel's limit (path_resolution(7)).
  private static let linkLimit = 40

  /// `O_PATH` of Linux's fcntl.h, which Swift does not import: a directory need not be readable.
  private static let pathOnly: Int32 = 0o10_000_000

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - path: its path, absolute or relative to the working directory.
  ///   - flags: those of open(2); with `O_CREAT`, a missing file is created with a private mode.
  /// - Returns: its descriptor, which child processes do not inherit.
  /// - Throws: why it is not opened; the file is then unchanged.
  static func open(_ path: String, _ flags: Int32) throws(Refusal) -> Int32 {
    var path = path
    for _ in 0..<linkLimit {
      let parts = path.pathParts()
      guard let name = parts.last, name != ".", name != "..", !path.hasFinalSlash else {
        throw Refusal(ErrorNumber(rawValue: EISDIR).description)
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
      // The target of a link in /proc need not have a path: a pipe has none.
      if httpfs_is_of_proc(directory) != 0 {
        return try openFile(name, in: directory, flags, isShared: false)
      }
      path = link.target.isAbsolutePath ? link.target : "\(parent)/\(link.target)"
    }
    throw Refusal(ErrorNumber(rawValue: ELOOP).description)
  }

  /// The text and the owner of a link; nil if `name` is not a link or does not exist.
  private static func symbolicLink(
    _ name: String, in directory: Int32
  ) throws(Refusal) -> (target: String, owner: uid_t)? {
    do throws(ErrorNumber) {
      return try SystemCalls.symbolicLink(name, in: directory)
    } catch {
      throw Refusal(error.description)
    }
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

  /// - Throws: if another user may have put the open file there.
  private static func check(_ descriptor: Int32, isShared: Bool) throws(Refusal) {
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .last }
    let isRegular = status.st_mode & S_IFMT == S_IFREG
    // Another user's pipe is a service of that user, unless it may have replaced our own.
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

  /// Whether the process was started with this file, for example by `2>FILE`.
  private static func isInherited(_ status: stat) -> Bool {
    [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO].contains { descriptor in
      (try? SystemCalls.status(descriptor))?.identity == FileMetadata(status).identity
    }
  }
}
