/// Finds out from the times of regular ticks that the process was suspended (`SIGSTOP`, a sleeping
/// machine), as a pure value: deadlines then move by that time.
struct SuspensionDetector: Sendable {
  /// Only a suspension keeps ticks that far apart.
  static let threshold = Duration.seconds(4)

  /// How often there is a tick.
  private let interval: Duration
  private var lastTick: ContinuousClock.Instant

  init(interval: Duration, now: ContinuousClock.Instant) {
    self.interval = interval
    lastTick = now
  }

  /// Ticks begin, or begin again after a time without any.
  mutating func start(now: ContinuousClock.Instant) { lastTick = now }

  /// A tick.
  ///
  /// - Returns: for how long the process was suspended before it, if it was.
  mutating func tick(now: ContinuousClock.Instant) -> Duration? {
    let pause = now - lastTick - interval
    lastTick = now
    return pause > Self.threshold ? pause : nil
  }
}
