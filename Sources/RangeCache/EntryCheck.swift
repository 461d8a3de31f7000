internal import ExtentRecord
internal import HTTPTransferCore

/// What a comparison of an entry's bytes with their recorded hashes has shown.
public struct EntryCheck: Sendable, Equatable {
  /// The bytes that the record claims, each counted once.
  public let claimedByteCount: Int64

  /// Those of them that no claim is right about: their hash is another, they cannot be read, or
  /// the data file ends before them.
  public let damagedByteCount: Int64

  /// Whether the record itself is damaged: its header cannot be read, or its log ends in something
  /// that is no record.
  public let isRecordDamaged: Bool

  /// Whether anything is not as it was written.
  public var isDamaged: Bool { damagedByteCount > 0 || isRecordDamaged }
}

extension EntryCheck {
  /// What a recovery that has verified every claim found; where claims overlap, a byte is right if
  /// one of them is.
  init(_ recovery: Recovery) {
    self.init(
      claimedByteCount: recovery.claimed.byteCount,
      damagedByteCount: recovery.claimed.byteCount - recovery.extents.byteCount,
      isRecordDamaged: !recovery.endsClean)
  }
}
