import CLinux
import Glibc
import Logging

/// systemd's journal, if it reads standard error.
enum Journal {
  /// Whether the journal directly reads what is written to `descriptor`.
  ///
  /// `JOURNAL_STREAM` contains the journal's device and inode (systemd.exec(5)); a service may have
  /// redirected the descriptor since.
  static func reads(_ descriptor: Int32) -> Bool {
    guard let names = environmentVariable("JOURNAL_STREAM")?.split(separator: ":"),
      names.count == 2
    else { return false }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { return false }
    return UInt64(names[0]) == UInt64(status.st_dev) && UInt64(names[1]) == UInt64(status.st_ino)
  }

  /// A line for standard error.
  ///
  /// If the journal reads it, its priority comes first (sd-daemon(3)).
  static func marked(_ line: String, as level: Logger.Level) -> String {
    reads(STDERR_FILENO) ? "<\(level.systemPriority)>\(line)" : line
  }
}

extension Logger.Level {
  /// The level as a number of syslog(3) and the journal.
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
