/// The expected hash of a whole file.
public struct Checksum: Sendable, Hashable, CustomStringConvertible {
  /// The hash functions that a list may name, spelled as aria2 spells them.
  public enum Algorithm: String, Sendable, CaseIterable {
    case md5
    case sha1 = "sha-1"
    case sha224 = "sha-224"
    case sha256 = "sha-256"
    case sha384 = "sha-384"
    case sha512 = "sha-512"

    /// The algorithm with this name, in any case; accepts both `sha256` and aria2's `sha-256`.
    package init?(named name: some StringProtocol) {
      let name = name.lowercased()
      self.init(
        rawValue: name.hasPrefix("sha") && !name.hasPrefix("sha-")
          ? "sha-\(name.dropFirst(3))" : name)
    }

    /// The length of a digest in bytes.
    public var digestByteCount: Int {
      switch self {
      case .md5: 16
      case .sha1: 20
      case .sha224: 28
      case .sha256: 32
      case .sha384: 48
      case .sha512: 64
      }
    }
  }

  public let algorithm: Algorithm

  /// The digest; `algorithm.digestByteCount` bytes.
  public let digest: [UInt8]

  /// The reason why a text is not a checksum.
  public enum ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    case malformed
    case unsupportedAlgorithm
    case wrongLength(Algorithm, digitCount: Int)
    case notHexadecimal

    public var description: String {
      switch self {
      case .malformed: "a checksum is written ALGORITHM=HEX, such as sha-256=9f86…"
      case .unsupportedAlgorithm:
        "the checksum's algorithm is none of "
          + Algorithm.allCases.map(\.rawValue).joined(separator: ", ")
      case .wrongLength(let algorithm, let digitCount):
        "a \(algorithm.rawValue) checksum has \(algorithm.digestByteCount * 2) hexadecimal digits,"
          + " not \(digitCount)"
      case .notHexadecimal: "the checksum holds something else than hexadecimal digits"
      }
    }
  }

  /// Parses `ALGORITHM=HEX`, in any case.
  public init(_ text: some StringProtocol) throws(ParseError) {
    let text = Substring(text)
    guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else { throw .malformed }
    guard let algorithm = Algorithm(named: text[..<equals].trimmed) else {
      throw .unsupportedAlgorithm
    }
    try self.init(
      algorithm: algorithm, hexadecimal: text[text.utf8.index(after: equals)...].trimmed)
  }

  /// Reads the hexadecimal digits of a digest, in any case.
  package init(
    algorithm: Algorithm, hexadecimal: some StringProtocol
  ) throws(ParseError) {
    let digits = hexadecimal.utf8
    guard digits.count == algorithm.digestByteCount * 2 else {
      throw .wrongLength(algorithm, digitCount: digits.count)
    }
    var digest: [UInt8] = []
    digest.reserveCapacity(algorithm.digestByteCount)
    var high: UInt8?
    for digit in digits {
      guard let value = hexadecimalValue(digit) else { throw .notHexadecimal }
      if let first = high {
        digest.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    self.algorithm = algorithm
    self.digest = digest
  }

  /// Creates the checksum of a file whose hash is `digest`.
  ///
  /// - Parameters:
  ///   - algorithm: the hash function.
  ///   - digest: `algorithm.digestByteCount` bytes.
  package init(algorithm: Algorithm, digest: [UInt8]) {
    self.algorithm = algorithm
    self.digest = digest
  }

  /// The digest in lower-case hexadecimal digits.
  public var hexadecimal: String {
    let digits = Array("0123456789abcdef".utf8)
    return String(
      decoding: digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] }, as: UTF8.self)
  }

  /// `sha-256=9f86…`: the spelling that lists use.
  public var description: String { "\(algorithm.rawValue)=\(hexadecimal)" }
}

/// The value of an ASCII hexadecimal digit; nil for any other byte.
package func hexadecimalValue(_ byte: UInt8) -> UInt8? {
  switch byte {
  case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
  case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
  case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
  default: nil
  }
}
