/// Decides when the file of a download is synced.
///
/// It syncs often enough that a power failure costs little, and rarely enough that the disk works
/// in parallel with the network.
package struct SyncSchedule {
  /// The maximum number of bytes, and the maximum time, between two commits.
  private static let byteCount: Int64 = 24 << 20
  private static let interval = Duration.seconds(2)

  /// The minimum number of bytes between two commits.
  ///
  /// Towards the end, commits are more frequent, so that the last sync, which the user waits for,
  /// has little left to do.
  private static let minimumByteCount: Int64 = 1 << 20

  /// The maximum number of bytes that wait behind a sync in progress.
  ///
  /// With as many bytes that the sync writes, and 11 MiB in buffers, a power failure costs at most
  /// 64 MiB, however slow the disk is.
  private static let waitingByteCount: Int64 = 26 << 20

  /// The bytes written since the last sync began.
  private var uncommittedByteCount: Int64 = 0
  /// The number of wanted bytes that were not written yet; nil if unknown, negative if bytes were
  /// written again.
  private var missingByteCount: Int64?
  private var lastEnd: ContinuousClock.Instant

  /// - Parameters:
  ///   - wantedByteCount: the number of bytes to write; nil if unknown.
  ///   - now: the time.
  package init(wantedByteCount: Int64?, now: ContinuousClock.Instant) {
    missingByteCount = wantedByteCount
    lastEnd = now
  }

  /// Whether writing must wait for the sync in progress.
  package var isFull: Bool { uncommittedByteCount >= Self.waitingByteCount }

  /// Whether to begin a sync, if none is in progress.
  package func isDue(now: ContinuousClock.Instant) -> Bool {
    // The last sync is that of the finished file.
    guard missingByteCount != 0 else { return false }
    return uncommittedByteCount >= enough || now - lastEnd >= Self.interval
  }

  private var enough: Int64 {
    // Pieces that are fetched again exceed the wanted bytes.
    guard let missingByteCount, missingByteCount >= 0 else { return Self.byteCount }
    return min(Self.byteCount, max(Self.minimumByteCount, missingByteCount))
  }

  /// Records that bytes were written.
  package mutating func wrote(_ byteCount: Int64) {
    uncommittedByteCount += byteCount
    missingByteCount = missingByteCount.map { $0 - byteCount }
  }

  /// Records that a sync of all written bytes has begun.
  package mutating func began() { uncommittedByteCount = 0 }

  /// Records that the sync has ended.
  package mutating func ended(now: ContinuousClock.Instant) { lastEnd = now }
}
