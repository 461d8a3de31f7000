/// A read that has waited, and the location of its bytes, which are kept until it is answered.
struct WokenRead: Sendable {
  let read: UnansweredRead
  let located: LocatedBytes

  var byteCount: Int64 { located.pieces.reduce(0) { $0 + Int64($1.byteCount) } }
}
