internal import HTTPTransferCore
internal import RangeCache

/// Where bytes are that are there; with a lease on those that memory holds, which its taker must end.
struct LocatedBytes: Sendable {
  /// Where the first of them is, in bytes from the start of the remote file.
  let offset: Int64
  var pieces: [PresentBytes.Piece] = []
  /// The cache's entry that holds some of them, where it holds any.
  var entry: CacheEntry?
  /// Where those end that the cache holds, in the remote file as in the data file.
  var cachedEnd: Int64
  var lease: SpillClaim?
}
