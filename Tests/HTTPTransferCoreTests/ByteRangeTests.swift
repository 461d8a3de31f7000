import HTTPTransferCore
import Testing

@Suite struct ByteRangeTests {
  @Test("A range field names the first and the last byte")
  func rangeField() {
    #expect((0..<1).rangeField == "bytes=0-0")
    #expect((500..<1000).rangeField == "bytes=500-999")
    #expect((0..<Int64.max).rangeField == "bytes=0-")
  }

  @Test(
    "A range of an offset and a count saturates instead of overflowing",
    arguments: [
      (0, 10, 0..<10), (5, 0, 5..<5), (5, -1, 5..<5), (5, .min, 5..<5),
      (.max - 1, 1, (.max - 1)..<(.max)), (.max - 1, 2, (.max - 1)..<(.max)),
      (.max, 1, (.max)..<(.max)), (10, .max, 10..<(.max)),
    ] as [(Int64, Int64, ByteRange)])
  func saturates(offset: Int64, byteCount: Int64, expected: ByteRange) {
    let range = ByteRange(offset: offset, byteCount: byteCount)
    #expect(range == expected)
    #expect(range.byteCount == expected.upperBound - expected.lowerBound)
  }

  @Test(
    "Alignment grows a range to whole pages, but not beyond the limit",
    arguments: [
      (0..<1, 10_000, 0..<4096), (4095..<4097, 10_000, 0..<8192),
      (4096..<8192, 10_000, 4096..<8192), (8191..<8193, 10_000, 4096..<10_000),
      (9000..<9001, 9500, 8192..<9500), (5000..<5000, 10_000, 4096..<8192),
      // A limit below the range leaves no bytes.
      (9000..<9100, 100, 8192..<8192),
      ((.max - 1)..<(.max), .max, (.max - 4095)..<(.max)),
    ] as [(ByteRange, Int64, ByteRange)])
  func alignment(range: ByteRange, limit: Int64, expected: ByteRange) {
    #expect(range.aligned(to: 4096, limit: limit) == expected)
  }
}
