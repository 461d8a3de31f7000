internal import HTTPTransferCore

/// What reads have failed of late: the kernel repeats them, and gets the same answer for a moment.
struct RecentFailures: Sendable {
  private struct Failure: Sendable {
    let range: ByteRange
    let error: FileError
    let until: ContinuousClock.Instant
  }

  private var failures: [Failure] = []

  /// How many places one failure is remembered for.
  private static let placeLimit = 256

  mutating func remember(
    _ ranges: [ByteRange], _ error: FileError, now: ContinuousClock.Instant
  ) {
    failures.removeAll { $0.until <= now }
    let until = now + FileSettings.failureMemory
    // Neighbours are one entry: a storm of failed reads must not become a long list.
    let merged = ExtentSet(ranges).extents.prefix(Self.placeLimit)
    failures += merged.map { Failure(range: $0, error: error, until: until) }
  }

  /// Why a read of `range` fails; nil where nothing is remembered of it.
  mutating func error(in range: ByteRange, now: ContinuousClock.Instant) -> FileError? {
    failures.removeAll { $0.until <= now }
    return failures.first { $0.range.overlaps(range) }?.error
  }
}
