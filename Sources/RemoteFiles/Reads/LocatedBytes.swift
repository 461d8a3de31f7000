internal import HTTPTransferCore
internal import RangeCache

/// Where present bytes lie; with a lease on those in memory, which the receiver must end.
struct LocatedBytes: Sendable {
  /// The offset of the first byte in the remote file.
  let offset: Int64
  var pieces: [PresentBytes.Piece] = []
  /// The cache entry that holds some of the bytes, if any.
  var entry: CacheEntry?
  /// The end of the cached bytes, in the remote file as in the data file.
  var cachedEnd: Int64
  var lease: SpillClaim?
}
