/// The checksum at the end of a coded stream.
struct Checksum {
  private enum Kind {
    case crc32
    case adler32
  }

  /// CRC-32 of gzip (RFC 1952 §8).
  static let crc32 = Checksum(kind: .crc32, state: .max)

  /// Adler-32 of zlib (RFC 1950 §8).
  static let adler32 = Checksum(kind: .adler32, state: 1)

  /// The CRC-32 of each byte, for the reflected polynomial.
  private static let table: [UInt32] = (0..<256).map { byte in
    (0..<8).reduce(UInt32(byte)) { value, _ in
      value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1
    }
  }

  /// The largest prime below 2¹⁶.
  private static let adlerModulus: UInt32 = 65_521

  /// The maximum number of bytes before the sums must be reduced.
  private static let adlerRun = 5552

  private let kind: Kind
  private var state: UInt32

  private init(kind: Kind, state: UInt32) {
    self.kind = kind
    self.state = state
  }

  /// The checksum of the bytes so far.
  var value: UInt32 { kind == .crc32 ? ~state : state }

  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    switch kind {
    case .crc32:
      var value = state
      Self.table.withUnsafeBufferPointer { table in
        for byte in bytes {
          value = table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] ^ (value >> 8)
        }
      }
      state = value
    case .adler32:
      var low = state & 0xFFFF
      var high = state >> 16
      var position = 0
      while position < bytes.count {
        let end = min(position + Self.adlerRun, bytes.count)
        for byte in bytes[position..<end] {
          low &+= UInt32(byte)
          high &+= low
        }
        low %= Self.adlerModulus
        high %= Self.adlerModulus
        position = end
      }
      state = high << 16 | low
    }
  }
}
