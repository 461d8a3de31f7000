/// Detects from regular ticks that the process was suspended (`SIGSTOP`, a sleeping machine).
///
/// It is a pure value; deadlines then move by the time of the suspension.
struct SuspensionDetector: Sendable {
  /// Only a suspension delays a tick by more than this.
  static let threshold = Duration.seconds(4)

  /// The time between ticks.
  private let interval: Duration
  private var lastTick: ContinuousClock.Instant

  init(interval: Duration, now: ContinuousClock.Instant) {
    self.interval = interval
    lastTick = now
  }

  /// Records that ticks begin, or begin again after a pause.
  mutating func start(now: ContinuousClock.Instant) { lastTick = now }

  /// Takes a tick.
  ///
  /// - Returns: how long the process was suspended before it; nil if it was not.
  mutating func tick(now: ContinuousClock.Instant) -> Duration? {
    let pause = now - lastTick - interval
    lastTick = now
    return pause > Self.threshold ? pause : nil
  }
}
