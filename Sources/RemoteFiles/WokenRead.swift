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

/// A read that has waited, and where its bytes are; they are kept until it is answered.
struct WokenRead: Sendable {
  let read: UnansweredRead
  let located: LocatedBytes

  var byteCount: Int64 { located.pieces.reduce(0) { $0 + Int64($1.byteCount) } }

  /// Answers the read, or has it wait on where its bytes are lost already.
  func succeed(_ version: RemoteVersion) {
    // The lease ends with `bytes`, whatever becomes of the read.
    let bytes = PresentBytes(of: version, located)
    guard version.isIntact(located) else { return version.wait(for: read) }
    read.reply.succeed(bytes)
  }
}
