/// The hash FNV-1a of 64 bits, of bytes that come in pieces.
public struct FNV1a: Equatable, Sendable {
  private static let prime: UInt64 = 0x100_0000_01B3

  /// The hash of the bytes so far; the offset basis where there are none.
  public private(set) var value: UInt64 = 0xCBF2_9CE4_8422_2325

  public init() {}

  /// Adds bytes; as many as the multiplications of a dependent chain allow, just under 1 GB/s.
  public mutating func update(_ bytes: UnsafeRawBufferPointer) {
    var value = value
    for byte in bytes { value = (value ^ UInt64(byte)) &* Self.prime }
    self.value = value
  }

  /// The hash as `0x` and 16 hexadecimal digits.
  public var text: String {
    let digits = String(value, radix: 16)
    return "0x" + String(repeating: "0", count: 16 - digits.count) + digits
  }
}
