internal import HTTPTransferCore
internal import RangeCache

/// A read that has waited, and where its bytes are; they are kept until it is answered.
struct WokenRead: Sendable {
  let read: ParkedRead
  /// The cache's entry that holds them, where it holds any.
  let entry: CacheEntry?
  let offset: Int64
  let pieces: [PresentBytes.Piece]
  let lease: SpillLease.Claim?

  var byteCount: Int64 { pieces.reduce(0) { $0 + Int64($1.byteCount) } }

  /// Answers the read, or has it wait on where its bytes are lost already.
  func succeed(_ version: RemoteVersion) {
    // The lease ends with `bytes`, whatever becomes of the read.
    let bytes = PresentBytes(of: version, at: offset, pieces, lease: lease)
    if let entry, entry.hasLostWrites {
      version.loseWrites(of: entry)
      return version.wait(for: read)
    }
    read.reply.succeed(bytes)
  }
}
