internal import Glibc
package import HTTPTransferCore
package import LinuxSystem

/// Reads an entry's files and determines which bytes they prove to be present.
///
/// Each of these rules is needed for "never a wrong byte":
/// - The log ends before its first invalid record.
/// - An extent that a COMMIT covers is trusted: its bytes were on the disk before the COMMIT was
///   written.
/// - Any other extent is read and hashed; it counts if the hash matches the recorded one. If
///   another process wrote it, it is read from the disk, because pages in memory may be right
///   although the disk refused them. If its pages stay in memory, it is read past them. An
///   unchanged boot identifier would not prove that the page cache survived: the file system may
///   have been shut down, or its disk pulled. At most one checkpoint interval of bytes must be
///   read.
/// - An extent that reaches past the end of the data file or past the complete length does not
///   count. Holes of the data file prove nothing.
/// - If any claim does not count, the record is rewritten without it before anything is appended,
///   because a later COMMIT must not cover a refuted claim.
package struct Recovery {
  package private(set) var extents = ExtentSet()

  /// The extents that are trusted because a COMMIT covers them: their bytes were not read.
  package private(set) var believed = ExtentSet()
  package private(set) var summary = LogSummary()

  /// The number of bytes in extents that count but that no COMMIT covers.
  package private(set) var uncommittedByteCount: Int64 = 0

  /// All extents of the log, also those that do not count.
  package private(set) var claimed = ExtentSet()

  /// The number of valid records.
  package private(set) var recordCount: UInt64 = 0

  /// Whether the record file ends right after its last valid record.
  package private(set) var endsClean = true

  /// Whether the record file contains records or bytes that do not count.
  package var needsRewrite: Bool { !endsClean || !invalidated.isEmpty }

  /// The stamp of the data file at which all of ``extents`` were as claimed; 0 if the record has no
  /// stamp for everything that is present now.
  package var stamp: UInt64 {
    needsRewrite || uncommittedByteCount > 0 ? 0 : summary.stamp
  }

  /// Identifies the checksum that the whole file matched; 0 if none is recorded for everything that
  /// is present now.
  package var checksumMark: UInt64 { needsRewrite ? 0 : summary.checksumMark }

  /// The sequence numbers of the extents that do not count.
  private var invalidated: Set<UInt64> = []

  /// Reads the header of a record file; nil if it has another format or is damaged.
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

  /// Up to this size, a record file is read at once.
  private static let shortByteCount: Int64 = 4096

  /// Reads the header of a record file of `byteCount` bytes, and the log of a short one; nil if it
  /// has another format or is damaged.
  package static func header(
    of descriptor: Descriptor, byteCount: Int64
  ) throws(ErrorNumber) -> (header: RecordHeader, log: LogReader)? {
    if byteCount <= shortByteCount {
      var bytes = [UInt8](repeating: 0, count: Int(byteCount))
      guard try SystemCalls.read(descriptor.rawValue, into: &bytes, at: 0) == bytes.count,
        let end = bytes.withUnsafeBytes({ RecordHeader.byteCount(ofHeaderStartingWith: $0) }),
        end <= bytes.count,
        let header = bytes[..<end].withUnsafeBytes({ RecordHeader($0) })
      else { return nil }
      let log = LogReader(
        descriptor: descriptor, start: Int64(end), salt: header.salt, content: bytes[end...])
      return (header, log)
    }
    return try header(of: descriptor).map { found in
      let log = LogReader(
        descriptor: descriptor, start: Int64(found.byteCount), salt: found.header.salt)
      return (found.header, log)
    }
  }

  /// Whether a record file is complete, but in a format of a later version of this code.
  ///
  /// All formats share the magic, format version, byte count, salt, and a checksum at the end. A
  /// header with a wrong checksum is damaged, whatever its format version.
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
  ///   - data: the data file; nil if there is none.
  ///   - uncommitted: how to treat extents that no COMMIT covers.
  ///   - trustsCommits: whether to trust extents that a COMMIT covers; otherwise they are verified
  ///     too.
  /// - Throws: if a file cannot be read.
  package init(
    log: LogReader, header: RecordHeader, data: Descriptor?, uncommitted: UncommittedExtents,
    trustsCommits: Bool = true
  ) throws(ErrorNumber) {
    // Read the records twice: late records (a COMMIT, a complete length) decide about earlier ones,
    // and a list of all records would take unlimited memory.
    var summary = LogSummary()
    var lastExtent: UInt64 = 0
    let end = try log.read { (sequence, record) throws(ErrorNumber) in
      summary.add(record)
      if case .extent = record { lastExtent = sequence }
    }
    self.summary = summary
    let completeLength = summary.completeLength ?? header.version.completeLength
    var dataByteCount: Int64 = 0
    if let data { dataByteCount = try SystemCalls.status(data.rawValue).byteCount }
    let limit = min(dataByteCount, completeLength ?? .max)
    // The uncommitted extents with pages that the kernel keeps in memory.
    var kept: Set<UInt64> = []
    if lastExtent > summary.coveredSequence, uncommitted == .verifyOnDisk, let data {
      // Bytes that cannot be written have the wrong hash and must not fail the next sync.
      try? SystemCalls.syncData(data.rawValue)
      FileSystemCalls.forgetPages(data.rawValue)
      // Look before reading any bytes: the pages of the neighbours may then be in memory, too.
      _ = try log.read { (sequence, record) throws(ErrorNumber) in
        guard case .extent(let offset, let byteCount, _) = record,
          sequence > summary.coveredSequence, offset + byteCount <= limit
        else { return }
        if FileSystemCalls.keepsPages(data.rawValue, offset, byteCount: byteCount) {
          kept.insert(sequence)
        }
      }
    }
    recordCount = end.recordCount
    endsClean = end.endsClean

    var verifier = data.map { ExtentVerifier(data: $0) }
    // This reads the disk, whatever is in memory; nil if the file system cannot.
    var direct: ExtentVerifier?
    if let data, !kept.isEmpty {
      do throws(ErrorNumber) {
        direct = try SystemCalls.reopenDirectly(data).map { ExtentVerifier(direct: $0) }
      } catch {
        // A shortage refutes no claim.
        if error.isShortage { throw error }
      }
    }
    _ = try log.read { (sequence, record) throws(ErrorNumber) in
      guard case .extent(let offset, let byteCount, let contentHash) = record else { return }
      let range = offset..<(offset + byteCount)
      claimed.insert(range)
      let isCommitted = sequence <= summary.coveredSequence
      let isBelieved = isCommitted && trustsCommits
      // The sum was checked when the record was read.
      func isThere() -> Bool {
        if isBelieved { return true }
        if !isCommitted, uncommitted == .discard { return false }
        let hash = contentHash
        return kept.contains(sequence)
          ? direct?.matches(offset: offset, byteCount: byteCount, contentHash: hash) ?? false
          : verifier?.matches(offset: offset, byteCount: byteCount, contentHash: hash) ?? false
      }
      guard range.upperBound <= limit, isThere() else {
        invalidated.insert(sequence)
        return
      }
      extents.insert(range)
      if isBelieved { believed.insert(range) }
      if !isCommitted {
        uncommittedByteCount = uncommittedByteCount.saturatingSum(byteCount)
      }
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
          guard case .extent = record, isIncluded(sequence), !invalidated.contains(sequence) else {
            return
          }
          try file.append(record)
        }
      }
      try appendExtents { $0 <= summary.coveredSequence }
      // Reading this log adds the uncommitted bytes to the figure.
      try file.append(
        .commit(
          fetchedByteCount: max(0, summary.fetchedByteCount - uncommittedByteCount),
          coveredSequence: file.sequence))
      try appendExtents { $0 > summary.coveredSequence }
    }
  }

  /// Removes the uncommitted claims from the log itself, if no new record can be written.
  ///
  /// A disk that failed to sync the data also fails to sync a new record. If the claims stayed, the
  /// next process would find the right bytes in the page cache, and they would vanish when the
  /// kernel drops the pages. So this function syncs nothing. A loss of power may restore the
  /// claims; recovery then compares them with the disk.
  ///
  /// - Returns: the offset of the next record, and the number of the last one.
  /// - Throws: an error if a committed claim does not count either, or if the file system fails.
  package func cut(_ log: LogReader) throws(ErrorNumber) -> (position: Int64, sequence: UInt64) {
    let covered = summary.coveredSequence
    guard !invalidated.contains(where: { $0 <= covered }) else { throw ErrorNumber(rawValue: EIO) }
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
    // Write this first, over the record after the covered ones, which exists because the old COMMIT
    // follows them. So this needs no space, and committed claims stay committed at every moment.
    try SystemCalls.write(log.descriptor.rawValue, bytes, at: position)
    let end = position + Int64(bytes.count)
    try SystemCalls.truncate(log.descriptor.rawValue, to: end)
    return (end, covered + 1)
  }
}
