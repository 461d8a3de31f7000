import ExtentRecord

/// The end of a record's log.
struct LogEnd {
  /// The offset of the next record in the record file.
  let position: Int64
  /// The number of the last record.
  let sequence: UInt64

  /// The offset of the first record.
  var start: Int64 { position - Int64(sequence) * Int64(LogRecord.byteCount) }

  /// The end after one more record.
  var next: LogEnd {
    LogEnd(position: position + Int64(LogRecord.byteCount), sequence: sequence + 1)
  }
}
