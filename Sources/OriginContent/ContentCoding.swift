/// A content coding of a response (RFC 9110 §8.4.1).
///
/// It always uses stored blocks: every decoder accepts them, and their length is known beforehand.
package enum ContentCoding: String, Sendable {
  /// A gzip stream (RFC 1952).
  case gzip
  /// A zlib stream (RFC 1950), which HTTP calls "deflate".
  case deflate

  /// The content of a stored block of deflate: the maximum of its 16-bit length (RFC 1951 §3.2.4).
  static let blockByteCount: Int64 = 65_535

  /// The header of a stored block: one byte of flags and two lengths.
  static let blockHeaderByteCount: Int64 = 5

  /// The maximum content to code; far from an overflow.
  static let contentByteLimit: Int64 = 1 << 60

  /// The bytes before the first block.
  var header: [UInt8] {
    switch self {
    // Method deflate, no flags, no time, no extra flags, an unknown file system.
    case .gzip: [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF]
    // Method deflate with a window of 32 KiB, the fastest level; a multiple of 31.
    case .deflate: [0x78, 0x01]
    }
  }

  /// The bytes after the last block: checksum, and for gzip the length.
  var trailerByteCount: Int64 {
    switch self {
    case .gzip: 8
    case .deflate: 4
    }
  }

  /// The number of stored blocks; at least the one that ends the stream.
  static func blockCount(contentByteCount: Int64) -> Int64 {
    max(1, (contentByteCount + blockByteCount - 1) / blockByteCount)
  }

  /// The length of the coded form of this much content.
  package func codedByteCount(contentByteCount: Int64) -> Int64 {
    let blocks = Self.blockCount(contentByteCount: contentByteCount)
    return Int64(header.count) + blocks * Self.blockHeaderByteCount + contentByteCount
      + trailerByteCount
  }

  /// Whether an `Accept-Encoding` field allows the coding (RFC 9110 §12.5.3).
  ///
  /// A missing field would allow every coding, but servers then use none.
  package func isAccepted(by field: String?) -> Bool {
    var isWildcardAccepted = false
    for item in (field ?? "").lowercased().split(separator: ",") {
      let parts = item.split(separator: ";").map { ByteText.trimmed($0) }
      guard let name = parts.first else { continue }
      let weight = parts.dropFirst().first { $0.hasPrefix("q=") }?.dropFirst(2)
      let isAccepted = weight.map { (Double($0) ?? 0) > 0 } ?? true
      if name == rawValue || (self == .gzip && name == "x-gzip") { return isAccepted }
      if name == "*" { isWildcardAccepted = isAccepted }
    }
    return isWildcardAccepted
  }
}
