internal import HTTPTransferCore

/// One claim in a record file's log.
///
/// Claims only add, so every prefix of a log is true on its own.
package enum LogRecord: Equatable {
  /// The bytes `offset ..< offset + byteCount` of the data file hash to `contentHash`.
  case extent(offset: Int64, byteCount: Int64, contentHash: UInt64)

  /// Every extent up to the record `coveredSequence` is on the disk, and not only in its caches.
  /// `fetchedByteCount` is the number of body bytes received for this entry so far. `stamp` is the
  /// data file's ``FileFingerprint/digest(bootID:salt:)`` at a moment when every extent of the log
  /// was as claimed; 0 for no such statement.
  case commit(fetchedByteCount: Int64, coveredSequence: UInt64, stamp: UInt64 = 0)

  /// The complete length is now known, or differs from the one recorded before. `mark` identifies
  /// the checksum that all bytes of the log so far matched; 0 for no such statement.
  case completeLength(Int64, mark: UInt64 = 0)

  /// All records have the same size, so the sequence number gives the offset.
  package static let byteCount = 48

  private enum Kind: UInt64 {
    case extent = 1
    case commit = 2
    case completeLength = 3
  }

  /// A record as stored: six 64-bit words, the first of them the checksum of the others.
  package typealias Words = (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

  /// The record as stored.
  package func encoded(sequence: UInt64, salt: UInt64) -> Words {
    let kind: Kind
    let payload: (UInt64, UInt64, UInt64)
    switch self {
    case .extent(let offset, let byteCount, let contentHash):
      kind = .extent
      payload = (UInt64(bitPattern: offset), UInt64(bitPattern: byteCount), contentHash)
    case .commit(let fetchedByteCount, let coveredSequence, let stamp):
      kind = .commit
      payload = (UInt64(bitPattern: fetchedByteCount), coveredSequence, stamp)
    case .completeLength(let length, let mark):
      kind = .completeLength
      payload = (UInt64(bitPattern: length), 0, mark)
    }
    var words: Words = (
      0, sequence.littleEndian, kind.rawValue.littleEndian, payload.0.littleEndian,
      payload.1.littleEndian, payload.2.littleEndian
    )
    words.0 = withUnsafeBytes(of: words) { Self.checksum($0, salt: salt) }.littleEndian
    return words
  }

  /// Reads the record at `bytes` (``byteCount`` of them), which must have the number `sequence`;
  /// nil if it is damaged, out of order or inconsistent.
  package init?(_ bytes: UnsafeRawBufferPointer, sequence: UInt64, salt: UInt64) {
    guard bytes.count == Self.byteCount,
      bytes.integer(at: 0, as: UInt64.self) == Self.checksum(bytes, salt: salt),
      bytes.integer(at: 8, as: UInt64.self) == sequence,
      let kind = Kind(rawValue: bytes.integer(at: 16, as: UInt64.self))
    else { return nil }
    let first = bytes.integer(at: 24, as: Int64.self)
    // A negative offset, byte count or length is never written.
    guard first >= 0 else { return nil }
    switch kind {
    case .extent:
      let byteCount = bytes.integer(at: 32, as: Int64.self)
      guard byteCount > 0, byteCount <= Int64.maximumFileOffset,
        first <= Int64.maximumFileOffset - byteCount
      else { return nil }
      self = .extent(
        offset: first, byteCount: byteCount,
        contentHash: bytes.integer(at: 40, as: UInt64.self))
    case .commit:
      let coveredSequence = bytes.integer(at: 32, as: UInt64.self)
      guard coveredSequence < sequence else { return nil }
      self = .commit(
        fetchedByteCount: first, coveredSequence: coveredSequence,
        stamp: bytes.integer(at: 40, as: UInt64.self))
    case .completeLength:
      guard first <= Int64.maximumFileOffset else { return nil }
      self = .completeLength(first, mark: bytes.integer(at: 40, as: UInt64.self))
    }
  }

  private static func checksum(_ bytes: UnsafeRawBufferPointer, salt: UInt64) -> UInt64 {
    ContentHash.hash(UnsafeRawBufferPointer(rebasing: bytes[8...]), seed: salt)
  }
}
