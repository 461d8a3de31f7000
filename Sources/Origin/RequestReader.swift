import Glibc
import OriginContent

/// Reads a client's request heads and the raw bytes of its bodies.
final class RequestReader {
  /// The maximum size of a request head, more than any real client sends.
  private static let headLimit = 64 << 10

  /// The next item on a connection.
  enum Next {
    /// The bytes of a head without the empty line at its end.
    case head(ArraySlice<UInt8>)
    case tooLargeHead
    /// The client is done.
    case end
  }

  private let socket: Socket

  /// Bytes received and not yet used.
  private var pending: [UInt8] = []

  init(socket: Socket) {
    self.socket = socket
  }

  /// Reads to the end of the next head.
  func nextHead() throws(Socket.Disconnected) -> Next {
    var searched = 0
    while true {
      // Empty lines before a request are skipped (RFC 9112 §2.2).
      while searched == 0, pending.first == 0x0D || pending.first == 0x0A { pending.removeFirst() }
      if let end = Self.endOfHead(pending, from: searched) {
        let head = pending[..<end]
        pending.removeSubrange(..<(end + 4))
        return .head(head)
      }
      if pending.count > Self.headLimit { return .tooLargeHead }
      searched = max(0, pending.count - 3)
      guard try receive() else { return .end }
    }
  }

  /// Reads at least one byte into the buffer; 0 at the end of the stream.
  ///
  /// The bytes that arrived with a head come first.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(Socket.Disconnected) -> Int {
    guard !pending.isEmpty else { return try socket.receive(into: buffer) }
    let byteCount = min(buffer.count, pending.count)
    buffer.copyBytes(from: pending[..<byteCount])
    pending.removeSubrange(..<byteCount)
    return byteCount
  }

  /// Puts back bytes that were read but belong to the next request.
  func unread(_ bytes: UnsafeRawBufferPointer) { pending.insert(contentsOf: bytes, at: 0) }

  /// The index at which `\r\n\r\n` begins, at or after `start`.
  private static func endOfHead(_ bytes: [UInt8], from start: Int) -> Int? {
    guard bytes.count >= 4 else { return nil }
    return (start...(bytes.count - 4)).first { index in
      bytes[index] == 0x0D && bytes[index + 1] == 0x0A && bytes[index + 2] == 0x0D
        && bytes[index + 3] == 0x0A
    }
  }

  /// Receives some bytes into `pending`; false at the end of the stream.
  private func receive() throws(Socket.Disconnected) -> Bool {
    let result = withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 16) {
      buffer -> Result<Int, Socket.Disconnected> in
      Result { () throws(Socket.Disconnected) -> Int in
        let count = try socket.receive(into: buffer)
        pending += buffer[..<count]
        return count
      }
    }
    return try result.get() > 0
  }
}
