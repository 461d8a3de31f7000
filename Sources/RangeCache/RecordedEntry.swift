import ExtentRecord
package import HTTPTransferCore
package import LinuxSystem

/// What the record of an entry says of a file, for a look that needs none of its bytes.
///
/// Its extents may prove to be absent once the entry is opened to be read.
package struct RecordedEntry: Sendable {
  /// The version of the bytes.
  package let version: ContentVersion
  /// The URL of the server that described the version, if there are several servers.
  package let reference: String?
  /// The extents that a COMMIT covers, or that were found to be right.
  package let extents: ExtentSet
  /// The extents that are not verified yet.
  package let believed: ExtentSet
  /// The stamp of the data file when ``extents`` were determined; nil if it was not looked at.
  package let dataStamp: FileFingerprint?
  /// The number of body bytes fetched for this entry.
  package let fetchedByteCount: Int64
  /// The number of bytes that only a read of the disk could confirm: no COMMIT covers them.
  ///
  /// ``extents`` may contain some of them, from an earlier store.
  let unconfirmedByteCount: Int64
  private let mark: ChecksumMark

  /// Whether there are unconfirmed extents that are worth the sync and the read that confirm them.
  ///
  /// The first answer of a server brings one byte, for each file that a program lists. It is not
  /// worth that, unless it completes the file.
  var isWorthConfirming: Bool {
    unconfirmedByteCount > 1
      || unconfirmedByteCount == 1 && extents.byteCount + 1 == version.completeLength
  }

  /// What an opened entry says.
  package init(_ entry: CacheEntry) {
    version = entry.recoveredVersion
    reference = entry.reference
    extents = entry.recoveredExtents
    believed = entry.believedExtents
    dataStamp = entry.dataStamp
    fetchedByteCount = entry.recoveredFetchedByteCount
    unconfirmedByteCount = 0
    mark = entry.checksumMark
  }

  /// What the record alone says; nil if it must be repaired first, or if its data file is missing.
  init?(_ files: StoredFiles) throws(ErrorNumber) {
    guard let dataByteCount = try files.dataByteCount() else { return nil }
    var summary = LogSummary()
    let end = try files.log.read { (_, record) throws(ErrorNumber) in summary.add(record) }
    guard end.endsClean else { return nil }
    var version = files.header.version
    version.completeLength = summary.completeLength ?? version.completeLength
    let limit = min(dataByteCount, version.completeLength ?? .max)
    var extents = ExtentSet()
    var unconfirmed = ExtentSet()
    _ = try files.log.read { (sequence, record) throws(ErrorNumber) in
      guard case .extent(let offset, let byteCount, _) = record else { return }
      let range = offset..<(offset + byteCount)
      if sequence <= summary.coveredSequence {
        extents.insert(range)
      } else {
        // The records may be forged: extents that overlap must not be added up.
        unconfirmed.insert(range)
      }
    }
    for claims in [extents, unconfirmed] {
      guard (claims.extents.last?.upperBound ?? 0) <= limit else { return nil }
    }
    unconfirmedByteCount = unconfirmed.byteCount
    self.version = version
    self.extents = extents
    reference = files.header.reference
    believed = extents
    dataStamp = nil
    fetchedByteCount = summary.fetchedByteCount
    mark = ChecksumMark(
      rawValue: unconfirmedByteCount > 0 ? 0 : summary.checksumMark, salt: files.header.salt)
  }

  /// Whether there are extents that only a read of the disk could confirm.
  package var hasUnconfirmed: Bool { unconfirmedByteCount > 0 }

  /// Whether the record says that the whole file matched `checksum`, and no bytes were stored
  /// since.
  package func isRecorded(_ checksum: Checksum) -> Bool { mark.is(checksum) }
}

/// The checksum that the whole file matched after the last store, as a record names it.
struct ChecksumMark: Sendable {
  /// 0 if none is recorded.
  let rawValue: UInt64
  let salt: UInt64

  func `is`(_ checksum: Checksum) -> Bool { rawValue == Self.value(of: checksum, salt: salt) }

  static func value(of checksum: Checksum, salt: UInt64) -> UInt64 {
    let text = Array(checksum.description.utf8)
    // 0 means no checksum.
    return max(1, text.withUnsafeBytes { ContentHash.hash($0, seed: salt) })
  }
}
