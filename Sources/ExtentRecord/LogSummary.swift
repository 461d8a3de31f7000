/// What the records of a log say together: the first of the two passes of recovery.
package struct LogSummary {
  /// The highest sequence number that a COMMIT covers; 0 where there is none.
  package private(set) var coveredSequence: UInt64 = 0

  /// The complete length as recorded last; nil where the log records none.
  package private(set) var completeLength: Int64?

  /// The number of bytes fetched: the last COMMIT's figure and the extents stored since.
  package private(set) var fetchedByteCount: Int64 = 0

  package init() {}

  /// Takes the next record of the log.
  package mutating func add(_ record: LogRecord) {
    switch record {
    case .extent(_, let byteCount, _):
      let (sum, overflow) = fetchedByteCount.addingReportingOverflow(byteCount)
      fetchedByteCount = overflow ? .max : sum
    case .commit(let fetched, let covered):
      // An extent between the covered ones and the COMMIT is in the figure of the latter already.
      fetchedByteCount = fetched
      coveredSequence = max(coveredSequence, covered)
    case .completeLength(let length):
      completeLength = length
    }
  }
}
