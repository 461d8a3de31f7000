internal import RangeCache

/// The bytes of a read that are present, and the files that hold them.
///
/// Byte *n* of each file is byte *n* of the remote file. The descriptors are valid as long as the
/// value is kept.
public struct PresentBytes: Sendable {
  /// A run of them in one file.
  public struct Piece: Sendable {
    public let descriptor: CInt
    public let byteCount: Int
  }

  private let keeper: any ByteKeeper
  /// Where the first of them is, in bytes from the start of the remote file.
  public let offset: Int64
  /// One after the other: one piece, but while the cache fails.
  public let pieces: [Piece]
  /// Keeps the cache's file open.
  private let entry: CacheEntry?
  /// Keeps what memory holds from being given up.
  private let lease: SpillLease?

  /// What was `located` of `keeper`; its lease ends with this value.
  init(of keeper: any ByteKeeper, _ located: LocatedBytes) {
    self.keeper = keeper
    offset = located.offset
    pieces = located.pieces
    entry = located.entry
    lease = located.lease.map { SpillLease(of: keeper, claim: $0) }
  }

  public var byteCount: Int { pieces.reduce(0) { $0 + $1.byteCount } }

  /// The cache's file could not be read, though the bytes should be there: they are fetched again by
  /// whoever reads them next.
  public func reportUnreadable() {
    keeper.noteUnreadable(offset..<(offset + Int64(byteCount)))
  }
}

/// The cache file of a whole version, for the kernel to read by itself.
public struct BackingFile: Sendable {
  private let entry: CacheEntry

  init(of entry: CacheEntry) { self.entry = entry }

  /// Valid as long as the value is kept.
  public var descriptor: CInt { entry.dataDescriptor }
}

/// What can be said about a read at once, and where its bytes are.
public enum ReadOutcome: Sendable {
  /// They are present, from the offset asked for on; fewer than asked for at the end of the file.
  case present(PresentBytes)
  case failed(FileError)
  /// They must be waited for.
  case absent
}
