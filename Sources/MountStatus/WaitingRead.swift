internal import TextFormat

/// A read that waits for bytes.
package struct WaitingRead: Sendable, Hashable, Decodable {
  /// The offset of the first byte of the read.
  package var offset: Int64

  /// How many bytes are wanted.
  package var byteCount: Int64

  /// How long the read has waited, in seconds.
  package var waitedSeconds: Double

  /// Why it waits, in a few words, such as `server stalled`.
  package var reason: String

  package init(offset: Int64, byteCount: Int64, waitedSeconds: Double, reason: String) {
    self.offset = offset
    self.byteCount = byteCount
    self.waitedSeconds = waitedSeconds
    self.reason = reason
  }

  enum CodingKeys: String, CodingKey {
    case offset
    case byteCount = "byte_count"
    case waitedSeconds = "waited_seconds"
    case reason
  }

  func write(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member(CodingKeys.offset, offset)
      writer.member(CodingKeys.byteCount, byteCount)
      writer.member(CodingKeys.waitedSeconds, waitedSeconds)
      writer.member(CodingKeys.reason, reason)
    }
  }
}
