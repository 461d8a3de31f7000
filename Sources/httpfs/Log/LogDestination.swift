import Glibc
import Logging

/// Where the log of a mount goes: a file, or standard error, and the system's log where standard
/// error is let go of.
struct LogDestination: Sendable {
  /// The file as an absolute path, so that it can be opened again from any directory; nil where there
  /// is none.
  ///
  /// Links stay in it: the name counts, not what it has led to.
  let file: String?
  private let descriptor: Int32

  /// Opens the file, where there is to be one, for appending; a new one is private, and another
  /// user's is refused (``OwnFile``).
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

  /// Opens the file by its name again, after logrotate(8) has moved it away; the old one is written on
  /// where that fails.
  func reopen(complainingTo logger: Logger) {
    guard let file else { return }
    do throws(OwnFile.Refusal) {
      let fresh = try Self.open(file)
      defer { close(fresh) }
      // In the place of the old one, between two lines.
      guard dup2(fresh, descriptor) >= 0 else { throw .last }
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    } catch {
      logger.error(
        "the log file cannot be opened again; the old one is written on",
        metadata: ["file": "\(file)", "error": "\(error)"])
    }
  }
}
