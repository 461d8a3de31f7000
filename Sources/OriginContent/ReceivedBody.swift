/// The received part of a request's body; its bytes are only kept on request.
package struct ReceivedBody: Equatable, Sendable {
  /// The bytes so far, without the framing of chunks.
  package private(set) var byteCount: Int64 = 0

  /// The hash of the bytes so far.
  package private(set) var hash = FNV1a()

  /// The first bytes, as many as requested.
  package private(set) var kept: [UInt8] = []

  package init() {}

  /// Adds bytes, of which those among the first `keptByteCount` of the body are kept.
  package mutating func append(_ bytes: UnsafeRawBufferPointer, keeping keptByteCount: Int) {
    byteCount += Int64(bytes.count)
    hash.update(bytes)
    kept += bytes.prefix(max(0, keptByteCount - kept.count))
  }
}
