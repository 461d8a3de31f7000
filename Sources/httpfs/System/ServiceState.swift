import Glibc

/// What a mount tells the service manager about itself.
enum ServiceState: Equatable {
  /// The mount can be read, or has read its list again; the status is one line for people.
  case ready(status: String)
  /// The list is being read again.
  case reloading
  /// The mount ends.
  case stopping

  /// The assignments, one a line (sd_notify(3)).
  ///
  /// - Parameters:
  ///   - process: the process that serves the mount. The manager may have started another one, which
  ///     has gone into the background.
  ///   - microseconds: the time of CLOCK_MONOTONIC; by it the manager tells a reload from an earlier
  ///     one.
  /// - Returns: the text of one datagram.
  func assignments(process: pid_t, microseconds: UInt64) -> String {
    switch self {
    case .ready(let status):
      // A line break in a name must not begin another assignment.
      let line = String(status.map { $0.isNewline ? " " : $0 })
      return "READY=1\nMAINPID=\(process)\nSTATUS=\(line)"
    case .reloading: return "RELOADING=1\nMONOTONIC_USEC=\(microseconds)"
    case .stopping: return "STOPPING=1"
    }
  }
}
