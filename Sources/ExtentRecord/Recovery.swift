internal import Glibc
package import HTTPTransferCore

/// What an entry's files prove, found by reading them.
///
/// The rules, each of them needed for "never a wrong byte":
/// - The log counts up to its first record that is not valid.
/// - An extent that a COMMIT covers is believed: its bytes were on the disk before the COMMIT was
///   written.
/// - Any other extent is read and hashed; it counts if the hash is the recorded one. Where another process
///   has written it, it is read from the disk: pages in memory may be right though the disk has refused
///   them. A boot
///   identifier that has not changed would not prove that the page cache survived (the file
///   system may have been shut down, or its disk pulled), and at most one checkpoint interval of
///   bytes has to be read.
/// - An extent that reaches past the end of the data file or past the complete length does not
///   count. Holes of the data file say nothing.
/// - If anything did not count, the record is rewritten without it before anything is appended:
///   a later COMMIT must not cover a claim that was refuted.
package struct Recovery {
  package private(set) var extents = ExtentSet()

  /// Those extents that are believed because a COMMIT covers them: their bytes were not looked at.
  package private(set) var believed = ExtentSet()
  package private(set) var summary = LogSummary()

  /// The bytes of extents that count but that no COMMIT covers.
  package private(set) var uncommittedByteCount: Int64 = 0

  /// All extents of the log, those that do not count too.
  package private(set) var claimed = ExtentSet()

  /// The number of valid records.
  package private(set) var recordCount: UInt64 = 0

  /// Whether the record file ends right after its last valid record.
  package private(set) var endsClean = true

  /// Whether the record file holds something that does not count.
  package var needsRewrite: Bool { !endsClean || !refuted.isEmpty }

  /// The stamp of the data file under which all of ``extents`` held what the record claims; 0 where it
  /// does not say so of all that is there now.
  package var stamp: UInt64 {
    needsRewrite || uncommittedByteCount > 0 ? 0 : summary.stamp
  }

  /// What names the checksum that the whole was found to have; 0 where that is not said of all that is there
  /// now.
  package var checksumMark: UInt64 { needsRewrite ? 0 : summary.checksumMark }

  /// The sequence numbers of the extents that do not count.
  private var refuted: Set<UInt64> = []

  /// Reads the header of a record file; nil where it is not one of this format, or damaged.
  package static func header(of descriptor: Descriptor) throws(ErrorNumber)
    -> (header: RecordHeader, byteCount: Int)?
  {
    var bytes = [UInt8](repeating: 0, count: RecordHeader.prefixByteCount)
    guard try SystemCalls.read(descriptor.rawValue, into: &bytes, at: 0) == bytes.count,
      let byteCount = bytes.withUnsafeBytes({ RecordHeader.byteCount(ofHeaderStartingWith: $0) })
    else { return nil }
    bytes = [UInt8](repeating: 0, count: byteCount)
    guard try SystemCalls.read(descriptor.rawValue, into: &bytes, at: 0) == byteCount,
      let header = bytes.withUnsafeBytes({ RecordHeader($0) })
    else { return nil }
    return (header, byteCount)
  }

  /// Whether a record file is whole, but of a format that a later version of this code writes.
  ///
  /// What every format keeps: magic, format version, byte count, salt, and a checksum at the end. A
  /// header whose checksum is wrong is damaged, whatever its format version says.
  package static func isOfLaterFormat(_ descriptor: Descriptor) throws(ErrorNumber) -> Bool {
    var bytes = [UInt8](repeating: 0, count: RecordHeader.prefixByteCount)
    guard try SystemCalls.read(descriptor.rawValue, into: &bytes, at: 0) == bytes.count,
      let byteCount = bytes.withUnsafeBytes({ RecordHeader.byteCount(ofAnyFormat: $0) })
    else { return false }
    bytes = [UInt8](repeating: 0, count: byteCount)
    guard try SystemCalls.read(descriptor.rawValue, into: &bytes, at: 0) == byteCount else {
      return false
    }
    return bytes.withUnsafeBytes {
      RecordHeader.formatVersion(of: $0) > RecordHeader.formatVersion && RecordHeader.isWhole($0)
    }
  }

  /// Reads the log of a record file and checks it against the data file.
  ///
  /// - Parameters:
  ///   - log: the log, after its header.
  ///   - header: the record file's header.
  ///   - data: the bytes; nil where there are none.
  ///   - uncommitted: what to do with extents that no COMMIT covers.
  ///   - trustsCommits: whether those that one covers are believed; else they are verified too.
  /// - Throws: where a file cannot be read.
  package init(
    log: LogReader, header: RecordHeader, data: Descriptor?, uncommitted: UncommittedExtents,
    trustsCommits: Bool = true
  ) throws(ErrorNumber) {
    // The records are gone through twice, since what comes late (a COMMIT, a complete length)
    // decides about what came early, and a list of them all would need memory without bound.
    var summary = LogSummary()
    var lastExtent: UInt64 = 0
    let end = try log.read { (sequence, record) throws(ErrorNumber) in
      summary.add(record)
      if case .extent = record { lastExtent = sequence }
    }
    self.summary = summary
    if lastExtent > summary.coveredSequence, uncommitted == .verifyOnDisk, let data {
      // What cannot be written has the wrong hash, and must not fail the next sync.
      try? SystemCalls.syncData(data.rawValue)
      SystemCalls.forgetPages(data.rawValue)
    }
    recordCount = end.recordCount
    endsClean = end.endsClean

    let completeLength = summary.completeLength ?? header.version.completeLength
    var dataByteCount: Int64 = 0
    if let data { dataByteCount = try SystemCalls.status(data.rawValue).byteCount }
    let limit = min(dataByteCount, completeLength ?? .max)
    var verifier = data.map { ExtentVerifier(data: $0) }
    _ = try log.read { (sequence, record) throws(ErrorNumber) in
      guard case .extent(let offset, let byteCount, let contentHash) = record else { return }
      let range = offset..<(offset + byteCount)
      claimed.insert(range)
      let isCommitted = sequence <= summary.coveredSequence
      let isBelieved = isCommitted && trustsCommits
      // The sum was checked when the record was read.
      guard range.upperBound <= limit,
        isBelieved
          || (isCommitted || uncommitted != .discard)
            && verifier?.matches(offset: offset, byteCount: byteCount, contentHash: contentHash)
              == true
      else {
        refuted.insert(sequence)
        return
      }
      extents.insert(range)
      if isBelieved { believed.insert(range) }
      if !isCommitted { uncommittedByteCount += byteCount }
    }
  }

  /// Writes the claims that count into a new record file: the committed ones, their COMMIT, then
  /// the others.
  package func rewrite(
    log: LogReader, header: RecordHeader, salt: UInt64, name: String = RecordFile.name,
    temporaryName: String? = nil, in directory: Descriptor
  ) throws(ErrorNumber) -> RecordFile? {
    var newHeader = header
    newHeader.salt = salt
    newHeader.version.completeLength = summary.completeLength ?? header.version.completeLength
    guard let encoded = newHeader.encoded() else { return nil }
    return try RecordFile.replace(
      header: encoded, salt: salt, name: name, temporaryName: temporaryName, in: directory,
      isDurable: true
    ) {
      (file) throws(ErrorNumber) in
      func appendExtents(_ isIncluded: (UInt64) -> Bool) throws(ErrorNumber) {
        _ = try log.read { (sequence, record) throws(ErrorNumber) in
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
  }

  /// Takes the claims that no COMMIT covers off the log itself, where no new record can be written.
  ///
  /// A disk that failed to sync the data fails to sync a new record, too. If the claims stayed, the
  /// next opener would find the bytes right in the page cache, and they would vanish when the
  /// kernel drops the pages. So this syncs nothing. A loss of power may bring the claims back; they
  /// are then compared with what is on the disk.
  ///
  /// - Returns: where the next record goes, and the number of the last one.
  /// - Throws: where a committed claim does not count either, or what the file system says.
  package func cut(_ log: LogReader) throws(ErrorNumber) -> (position: Int64, sequence: UInt64) {
    let covered = summary.coveredSequence
    guard !refuted.contains(where: { $0 <= covered }) else { throw ErrorNumber(rawValue: EIO) }
    let position = log.start + Int64(covered) * Int64(LogRecord.byteCount)
    guard covered > 0 else {
      try SystemCalls.truncate(log.descriptor.rawValue, to: position)
      return (position, 0)
    }
    let commit = LogRecord.commit(
      fetchedByteCount: max(0, summary.fetchedByteCount - uncommittedByteCount),
      coveredSequence: covered)
    let words = commit.encoded(sequence: covered + 1, salt: log.salt)
    let bytes = withUnsafeBytes(of: words) { [UInt8]($0) }
    // First, over the record that is there: a COMMIT that covers what is kept comes behind it, so this
    // needs no room, and what is committed stays so at any moment.
    try SystemCalls.write(log.descriptor.rawValue, bytes, at: position)
    let end = position + Int64(bytes.count)
    try SystemCalls.truncate(log.descriptor.rawValue, to: end)
    return (end, covered + 1)
  }
}
