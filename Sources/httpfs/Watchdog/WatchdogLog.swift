import Glibc
import Logging
import TextFormat

/// The log of a watchdog's actions: the system's log, and the mount's log file if it has one.
///
/// It does not keep the daemon's standard error open, because that belongs to the user.
struct WatchdogLog {
  /// The log file, an absolute path.
  let file: String?

  func write(_ message: String) {
    let message = escapingControls(message)
    "httpfs: \(message)".withCString { text in
      withVaList([text]) { vsyslog(LOG_DAEMON | LOG_ERR, "%s", $0) }
    }
    guard let file, let descriptor = try? OwnFile.open(file, O_WRONLY | O_APPEND) else { return }
    defer { close(descriptor) }
    let logger = Logger(label: "httpfs") { _ in
      LineLogHandler(descriptor: descriptor, logLevel: .error)
    }
    logger.error("\(message)")
  }
}
