internal import RangeCache

/// The present bytes of a read, and the files that hold them.
///
/// Byte *n* of each file is byte *n* of the remote file. The descriptors are valid as long as the
/// value is kept.
public struct PresentBytes: Sendable {
  /// A run of the bytes in one file.
  public struct Piece: Sendable {
    public let descriptor: CInt
    public let byteCount: Int
  }

  private let keeper: any ByteKeeper
  /// The offset of the first byte in the remote file.
  public let offset: Int64
  /// In order; a single piece, except while the cache fails.
  public let pieces: [Piece]
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

  public var byteCount: Int { pieces.reduce(0) { $0 + $1.byteCount } }

  /// Reports that the cache file could not be read where the bytes should be: the next read fetches
  /// them again.
  public func reportUnreadable() {
    keeper.noteUnreadable(offset..<(offset + Int64(byteCount)))
  }
}

/// The cache file of a whole version, which the kernel can read directly.
public struct BackingFile: Sendable {
  private let entry: CacheEntry

  init(of entry: CacheEntry) { self.entry = entry }

  /// The descriptor; valid as long as the value is kept.
  public var descriptor: CInt { entry.dataDescriptor }
}

/// The immediate outcome of a read, with the location of its bytes.
public enum ReadOutcome: Sendable {
  /// The bytes are present from the requested offset on; fewer than requested at the end of the
  /// file.
  case present(PresentBytes)
  case failed(FileError)
  /// The read must wait for the bytes.
  case absent
}
