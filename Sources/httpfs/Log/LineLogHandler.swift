import Glibc
import Logging
import TextFormat

/// Writes each message as one line, in one write, so that lines of several threads do not mix.
struct LineLogHandler: LogHandler {
  enum Form {
    /// `TIME LEVEL MESSAGE key=value…`
    case line
    /// `<PRIORITY>MESSAGE key=value…` of sd-daemon(3), for the journal, which knows the time.
    case journal
  }

  let descriptor: CInt
  var logLevel: Logger.Level
  var metadata: Logger.Metadata = [:]
  private let form: Form
  /// Whether messages also go to syslog(3).
  private let usesSystemLog: Bool

  init(
    descriptor: CInt, logLevel: Logger.Level, form: Form = .line, usesSystemLog: Bool = false
  ) {
    self.descriptor = descriptor
    self.logLevel = logLevel
    self.form = form
    self.usesSystemLog = usesSystemLog
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var message = "\(event.message)"
    let all = metadata.merging(event.metadata ?? [:]) { $1 }
    for (key, value) in all.sorted(by: { $0.key < $1.key }) { message += " \(key)=\(value)" }
    // Text from outside must not start a new line or move the cursor of a terminal.
    let text = Array(escapingControls(message).utf8)
    let start =
      switch form {
      case .line: "\(timestamp()) \(event.level) "
      case .journal: "<\(event.level.systemPriority)>"
      }
    let bytes = Array(start.utf8) + text + [UInt8(ascii: "\n")]
    _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
    guard usesSystemLog else { return }
    String(decoding: text, as: UTF8.self).withCString { text in
      withVaList([text]) { vsyslog(LOG_DAEMON | event.level.systemPriority, "%s", $0) }
    }
  }

  /// The local time, `2026-11-20T23:02:51+0000`.
  private func timestamp() -> String {
    var now = time(nil)
    var parts = tm()
    localtime_r(&now, &parts)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 40) { buffer in
      guard let start = buffer.baseAddress,
        strftime(start, buffer.count, "%Y-%m-%dT%H:%M:%S%z", &parts) > 0
      else { return "-" }
      return String(cString: start)
    }
  }
}
