internal import HTTPTransferCore

/// A read that has waited, and where its bytes are; they are kept until it is answered.
struct WokenRead: Sendable {
  let reply: any ReadReply
  let offset: Int64
  let pieces: [PresentBytes.Piece]
  let lease: SpillLease.Claim?

  var byteCount: Int64 { pieces.reduce(0) { $0 + Int64($1.byteCount) } }

  func succeed(_ version: RemoteVersion) {
    reply.succeed(PresentBytes(of: version, at: offset, pieces, lease: lease))
  }
}
