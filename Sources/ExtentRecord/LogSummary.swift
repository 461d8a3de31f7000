/// The combined claims of a log: the result of the first of the two passes of recovery.
package struct LogSummary {
  /// The highest sequence number that a COMMIT covers; 0 if none.
  package private(set) var coveredSequence: UInt64 = 0

  /// The complete length as recorded last; nil if the log records none.
  package private(set) var completeLength: Int64?

  /// The number of bytes fetched: the last COMMIT's figure plus the extents stored since.
  package private(set) var fetchedByteCount: Int64 = 0

  /// The stamp of the last record if that is a COMMIT with a stamp; otherwise 0.
  ///
  /// A stamp does not cover later records, so the next record invalidates it.
  package private(set) var stamp: UInt64 = 0

  /// Identifies the checksum that the whole file matched, if no bytes were stored since; otherwise
  /// 0.
  package private(set) var checksumMark: UInt64 = 0

  /// More than any network delivers in the life of an entry.
  private static let maximumFetchedByteCount: Int64 = 1 << 60

  package init() {}

  /// Adds the next record of the log.
  package mutating func add(_ record: LogRecord) {
    stamp = 0
    switch record {
    case .extent(_, let byteCount, _):
      checksumMark = 0
      let (sum, overflow) = fetchedByteCount.addingReportingOverflow(byteCount)
      fetchedByteCount =
        overflow ? Self.maximumFetchedByteCount : min(sum, Self.maximumFetchedByteCount)
    case .commit(let fetched, let covered, let stamp):
      self.stamp = stamp
      // The COMMIT's figure already includes extents between the covered ones and the COMMIT. The
      // limit leaves room for this mount's bytes if the figure is forged.
      fetchedByteCount = min(fetched, Self.maximumFetchedByteCount)
      coveredSequence = max(coveredSequence, covered)
    case .completeLength(let length, let mark):
      completeLength = length
      checksumMark = mark
    }
  }
}
