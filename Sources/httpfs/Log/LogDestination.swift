import Glibc
import Logging

/// The destination of a mount's log: a file or standard error, and the system's log after the mount
/// has detached from standard error.
struct LogDestination: Sendable {
  /// The file as an absolute path, so that it can be reopened from any directory; nil if there is
  /// none.
  ///
  /// Links are not resolved, because the name counts and not its first target.
  let file: String?
  private let descriptor: Int32

  /// Opens the file, if one is configured, for appending.
  ///
  /// A new file is private; another user's file is refused (``OwnFile``).
  init(file: String?) throws(CommandFailure) {
    guard let file else {
      self.file = nil
      descriptor = STDERR_FILENO
      return
    }
    var path = file
    if !file.hasPrefix("/"), let directory = getcwd(nil, 0) {
      path = String(cString: directory) + "/" + file
      free(directory)
    }
    do throws(OwnFile.Refusal) {
      descriptor = try Self.open(path)
    } catch {
      throw CommandFailure("cannot open log '\(file)': \(error)")
    }
    self.file = path
  }

  private static func open(_ path: String) throws(OwnFile.Refusal) -> Int32 {
    try OwnFile.open(path, O_WRONLY | O_CREAT | O_APPEND)
  }

  func logger(level: Logger.Level) -> Logger {
    let isDaemon = DaemonProcess.isDaemon
    let isJournal = file == nil && Journal.reads(descriptor)
    let descriptor = descriptor
    let usesSystemLog = file == nil && isDaemon
    return Logger(label: "httpfs") { _ in
      LineLogHandler(
        descriptor: descriptor, logLevel: level, form: isJournal ? .journal : .line,
        usesSystemLog: usesSystemLog)
    }
  }

  /// Reopens the file by its name, after logrotate(8) has renamed it.
  ///
  /// If that fails, the old file stays in use.
  func reopen(complainingTo logger: Logger) {
    guard let file else { return }
    do throws(OwnFile.Refusal) {
      let fresh = try Self.open(file)
      defer { close(fresh) }
      // Replaces the old file between two lines.
      guard dup2(fresh, descriptor) >= 0 else { throw .last }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    } catch {
      logger.error(
        "the log file cannot be opened again; the old one is written on",
        metadata: ["file": "\(file)", "error": "\(error)"])
    }
  }
}
