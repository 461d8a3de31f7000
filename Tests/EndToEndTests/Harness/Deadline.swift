import Glibc

/// A point in time on the monotonic clock that no wait of the harness may pass.
struct Deadline {
  private let end: ContinuousClock.Instant

  init(after duration: Duration) {
    end = .now + duration
  }

  var hasPassed: Bool { ContinuousClock.now >= end }

  /// Evaluates `condition` every few milliseconds until it holds or the deadline passes.
  ///
  /// - Returns: whether the condition held in time.
  func wait(
    every interval: Duration = .milliseconds(5), until condition: () throws -> Bool
  ) rethrows -> Bool {
    while true {
      if try condition() { return true }
      if hasPassed { return false }
      pause(for: interval)
    }
  }
}

/// Sleeps on the calling thread: the harness is synchronous, so a test reads from top to bottom.
func pause(for duration: Duration) {
  let (seconds, attoseconds) = duration.components
  var rest = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
  var time = timespec()
  repeat { time = rest } while nanosleep(&time, &rest) == -1 && errno == EINTR
}

/// Runs `body` and returns how long it took.
func elapsed(_ body: () throws -> Void) rethrows -> Duration {
  try ContinuousClock().measure(body)
}

extension Duration {
  /// The duration in seconds, for messages and ratios.
  var seconds: Double {
    Double(components.seconds) + Double(components.attoseconds) * 1e-18
  }
}
