/// The bytes of an IPv4 or IPv6 address.
package struct IPAddress: Hashable, Sendable {
  /// The bytes in network order: 4 or 16.
  package let bytes: [UInt8]

  /// Creates an address from 4 or 16 bytes in network order; nil for another count.
  ///
  /// An IPv4-mapped IPv6 address (`::ffff:0:0/96`) becomes the IPv4 address.
  package init?(bytes: some Collection<UInt8>) {
    let bytes = Array(bytes)
    guard bytes.count == 4 || bytes.count == 16 else { return nil }
    let isMapped = bytes.count == 16 && bytes.starts(with: Self.mappedPrefix)
    self.bytes = isMapped ? Array(bytes.suffix(4)) : bytes
  }

  private static let mappedPrefix = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]

  /// Whether the address starts with the first `length` bits of `prefix`; false for another family.
  package func hasPrefix(_ prefix: [UInt8], length: Int) -> Bool {
    guard (0...(bytes.count * 8)).contains(length), prefix.count == bytes.count else {
      return false
    }
    for index in 0..<(length / 8) where bytes[index] != prefix[index] { return false }
    let rest = length % 8
    guard rest > 0 else { return true }
    let shift = 8 - rest
    return bytes[length / 8] >> shift == prefix[length / 8] >> shift
  }

  /// Whether the address belongs to this machine or to a network that the Internet does not reach.
  ///
  /// Unspecified, loopback, private (RFC 1918, RFC 4193), link-local, site-local, shared (RFC
  /// 6598), benchmark (RFC 2544) and reserved addresses and those of protocols (RFC 6890), also
  /// where an IPv6 address carries such an IPv4 address (RFC 4291 §2.5.5, RFC 6052, RFC 2765, RFC
  /// 3056, RFC 4380).
  package var isPrivate: Bool {
    let blocks = bytes.count == 4 ? Self.privateBlocks4 : Self.privateBlocks6
    if blocks.contains(where: { hasPrefix($0.prefix, length: $0.length) }) { return true }
    return carriedAddresses.contains { $0.isPrivate }
  }

  /// The IPv4 addresses that a translating or tunnelling IPv6 address carries.
  private var carriedAddresses: [IPAddress] {
    guard bytes.count == 16 else { return [] }
    if Self.translatedPrefixes.contains(where: { hasPrefix($0, length: 96) }) {
      return [IPAddress(bytes: bytes[12...])].compactMap(\.self)
    }
    if hasPrefix(Self.padded([0x20, 0x02]), length: 16) {
      return [IPAddress(bytes: bytes[2..<6])].compactMap(\.self)
    }
    // Teredo: its server, and its client with all bits inverted.
    if hasPrefix(Self.padded([0x20, 0x01]), length: 32) {
      return [IPAddress(bytes: bytes[4..<8]), IPAddress(bytes: bytes[12...].map { ~$0 })]
        .compactMap(\.self)
    }
    return []
  }

  /// The prefixes of embedded IPv4 addresses: zeros, `::ffff:0:0:0`, and the prefix of NAT64.
  private static let translatedPrefixes = [
    padded([]), [UInt8](repeating: 0, count: 8) + [0xff, 0xff] + [UInt8](repeating: 0, count: 6),
    padded([0x00, 0x64, 0xff, 0x9b]),
  ]

  private struct Block {
    let prefix: [UInt8]
    let length: Int
  }

  private static func padded(_ start: [UInt8]) -> [UInt8] {
    start + [UInt8](repeating: 0, count: 16 - start.count)
  }

  private static let privateBlocks4 = [
    Block(prefix: [0, 0, 0, 0], length: 8), Block(prefix: [10, 0, 0, 0], length: 8),
    Block(prefix: [100, 64, 0, 0], length: 10), Block(prefix: [127, 0, 0, 0], length: 8),
    Block(prefix: [169, 254, 0, 0], length: 16), Block(prefix: [172, 16, 0, 0], length: 12),
    Block(prefix: [192, 0, 0, 0], length: 24), Block(prefix: [192, 168, 0, 0], length: 16),
    Block(prefix: [198, 18, 0, 0], length: 15), Block(prefix: [240, 0, 0, 0], length: 4),
  ]

  private static let privateBlocks6 = [
    // Unspecified and loopback.
    Block(prefix: padded([]), length: 127),
    Block(prefix: padded([0xfc]), length: 7), Block(prefix: padded([0xfe, 0x80]), length: 10),
    Block(prefix: padded([0xfe, 0xc0]), length: 10),
    // Translation within a network (RFC 8215).
    Block(prefix: padded([0x00, 0x64, 0xff, 0x9b, 0x00, 0x01]), length: 48),
  ]
}
