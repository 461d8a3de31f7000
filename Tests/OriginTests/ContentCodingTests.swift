import OriginContent
import Testing

struct ContentCodingTests {
  /// The coded form of content, made in pieces.
  private func code(
    _ coding: ContentCoding, _ content: [UInt8], pieceByteCount: Int = .max
  ) -> [UInt8] {
    let byteCount = Int(coding.codedByteCount(contentByteCount: Int64(content.count)))
    var stream = CodedStream(coding: coding, contentByteCount: Int64(content.count))
    var coded: [UInt8] = []
    while coded.count < byteCount {
      var piece = [UInt8](repeating: 0, count: min(pieceByteCount, byteCount - coded.count))
      let isFilled = piece.withUnsafeMutableBytes { piece in
        stream.fill(piece) { buffer, offset in
          buffer.copyBytes(from: content[Int(offset)..<(Int(offset) + buffer.count)])
          return true
        }
      }
      #expect(isFilled)
      coded += piece
    }
    return coded
  }

  /// The content of stored blocks (RFC 1951 §3.2.4) and the bytes after the last; nil if they are
  /// malformed.
  private func inflate(_ bytes: ArraySlice<UInt8>) -> (content: [UInt8], trailer: [UInt8])? {
    var rest = bytes
    var content: [UInt8] = []
    while rest.count >= 5 {
      let head = Array(rest.prefix(5))
      let length = Int(head[1]) | Int(head[2]) << 8
      guard head[0] <= 1, head[1] == ~head[3], head[2] == ~head[4], rest.count >= 5 + length
      else { return nil }
      content += rest.dropFirst(5).prefix(length)
      rest = rest.dropFirst(5 + length)
      if head[0] == 1 { return (content, Array(rest)) }
    }
    return nil
  }

  @Test("A gzip stream has the header, CRC-32 and length of RFC 1952")
  func gzip() throws {
    let coded = code(.gzip, Array("123456789".utf8))
    #expect(coded.prefix(10) == [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF])
    let (content, trailer) = try #require(inflate(coded.dropFirst(10)))
    #expect(content == Array("123456789".utf8))
    // The check value of CRC-32 is CBF43926.
    #expect(trailer == [0x26, 0x39, 0xF4, 0xCB, 9, 0, 0, 0])
  }

  @Test("A deflate stream has the header and Adler-32 of RFC 1950")
  func deflate() throws {
    let coded = code(.deflate, Array("Wikipedia".utf8))
    #expect((Int(coded[0]) << 8 | Int(coded[1])).isMultiple(of: 31))
    let (content, trailer) = try #require(inflate(coded.dropFirst(2)))
    #expect(content == Array("Wikipedia".utf8))
    #expect(trailer == [0x11, 0xE6, 0x03, 0x98])
  }

  @Test(
    "Content of any length is whole, and of the length that was said",
    arguments: [0, 1, 65_534, 65_535, 65_536, 131_070, 131_071],
    [ContentCoding.gzip, .deflate])
  func lengths(length: Int, coding: ContentCoding) throws {
    let content = OriginContent.bytes(seed: 1, range: 0..<Int64(length))
    let headerByteCount = coding == .gzip ? 10 : 2
    let (decoded, trailer) = try #require(
      inflate(code(coding, content).dropFirst(headerByteCount)))
    #expect(decoded == content)
    #expect(trailer.count == (coding == .gzip ? 8 : 4))
  }

  @Test("A stream is the same in pieces of any length", arguments: [1, 3, 4096, 65_540])
  func pieces(pieceByteCount: Int) {
    let content = OriginContent.bytes(seed: 1, range: 0..<70_000)
    for coding in [ContentCoding.gzip, .deflate] {
      #expect(code(coding, content, pieceByteCount: pieceByteCount) == code(coding, content))
    }
  }

  @Test("The Adler-32 of many large bytes does not overflow")
  func adlerOfLargeBytes() {
    let content = [UInt8](repeating: 0xFF, count: 200_000)
    var low: UInt64 = 1
    var high: UInt64 = 0
    for byte in content {
      low = (low + UInt64(byte)) % 65_521
      high = (high + low) % 65_521
    }
    let expected = [high >> 8, high, low >> 8, low].map { UInt8(truncatingIfNeeded: $0) }
    #expect(Array(code(.deflate, content).suffix(4)) == expected)
  }

  @Test("Content that ends early is no stream")
  func missingContent() {
    var stream = CodedStream(coding: .gzip, contentByteCount: 9)
    var piece = [UInt8](repeating: 0, count: 20)
    let isFilled = piece.withUnsafeMutableBytes { stream.fill($0) { _, _ in false } }
    #expect(!isFilled)
  }

  @Test(
    "A client accepts a coding by name or by wildcard, unless it refuses it",
    arguments: [
      (nil, false), ("", false), ("gzip", true), ("GZIP", true), ("x-gzip", true),
      ("deflate, gzip;q=0.1", true), ("gzip;q=0", false), ("gzip; q=0.0, *", false),
      ("*", true), ("*;q=0", false), ("br", false), ("gzipped", false),
    ] as [(String?, Bool)])
  func accepts(field: String?, expected: Bool) {
    #expect(ContentCoding.gzip.isAccepted(by: field) == expected)
  }
}
