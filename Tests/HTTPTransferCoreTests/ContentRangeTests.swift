import HTTPTransferCore
import SeededRandom
import Testing

@Suite struct ContentRangeTests {
  @Test(
    "A well-formed field is understood",
    arguments: [
      ("bytes 0-0/1", ContentRange(range: 0..<1, completeLength: 1)),
      ("bytes 0-499/1234", ContentRange(range: 0..<500, completeLength: 1234)),
      ("bytes 500-1233/1234", ContentRange(range: 500..<1234, completeLength: 1234)),
      ("bytes 42-1233/*", ContentRange(range: 42..<1234, completeLength: nil)),
      ("bytes */1234", ContentRange(range: nil, completeLength: 1234)),
      ("bytes */0", ContentRange(range: nil, completeLength: 0)),
      ("BYTES 1-2/3", ContentRange(range: 1..<3, completeLength: 3)),
      ("bytes\t 1-2/3 ", ContentRange(range: 1..<3, completeLength: 3)),
      ("bytes 007-008/009", ContentRange(range: 7..<9, completeLength: 9)),
      (
        "bytes 0-1152921504606846975/1152921504606846976",
        ContentRange(range: 0..<(1 << 60), completeLength: 1 << 60)
      ),
    ])
  func wellFormed(field: String, expected: ContentRange) {
    #expect(ContentRange(field: field) == expected)
  }

  @Test(
    "A field that is malformed or contradicts itself is no range at all",
    arguments: [
      "", "bytes", "bytes ", "bytes 0-1", "bytes 0-1/", "bytes /10", "bytes 0/10", "bytes -/10",
      "bytes -1/10", "bytes 1-/10", "bytes 0-1-2/10", "bytes 0-1/10/10", "bytes=0-1/10",
      "bytes0-1/10", "items 0-1/10", "byte 0-1/10", "bytes: 0-1/10", "bytes */*", "bytes */",
      "bytes */-1", "bytes 0-1/+10", "bytes +0-1/10", "bytes 0-1/1e1", "bytes 0x0-1/10",
      "bytes 0 - 1/10", "bytes 0-1 /10", "bytes 0-1/ 10", "bytes 0-1/10, 2-3/10",
      // Non-ASCII digits are no digits.
      "bytes ٠-١/١٠", "bytes 0-１/10",
      // The last byte is before the first, at the length, or after it.
      "bytes 2-1/10", "bytes 0-10/10", "bytes 0-11/10", "bytes 0-0/0", "bytes 10-19/10",
      // Numbers beyond the maximum offset of a file.
      "bytes 0-1/1152921504606846977", "bytes */1152921504606846977",
      "bytes 0-1152921504606846976/*", "bytes 0-1/9223372036854775807",
      "bytes 0-9223372036854775807/*", "bytes 0-1/9223372036854775808",
      "bytes 9223372036854775808-9223372036854775809/*", "bytes */99999999999999999999999",
      "bytes 18446744073709551616-18446744073709551617/*",
    ])
  func malformed(field: String) {
    #expect(ContentRange(field: field) == nil)
  }

  @Test("Mutated fields never trap and never give an impossible range", arguments: 1...4)
  func mutations(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    let alphabet = Array("0123456789-/* \tbytesBYTES+,;=\u{0}é".utf8)
    for _ in 0..<25_000 {
      var bytes = Array("bytes 512-1023/1152921504606846975".utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        let byte = alphabet.randomElement(using: &random) ?? 0
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[index] = byte
        case 1: bytes.insert(byte, at: index)
        default: bytes.remove(at: index)
        }
      }
      guard let parsed = ContentRange(field: String(decoding: bytes, as: UTF8.self)) else {
        continue
      }
      let isSound: Bool
      switch (parsed.range, parsed.completeLength) {
      case (let range?, let length):
        isSound =
          !range.isEmpty && range.lowerBound >= 0
          && range.upperBound <= length ?? .maximumFileOffset
      case (nil, let length): isSound = length.map { $0 >= 0 } ?? false
      }
      #expect(isSound, "\(String(decoding: bytes, as: UTF8.self))")
    }
  }

  @Test(
    "A number is ASCII digits and nothing else",
    arguments: [
      ("0", 0), ("00", 0), ("9223372036854775807", .max), ("9223372036854775808", nil), ("", nil),
      ("-1", nil), ("+1", nil), (" 1", nil), ("1 ", nil), ("1_0", nil), ("1.0", nil), ("١", nil),
    ] as [(String, Int64?)])
  func digits(text: String, expected: Int64?) {
    #expect(Int64(digits: text) == expected)
  }
}
