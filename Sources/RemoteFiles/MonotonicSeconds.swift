/// Turns instants into seconds since an arbitrary start.
struct MonotonicSeconds: Sendable {
  private static let common = MonotonicSeconds()

  /// Whole seconds since an arbitrary start, the same for all callers.
  static var sinceStart: Int { Int(common.seconds(at: .now)) }

  private let origin = ContinuousClock.now

  func seconds(at instant: ContinuousClock.Instant) -> Double {
    (instant - origin) / .seconds(1)
  }
}
