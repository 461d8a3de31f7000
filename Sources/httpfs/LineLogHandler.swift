import Glibc
import Logging

/// Writes each message as one line, `TIME LEVEL MESSAGE key=value…`, in one write, so that lines of
/// several threads do not mix.
struct LineLogHandler: LogHandler {
  let descriptor: CInt
  var logLevel: Logger.Level
  var metadata: Logger.Metadata = [:]

  init(descriptor: CInt, logLevel: Logger.Level) {
    self.descriptor = descriptor
    self.logLevel = logLevel
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var line = "\(timestamp()) \(event.level) \(event.message)"
    let all = metadata.merging(event.metadata ?? [:]) { $1 }
    for (key, value) in all.sorted(by: { $0.key < $1.key }) { line += " \(key)=\(value)" }
    // A name in a message must not start a line of its own.
    let bytes = line.utf8.map { $0 < 0x20 ? UInt8(ascii: "?") : $0 } + [UInt8(ascii: "\n")]
    _ = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
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
