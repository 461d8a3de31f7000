import Glibc
import Logging

/// systemd's journal, where it reads standard error.
enum Journal {
  /// Whether what is written to `descriptor` goes straight to the journal.
  ///
  /// `JOURNAL_STREAM` names its device and inode (systemd.exec(5)); a service may have turned it
  /// elsewhere since.
  static func reads(_ descriptor: Int32) -> Bool {
    guard let names = environmentVariable("JOURNAL_STREAM")?.split(separator: ":"),
      names.count == 2
    else { return false }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return false }
    return UInt64(names[0]) == UInt64(status.st_dev) && UInt64(names[1]) == UInt64(status.st_ino)
  }

  /// A line for standard error with its priority before it (sd-daemon(3)), where the journal reads it.
  static func marked(_ line: String, as level: Logger.Level) -> String {
    reads(STDERR_FILENO) ? "<\(level.systemPriority)>\(line)" : line
  }
}

extension Logger.Level {
  /// As syslog(3) and the journal count.
  var systemPriority: Int32 {
    switch self {
    case .trace, .debug: LOG_DEBUG
    case .info: LOG_INFO
    case .notice: LOG_NOTICE
    case .warning: LOG_WARNING
    case .error: LOG_ERR
    case .critical: LOG_CRIT
    }
  }
}
