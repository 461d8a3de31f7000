import Glibc

/// The watchdog's end of the pipe to the daemon: its standard input.
struct Lifeline {
  /// How the daemon ended.
  enum End {
    /// It has unmounted.
    case dismissed
    /// It died without a message.
    case died
  }

  /// Waits for the daemon's end, at most for `limit`.
  ///
  /// - Returns: nil if the daemon is still running.
  func wait(for limit: Duration) -> End? {
    let deadline = ContinuousClock.now + limit
    repeat {
      guard wait(for: max(.zero, deadline - .now), or: -1) else { continue }
      var byte: UInt8 = 0
      return read(STDIN_FILENO, &byte, 1) > 0 ? .dismissed : .died
    } while ContinuousClock.now < deadline
    return nil
  }

  /// Waits until the daemon ends or `descriptor` becomes readable, at most for `limit`.
  ///
  /// - Returns: whether either has happened.
  func wait(for limit: Duration, or descriptor: Int32) -> Bool {
    var requests = [STDIN_FILENO, descriptor].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let milliseconds = (limit / .milliseconds(1)).rounded(.up)
    return poll(&requests, nfds_t(requests.count), Int32(clamping: Int(milliseconds))) > 0
  }
}
