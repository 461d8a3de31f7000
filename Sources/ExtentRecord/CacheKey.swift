import CCrypto

/// The identity of a cache entry: the SHA-256 of a text that names a remote file.
///
/// Hashing turns every text into a safe file name and keeps the secrets of a URL out of the file
/// system.
package struct CacheKey: Hashable, Sendable, CustomStringConvertible {
  /// The number of bytes of the digest.
  package static let byteCount = 32

  /// The digest.
  package let bytes: [UInt8]

  /// The key of `text`, hashed as UTF-8.
  package init(_ text: String) {
    var digest = [UInt8](repeating: 0, count: Self.byteCount)
    var digestByteCount: UInt32 = 0
    let input = Array(text.utf8)
    let status = EVP_Digest(input, input.count, &digest, &digestByteCount, EVP_sha256(), nil)
    precondition(
      status == 1 && digestByteCount == Self.byteCount, "libcrypto offers no SHA-256")
    bytes = digest
  }

  /// The key of a recorded digest of 32 bytes.
  package init(digest: [UInt8]) {
    bytes = digest
  }

  /// The key whose names in the cache are `prefix` and `rest`; nil if these are not such names.
  package init?(prefix: String, rest: String) {
    let digits = Array(prefix.utf8) + Array(rest.utf8)
    guard prefix.utf8.count == 2, digits.count == 2 * Self.byteCount else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: digits.count, by: 2) {
      guard let high = Self.value(ofDigit: digits[index]),
        let low = Self.value(ofDigit: digits[index + 1])
      else { return nil }
      bytes.append(high << 4 | low)
    }
    self.bytes = bytes
  }

  /// The first bytes of the digest are as random as all of it.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
  }

  /// The digest as 64 lower-case hexadecimal digits.
  package var hex: String { hex(of: bytes[...]) }

  private func hex(of bytes: ArraySlice<UInt8>) -> String {
    String(unsafeUninitializedCapacity: 2 * bytes.count) { digits in
      for (index, byte) in bytes.enumerated() {
        digits[2 * index] = Self.digit(byte >> 4)
        digits[2 * index + 1] = Self.digit(byte & 15)
      }
      return 2 * bytes.count
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  package var description: String { hex }

  /// The name of the directory that groups the keys with the same first byte.
  package var prefixName: String { hex(of: bytes[..<1]) }

  /// The name of the entry's own directory within that one.
  package var restName: String { hex(of: bytes[1...]) }

  private static func value(ofDigit digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
