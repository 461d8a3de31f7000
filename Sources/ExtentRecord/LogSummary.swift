/// What the records of a log say together: the first of the two passes of recovery.
package struct LogSummary {
  /// The highest sequence number that a COMMIT covers; 0 where there is none.
  package private(set) var coveredSequence: UInt64 = 0

  /// The complete length as recorded last; nil where the log records none.
  package private(set) var completeLength: Int64?

  /// The number of bytes fetched: the last COMMIT's figure and the extents stored since.
  package private(set) var fetchedByteCount: Int64 = 0

  /// The stamp of the last record, if that is a COMMIT that has one; else 0.
  ///
  /// What comes after a stamp is not in it, so it ends with the next record.
  package private(set) var stamp: UInt64 = 0

  /// What names the checksum that the whole was found to have, where nothing has been stored since; else
  /// 0.
  package private(set) var checksumMark: UInt64 = 0

  /// More than any line brings in the life of an entry.
  private static let greatestFetchedByteCount: Int64 = 1 << 60

  package init() {}

  /// Takes the next record of the log.
  package mutating func add(_ record: LogRecord) {
    stamp = 0
    switch record {
    case .extent(_, let byteCount, _):
      checksumMark = 0
      let (sum, overflow) = fetchedByteCount.addingReportingOverflow(byteCount)
      fetchedByteCount =
        overflow ? Self.greatestFetchedByteCount : min(sum, Self.greatestFetchedByteCount)
    case .commit(let fetched, let covered, let stamp):
      self.stamp = stamp
      // An extent between the covered ones and the COMMIT is in the figure of the latter already.
      // A forged figure leaves room for what this mount adds to it.
      fetchedByteCount = min(fetched, Self.greatestFetchedByteCount)
      coveredSequence = max(coveredSequence, covered)
    case .completeLength(let length, let mark):
      completeLength = length
      checksumMark = mark
    }
  }
}
