import Glibc

/// A notification of a mount to the service manager.
enum ServiceState: Equatable {
  /// The mount is ready, or has reloaded its list; the status is one line for people.
  case ready(status: String)
  /// The list is being reloaded.
  case reloading
  /// The mount is ending.
  case stopping

  /// The assignments, one per line (sd_notify(3)).
  ///
  /// - Parameters:
  ///   - process: the process that serves the mount; the manager may have started another one
  ///     before the mount went into the background.
  ///   - microseconds: the time of CLOCK_MONOTONIC, to distinguish a reload from an earlier one.
  /// - Returns: the text of one datagram.
  func assignments(process: pid_t, microseconds: UInt64) -> String {
    switch self {
    case .ready(let status):
      // A newline in a name must not begin another assignment.
      let line = String(status.map { $0.isNewline ? " " : $0 })
      return "READY=1\nMAINPID=\(process)\nSTATUS=\(line)"
    case .reloading: return "RELOADING=1\nMONOTONIC_USEC=\(microseconds)"
    case .stopping: return "STOPPING=1"
    }
  }
}
