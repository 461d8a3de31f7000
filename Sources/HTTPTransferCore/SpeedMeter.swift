internal import Glibc

/// An exponentially weighted rate in bytes per second; it falls while no bytes arrive.
package struct SpeedMeter: Sendable {
  /// The time over which the past fades, in seconds: long enough to read, short enough to follow.
  private static let timeConstant = 2.0

  private var weighted = 0.0
  private var start: ContinuousClock.Instant?
  private var last: ContinuousClock.Instant?

  /// How long counts as one point in time; it changes the result by at most 0.5 %.
  private static let moment = Duration.milliseconds(10)

  package init() {}

  package mutating func note(byteCount: Int, now: ContinuousClock.Instant) {
    // Pieces arrive by the ten thousand a second; within a moment nothing fades.
    if let last, now - last < Self.moment {
      weighted += Double(byteCount)
      return
    }
    weighted = faded(until: now) + Double(byteCount)
    last = now
    if start == nil { start = now }
  }

  package func bytesPerSecond(now: ContinuousClock.Instant) -> Double {
    guard let start else { return 0 }
    let age = max(0.05, (now - start) / .seconds(1))
    // At first, less than one time constant has passed.
    let seen = Self.timeConstant * (1 - exp(-age / Self.timeConstant))
    let rate = faded(until: now) / seen
    return rate < 1 ? 0 : rate
  }

  private func faded(until now: ContinuousClock.Instant) -> Double {
    guard let last else { return 0 }
    return weighted * exp(-((now - last) / .seconds(1)) / Self.timeConstant)
  }
}
