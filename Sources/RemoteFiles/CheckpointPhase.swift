/// Who writes to the record of a version just now, and when its last checkpoint was.
struct CheckpointPhase: Sendable {
  /// Whether a checkpoint or a stamp is under way: the record has one writer.
  private(set) var isBusy = false
  /// Whether a stamp waits for the storage queue.
  private var isStampQueued = false
  /// Whether a checkpoint has begun since all bytes were there.
  private var hasCoveredWhole = false
  private var lastBeganAt = ContinuousClock.now

  /// Begins a checkpoint if `interval` has passed since the last one; the first one `ofWhole`, when all bytes
  /// are there, begins at once: only then the kernel may read the file by itself.
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

  /// Begins a stamp if nothing else is under way.
  mutating func beginStamp() -> Bool {
    guard !isBusy else { return false }
    isBusy = true
    return true
  }

  mutating func end() { isBusy = false }

  /// Has a stamp wait for the storage queue; false where one does already.
  mutating func queueStamp() -> Bool {
    defer { isStampQueued = true }
    return !isStampQueued
  }

  mutating func takeQueuedStamp() { isStampQueued = false }
}
