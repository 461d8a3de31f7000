import ExtentRecord
import HTTPTransferCore

/// Compares everything that a log claims, committed or not, with the bytes of the data file.
struct ClaimCheck {
  private let summary: LogSummary
  private let completeLength: Int64?
  /// Whether the file ends right after the last valid record.
  private let endsClean: Bool
  private var claimed = ExtentSet()
  private var intact = ExtentSet()
  /// The sequence numbers of the claims that are false.
  private var refuted: Set<UInt64> = []
  /// The bytes of the true claims that no COMMIT covers.
  private var uncommittedByteCount: Int64 = 0

  /// Reads the log twice, and every claimed byte.
  ///
  /// - Parameters:
  ///   - files: the entry.
  ///   - data: its data file; nil where it has none.
  /// - Throws: where the record cannot be read.
  init(_ files: StoredFiles, data: Descriptor?) throws(ErrorNumber) {
    var summary = LogSummary()
    endsClean = try files.log.read { (_, record) throws(ErrorNumber) in
      summary.add(record)
    }.endsClean
    self.summary = summary
    completeLength = summary.completeLength ?? files.header.version.completeLength
    let limit = completeLength ?? .max
    var verifier = data.map { ExtentVerifier(data: $0) }
    _ = try files.log.read { (sequence, record) throws(ErrorNumber) in
      guard case .extent(let offset, let byteCount, let contentHash) = record else { return }
      let range = offset..<(offset + byteCount)
      claimed.insert(range)
      // What lies past the end of the data file cannot be read.
      let isIntact =
        range.upperBound <= limit
        && verifier?.matches(offset: offset, byteCount: byteCount, contentHash: contentHash) == true
      if isIntact {
        intact.insert(range)
        if sequence > summary.coveredSequence { uncommittedByteCount += byteCount }
      } else {
        refuted.insert(sequence)
      }
    }
  }

  /// What was found; where claims overlap, a byte is right if one of them is.
  var result: EntryCheck {
    EntryCheck(
      claimedByteCount: claimed.byteCount,
      damagedByteCount: claimed.byteCount - intact.byteCount, isRecordDamaged: !endsClean)
  }

  /// Replaces the record by one without the claims that are false.
  ///
  /// As recovery does, but for committed claims too: the committed ones, their COMMIT, the others.
  ///
  /// - Returns: false where the header is too long to be written, so that nothing was.
  func strikeDamage(in files: StoredFiles) throws(ErrorNumber) -> Bool {
    var header = files.header
    header.salt = .random(in: .min ... .max)
    header.version.completeLength = completeLength
    guard let encoded = header.encoded() else { return false }
    _ = try RecordFile.replace(
      header: encoded, salt: header.salt, in: files.directory, isDurable: true
    ) { (file) throws(ErrorNumber) in
      func appendExtents(_ isIncluded: (UInt64) -> Bool) throws(ErrorNumber) {
        _ = try files.log.read { (sequence, record) throws(ErrorNumber) in
          guard case .extent = record, isIncluded(sequence), !refuted.contains(sequence) else {
            return
          }
          try file.append(record)
        }
      }
      try appendExtents { $0 <= summary.coveredSequence }
      // What is uncommitted is added to the figure when this log is read.
      try file.append(
        .commit(
          fetchedByteCount: max(0, summary.fetchedByteCount - uncommittedByteCount),
          coveredSequence: file.sequence))
      try appendExtents { $0 > summary.coveredSequence }
    }
    return true
  }
}
