import OriginContent
import Testing

struct OriginContentTests {
  @Test("A piece at any offset and of any length equals that piece of the whole")
  func piecesEqualTheWhole() {
    let whole = OriginContent.bytes(seed: 7, version: 3, range: 0..<200)
    for first in 0..<40 {
      for count in 0..<40 {
        let range = Int64(first)..<Int64(first + count)
        #expect(
          OriginContent.bytes(seed: 7, version: 3, range: range)
            == Array(whole[first..<(first + count)]))
      }
    }
  }

  @Test("The bytes never change: other programs and stored checksums rely on them")
  func bytesAreFixed() {
    #expect(
      OriginContent.bytes(seed: 1, version: 1, range: 0..<8)
        == Self.reference(seed: 1, version: 1, word: 0))
    #expect(
      OriginContent.bytes(seed: .max, version: 9, range: (8 << 40)..<(8 << 40) + 8)
        == Self.reference(seed: .max, version: 9, word: 1 << 40))
  }

  @Test("Seed, version and offset each make other bytes")
  func everyInputCounts() {
    let bytes = OriginContent.bytes(seed: 1, version: 1, range: 0..<64)
    #expect(bytes != OriginContent.bytes(seed: 2, version: 1, range: 0..<64))
    #expect(bytes != OriginContent.bytes(seed: 1, version: 2, range: 0..<64))
    #expect(bytes != OriginContent.bytes(seed: 1, version: 1, range: 64..<128))
  }

  @Test("A word that was read at a wrong place tells where it belongs")
  func wordsNameTheirOffset() {
    for offset in [0, 8, 4096, 1 << 33, 8 * ((1 << 50) - 1)] as [Int64] {
      let bytes = OriginContent.bytes(seed: 5, version: 2, range: offset..<(offset + 7))
      let last = OriginContent.bytes(seed: 5, version: 2, range: (offset + 7)..<(offset + 8))
      let word = (bytes + last).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      #expect(OriginContent.offset(ofWord: word, seed: 5, version: 2) == offset)
      #expect(OriginContent.offset(ofWord: word, seed: 5, version: 3) == nil)
    }
  }

  @Test("The first wrong byte is found, and none where all are right", arguments: [0, 1, 70_001])
  func findsTheFirstMismatch(index: Int) {
    var bytes = OriginContent.bytes(seed: 1, range: 13..<200_013)
    let isRight = bytes.withUnsafeBytes {
      OriginContent.firstMismatch(in: $0, seed: 1, offset: 13) == nil
    }
    #expect(isRight)
    bytes[index] ^= 1
    bytes[199_999] ^= 1
    let found = bytes.withUnsafeBytes { OriginContent.firstMismatch(in: $0, seed: 1, offset: 13) }
    #expect(found == index)
  }

  /// An independent definition of the content.
  private static func reference(seed: UInt64, version: UInt64, word: UInt64) -> [UInt8] {
    func mix(_ counter: UInt64) -> UInt64 {
      let first = (counter ^ (counter >> 30)) &* 0xBF58_476D_1CE4_E5B9
      let second = (first ^ (first >> 27)) &* 0x94D0_49BB_1331_11EB
      return second ^ (second >> 31)
    }
    let golden: UInt64 = 0x9E37_79B9_7F4A_7C15
    let key = mix(mix(seed &+ golden) ^ (version &* 0xBF58_476D_1CE4_E5B9))
    let value = mix(key &+ word &* golden)
    return (0..<8).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) }
  }
}
