package import LinuxSystem

/// Reads the log of a record file from its first record to the first invalid one.
///
/// It reads large blocks and keeps one of them, so its memory does not grow with the log.
package struct LogReader {
  /// A whole number of records, near the block size at which reading is fastest.
  private static let blockRecordCount = 4096

  package let descriptor: Descriptor
  /// The offset of the log: the size of the header.
  package let start: Int64
  package let salt: UInt64
  /// The log, if it was read with its header.
  private let content: ArraySlice<UInt8>?

  package init(
    descriptor: Descriptor, start: Int64, salt: UInt64, content: ArraySlice<UInt8>? = nil
  ) {
    self.descriptor = descriptor
    self.start = start
    self.salt = salt
    self.content = content
  }

  /// Reads the log; calls `body` with each valid record and its sequence number, in order.
  ///
  /// - Parameter body: handles a record.
  /// - Returns: the number of valid records, and whether the file ends right after the last.
  /// - Throws: the error of reading or of `body`.
  package func read(
    _ body: (UInt64, LogRecord) throws(ErrorNumber) -> Void
  ) throws(ErrorNumber) -> (recordCount: UInt64, endsClean: Bool) {
    var recordCount: UInt64 = 0
    if let content {
      let used = try content.withUnsafeBytes { bytes in
        Result { () throws(ErrorNumber) in try records(in: bytes, after: &recordCount, body) }
      }.get()
      return (recordCount, used == content.count)
    }
    // One byte more than a short log holds, so that the first read shows its end.
    let logByteCount = max(0, try SystemCalls.status(descriptor.rawValue).byteCount - start)
    let blockByteCount = Int64(Self.blockRecordCount * LogRecord.byteCount)
    var block = [UInt8](repeating: 0, count: Int(min(logByteCount + 1, blockByteCount)))
    var offset = start
    while true {
      let filled = try SystemCalls.read(descriptor.rawValue, into: &block, at: offset)
      let used = try block.withUnsafeBytes { bytes in
        Result { () throws(ErrorNumber) in
          try records(
            in: UnsafeRawBufferPointer(rebasing: bytes[..<filled]), after: &recordCount, body)
        }
      }.get()
      if used + LogRecord.byteCount <= filled { return (recordCount, false) }
      if filled < block.count { return (recordCount, used == filled) }
      offset += Int64(filled)
    }
  }

  /// Calls `body` with the valid records at the start of `bytes`.
  ///
  /// - Parameters:
  ///   - bytes: a part of the log, from the beginning of a record on.
  ///   - recordCount: the number of records before it, then also of those in it.
  ///   - body: handles a record.
  /// - Returns: the number of bytes of these records.
  /// - Throws: the error of `body`.
  private func records(
    in bytes: UnsafeRawBufferPointer, after recordCount: inout UInt64,
    _ body: (UInt64, LogRecord) throws(ErrorNumber) -> Void
  ) throws(ErrorNumber) -> Int {
    var used = 0
    while bytes.count - used >= LogRecord.byteCount {
      let record = LogRecord(
        UnsafeRawBufferPointer(rebasing: bytes[used..<(used + LogRecord.byteCount)]),
        sequence: recordCount + 1, salt: salt)
      guard let record else { break }
      recordCount += 1
      used += LogRecord.byteCount
      try body(recordCount, record)
    }
    return used
  }
}
