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
