internal import HTTPTransferCore

/// The recent failures of reads: the kernel repeats a read, and gets the same answer for a moment.
struct RecentFailures: Sendable {
  private struct Failure: Sendable {
    let range: ByteRange
    let error: FileError
    let until: ContinuousClock.Instant
  }

  private var failures: [Failure] = []

  /// How many ranges are remembered for one failure.
  private static let placeLimit = 256

  mutating func remember(
    _ ranges: [ByteRange], _ error: FileError, now: ContinuousClock.Instant
  ) {
    failures.removeAll { $0.until <= now }
    let until = now + FileSettings.failureMemory
    // Adjacent ranges become one entry: a storm of failed reads must not make a long list.
    let merged = ExtentSet(ranges).extents.prefix(Self.placeLimit)
    failures += merged.map { Failure(range: $0, error: error, until: until) }
  }

  /// Why a read of `range` fails; nil if no failure is remembered.
  mutating func error(in range: ByteRange, now: ContinuousClock.Instant) -> FileError? {
    failures.removeAll { $0.until <= now }
    return failures.first { $0.range.overlaps(range) }?.error
  }
}
