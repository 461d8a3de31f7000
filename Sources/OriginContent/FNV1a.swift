/// The 64-bit FNV-1a hash of bytes that arrive in pieces.
package struct FNV1a: Equatable, Sendable {
  private static let prime: UInt64 = 0x100_0000_01B3

  /// The hash of the bytes so far; the offset basis before the first byte.
  package private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  package init() {}

  /// Adds bytes, at just under 1 GB/s because each multiplication depends on the previous one.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var value = value
    for byte in bytes { value = (value ^ UInt64(byte)) &* Self.prime }
    self.value = value
  }

  /// The hash as `0x` and 16 hexadecimal digits.
  package var text: String {
    let digits = String(value, radix: 16)
    return "0x" + String(repeating: "0", count: 16 - digits.count) + digits
  }
}
