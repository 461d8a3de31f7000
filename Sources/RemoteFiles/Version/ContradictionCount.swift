/// How often answers have lately contradicted what was known about a file.
///
/// The servers of one host may disagree with each other, or confirm a version and then refuse its
/// bytes. Without a limit, every open would send such a server another request.
struct ContradictionCount: Sendable {
  /// So many in a row may be an accident; after that the server is asked once a second.
  private static let burst = 8.0
  private static let interval = Duration.seconds(1)

  private var count = 0.0
  private var at: ContinuousClock.Instant?

  mutating func note(now: ContinuousClock.Instant) {
    count = level(now: now) + 1
    at = now
  }

  /// How long the next question about the file must wait.
  func delay(now: ContinuousClock.Instant) -> Duration {
    level(now: now) > Self.burst ? Self.interval : .zero
  }

  private func level(now: ContinuousClock.Instant) -> Double {
    at.map { max(0, count - (now - $0) / Self.interval) } ?? 0
  }
}
