internal import RangeCache

/// The present bytes of a read, and the files that hold them.
///
/// Byte *n* of each file is byte *n* of the remote file. The descriptors are valid as long as the
/// value is kept.
package struct PresentBytes: Sendable {
  /// A run of the bytes in one file.
  package struct Piece: Sendable {
    package let descriptor: CInt
    package let byteCount: Int
  }

  private let keeper: any ByteKeeper
  /// The offset of the first byte in the remote file.
  package let offset: Int64
  /// In order; a single piece, except while the cache fails.
  package let pieces: [Piece]
  /// Keeps the cache's file open.
  private let entry: CacheEntry?
  /// Keeps bytes in memory from being dropped.
  private let lease: SpillLease?

  /// Takes the bytes that were `located` in `keeper`; their lease ends with this value.
  init(of keeper: any ByteKeeper, _ located: LocatedBytes) {
    self.keeper = keeper
    offset = located.offset
    pieces = located.pieces
    entry = located.entry
    lease = located.lease.map { SpillLease(of: keeper, claim: $0) }
  }

  package var byteCount: Int { pieces.reduce(0) { $0 + $1.byteCount } }

  /// Reports that the cache file could not be read where the bytes should be: the next read fetches
  /// them again.
  package func reportUnreadable() {
    keeper.recordUnreadable(offset..<(offset + Int64(byteCount)))
  }
}

/// The cache file of a whole version, which the kernel can read directly.
package struct BackingFile: Sendable {
  private let entry: CacheEntry

  init(of entry: CacheEntry) { self.entry = entry }

  /// The descriptor; valid as long as the value is kept.
  package var descriptor: CInt { entry.dataDescriptor }
}

/// The immediate outcome of a read, with the location of its bytes.
package enum ReadOutcome: Sendable {
  /// The bytes are present from the requested offset on; fewer than requested at the end of the
  /// file.
  case present(PresentBytes)
  case failed(FileError)
  /// The read must wait for the bytes.
  case absent
}
