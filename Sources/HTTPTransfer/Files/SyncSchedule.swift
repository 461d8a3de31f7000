/// When the file of a download is brought to the disk: often enough that a loss of power costs little,
/// and rarely enough that the disk works while the network does.
package struct SyncSchedule {
  /// So many bytes, or so much time, may pass between two commits.
  private static let byteCount: Int64 = 16 << 20
  private static let interval = Duration.seconds(2)

  /// Towards the end commits come closer, so that the last sync, for which the user waits, has little
  /// left to do.
  private static let leastByteCount: Int64 = 1 << 20

  /// How many bytes may wait behind a sync that is under way.
  ///
  /// With as many that the sync writes, and 8 MiB in buffers, a loss of power costs 64 MiB at most,
  /// however slow the disk is.
  private static let waitingByteCount: Int64 = 28 << 20

  /// What was written since the last sync began.
  private var uncommittedByteCount: Int64 = 0
  /// How much of what is wanted was not written yet; nil where that is not known, negative where bytes
  /// came again.
  private var missingByteCount: Int64?
  private var lastEnd: ContinuousClock.Instant

  /// - Parameters:
  ///   - wantedByteCount: how many bytes are to be written; nil where that is not known.
  ///   - now: the time.
  package init(wantedByteCount: Int64?, now: ContinuousClock.Instant) {
    missingByteCount = wantedByteCount
    lastEnd = now
  }

  /// Whether writing has to wait for the sync that is under way.
  package var isFull: Bool { uncommittedByteCount >= Self.waitingByteCount }

  /// Whether a sync is to begin, if none is under way.
  package func isDue(now: ContinuousClock.Instant) -> Bool {
    // The last sync is that of the finished file.
    guard missingByteCount != 0 else { return false }
    return uncommittedByteCount >= enough || now - lastEnd >= Self.interval
  }

  private var enough: Int64 {
    // Pieces that are fetched again come beyond what is wanted.
    guard let missingByteCount, missingByteCount >= 0 else { return Self.byteCount }
    return min(Self.byteCount, max(Self.leastByteCount, missingByteCount))
  }

  /// So many bytes were written.
  package mutating func wrote(_ byteCount: Int64) {
    uncommittedByteCount += byteCount
    missingByteCount = missingByteCount.map { $0 - byteCount }
  }

  /// A sync of all that was written has begun.
  package mutating func began() { uncommittedByteCount = 0 }

  /// The sync has ended.
  package mutating func ended(now: ContinuousClock.Instant) { lastEnd = now }
}
