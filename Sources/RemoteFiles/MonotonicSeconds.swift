/// Turns instants into seconds since an arbitrary start.
struct MonotonicSeconds: Sendable {
  private let origin = ContinuousClock.now

  func seconds(at instant: ContinuousClock.Instant) -> Double {
    (instant - origin) / .seconds(1)
  }
}
