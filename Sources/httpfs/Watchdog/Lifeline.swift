import Glibc

/// The watchdog's end of the pipe to the daemon: its standard input.
struct Lifeline {
  /// How the daemon has ended.
  enum End {
    /// It has taken its mount down.
    case dismissed
    /// It is gone without a word.
    case died
  }

  /// Waits for the daemon's end, for `limit` at most.
  ///
  /// - Returns: nil where the daemon is still there.
  func wait(for limit: Duration) -> End? {
    let deadline = ContinuousClock.now + limit
    repeat {
      guard wait(for: max(.zero, deadline - .now), or: -1) else { continue }
      var byte: UInt8 = 0
      return read(STDIN_FILENO, &byte, 1) > 0 ? .dismissed : .died
    } while ContinuousClock.now < deadline
    return nil
  }

  /// Waits for the daemon's end or for `descriptor` to become readable, for `limit` at most.
  ///
  /// - Returns: whether one of them has happened.
  func wait(for limit: Duration, or descriptor: Int32) -> Bool {
    var requests = [STDIN_FILENO, descriptor].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let milliseconds = (limit / .milliseconds(1)).rounded(.up)
    return poll(&requests, nfds_t(requests.count), Int32(clamping: Int(milliseconds))) > 0
  }
}
