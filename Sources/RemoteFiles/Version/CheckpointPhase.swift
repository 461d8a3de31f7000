/// Whether a checkpoint or a stamp is under way for the record of a version, and when the last
/// checkpoint began.
struct CheckpointPhase: Sendable {
  /// Whether a checkpoint or a stamp is under way: the record has one writer.
  private(set) var isBusy = false
  /// Whether a stamp waits for the storage queue.
  private var isStampQueued = false
  /// Whether a checkpoint has begun since all bytes became present.
  private var hasCoveredWhole = false
  private var lastBeganAt = ContinuousClock.now

  /// Begins a checkpoint if `interval` has passed since the last one.
  ///
  /// The first checkpoint `ofWhole`, when all bytes are present, begins immediately: only after it
  /// may the kernel read the file directly.
  mutating func begin(
    ofWhole isOfWhole: Bool, now: ContinuousClock.Instant, interval: Duration
  ) -> Bool {
    guard !isBusy, isOfWhole && !hasCoveredWhole || now - lastBeganAt >= interval else {
      return false
    }
    hasCoveredWhole = isOfWhole
    isBusy = true
    lastBeganAt = now
    return true
  }

  /// Begins a stamp if neither a checkpoint nor a stamp is under way.
  mutating func beginStamp() -> Bool {
    guard !isBusy else { return false }
    isBusy = true
    return true
  }

  mutating func end() { isBusy = false }

  /// Queues a stamp for the storage queue; returns false if one is queued already.
  mutating func queueStamp() -> Bool {
    defer { isStampQueued = true }
    return !isStampQueued
  }

  mutating func takeQueuedStamp() { isStampQueued = false }
}
