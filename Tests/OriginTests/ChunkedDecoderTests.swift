import OriginContent
import Testing

struct ChunkedDecoderTests {
  /// The result of decoding text in pieces, and the number of bytes used.
  private func decode(
    _ text: String, pieceByteCount: Int
  ) throws -> (body: String, used: Int, isAtEnd: Bool) {
    let bytes = Array(text.utf8)
    var decoder = ChunkedDecoder()
    var body: [UInt8] = []
    var used = 0
    for start in stride(from: 0, to: bytes.count, by: pieceByteCount) where !decoder.isAtEnd {
      let piece = bytes[start..<min(start + pieceByteCount, bytes.count)]
      used += try piece.withUnsafeBytes { piece throws(ChunkedDecoder.Malformed) in
        try decoder.decode(piece) { body += $0 }
      }
    }
    return (String(decoding: body, as: UTF8.self), used, decoder.isAtEnd)
  }

  @Test("Chunks give the body however they are cut, and end where they say", arguments: 1...40)
  func decodesPieces(pieceByteCount: Int) throws {
    let text = "5;name=value\r\nhello\r\n00c \r\n, and a more\r\n0\r\nTrailer: x\r\n\r\n"
    let result = try decode(text + "GET /", pieceByteCount: pieceByteCount)
    #expect(result.body == "hello, and a more")
    #expect(result.used == text.utf8.count)
    #expect(result.isAtEnd)
  }

  @Test("An empty body is its last chunk")
  func emptyBody() throws {
    #expect(try decode("0\r\n\r\n", pieceByteCount: 99).isAtEnd)
    #expect(try !decode("0\r\n\r", pieceByteCount: 99).isAtEnd)
    #expect(try !decode("0\r\nA: b\r\n", pieceByteCount: 99).isAtEnd)
  }

  @Test(
    "What are no chunks is refused",
    arguments: ["\r\n", "x", "-1\r\n", "5hello", "2\r\nabc", "2\r\nab\rc", "1234567890abcdef\r\n"])
  func refusesMalformedChunks(text: String) {
    #expect(throws: ChunkedDecoder.Malformed.self) { try decode(text, pieceByteCount: 99) }
  }
}
