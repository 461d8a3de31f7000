internal import ExtentRecord
internal import HTTPTransferCore

/// The result of comparing an entry's bytes with their recorded hashes.
package struct EntryCheck: Sendable, Equatable {
  /// The bytes that the record claims, each counted once.
  package let claimedByteCount: Int64

  /// The number of claimed bytes for which no claim is true: they have another hash, cannot be
  /// read, or lie behind the end of the data file.
  package let damagedByteCount: Int64

  /// Whether the record itself is damaged: its header cannot be read, or its log ends in an invalid
  /// record.
  package let isRecordDamaged: Bool

  /// Whether anything is damaged.
  package var isDamaged: Bool { damagedByteCount > 0 || isRecordDamaged }
}

extension EntryCheck {
  /// The result of a recovery that has verified every claim.
  ///
  /// If claims overlap, a byte is intact if one of them is true.
  init(_ recovery: Recovery) {
    self.init(
      claimedByteCount: recovery.claimed.byteCount,
      damagedByteCount: recovery.claimed.byteCount - recovery.extents.byteCount,
      isRecordDamaged: !recovery.endsClean)
  }
}
