/// Decodes the bytes of a body into text, according to its `Content-Type`.
///
/// Decoding never fails: malformed input becomes U+FFFD, and bytes of an unknown charset are read
/// as ISO-8859-1, in which each byte is a character.
package enum TextDecoding {
  /// A character encoding that can be decoded.
  package enum Charset: Sendable, Hashable, CaseIterable {
    case utf8
    case ascii
    case latin1
    case windows1252
    /// According to its byte order mark; big-endian without one (RFC 2781 §4.3).
    case utf16
    case utf16LittleEndian
    case utf16BigEndian

    /// The charset with this name or IANA alias, in any case; nil for an unsupported charset.
    package init?(name: some StringProtocol) {
      switch name.lowercased() {
      case "utf-8", "utf8", "unicode-1-1-utf-8": self = .utf8
      case "us-ascii", "ascii", "ansi_x3.4-1968", "iso646-us": self = .ascii
      case "iso-8859-1", "iso8859-1", "iso_8859-1", "latin1", "l1": self = .latin1
      case "windows-1252", "cp1252", "x-cp1252": self = .windows1252
      case "utf-16": self = .utf16
      case "utf-16le": self = .utf16LittleEndian
      case "utf-16be": self = .utf16BigEndian
      default: return nil
      }
    }
  }

  /// Decodes a body.
  ///
  /// A byte order mark of UTF-8 or UTF-16 takes precedence over the field and is not part of the
  /// text.
  ///
  /// - Parameters:
  ///   - bytes: the body, without content coding.
  ///   - contentType: the value of its `Content-Type` field (RFC 9110 §8.3); nil for none.
  /// - Returns: the text.
  package static func text(of bytes: some Sequence<UInt8>, contentType: String?) -> String {
    String(decoding: utf8(of: Array(bytes), contentType: contentType), as: UTF8.self)
  }

  /// Decodes bytes of a known charset; drops its byte order mark.
  package static func text(of bytes: some Sequence<UInt8>, charset: Charset) -> String {
    String(decoding: utf8(of: Array(bytes), charset: charset), as: UTF8.self)
  }

  /// Decodes a body, as ``text(of:contentType:)`` does, to UTF-8.
  ///
  /// Works piece by piece: a long body has no second copy in memory.
  package static func utf8(of bytes: [UInt8], contentType: String?) -> [UInt8] {
    let declared = contentType.flatMap(charsetName).flatMap { Charset(name: $0) }
    return utf8(of: bytes, charset: markedCharset(of: bytes) ?? declared ?? .latin1)
  }

  private static func utf8(of bytes: [UInt8], charset: Charset) -> [UInt8] {
    let charset =
      charset != .utf16
      ? charset : bytes.starts(with: littleEndianMark) ? .utf16LittleEndian : .utf16BigEndian
    var start = bytes.starts(with: mark(of: charset)) ? mark(of: charset).count : 0
    var utf8: [UInt8] = []
    // Unused pages of the capacity are never touched.
    utf8.reserveCapacity(3 * (bytes.count - start))
    while start < bytes.count {
      let end = pieceEnd(in: bytes, from: start, charset)
      utf8.append(contentsOf: decoded(bytes[start..<end], charset).utf8)
      start = end
    }
    return utf8
  }

  /// The value of the `charset` parameter of a `Content-Type`, unquoted; nil for none.
  package static func charsetName(ofContentType field: String) -> String? {
    for parameter in parameters(of: field).dropFirst() {
      guard let equals = parameter.firstIndex(of: "=") else { continue }
      guard trimmed(parameter[..<equals]).lowercased() == "charset" else { continue }
      let value = trimmed(parameter[parameter.index(after: equals)...])
      guard value.first == "\"", value.count >= 2, value.last == "\"" else {
        return value.isEmpty ? nil : String(value)
      }
      return unescaped(value.dropFirst().dropLast())
    }
    return nil
  }

  // MARK: Fields

  /// The parts between unquoted semicolons; the first one is the media type.
  private static func parameters(of field: String) -> [Substring] {
    var parts: [Substring] = []
    var start = field.startIndex
    var isQuoted = false
    var isEscaped = false
    for index in field.indices {
      let character = field[index]
      if isEscaped {
        isEscaped = false
      } else if isQuoted && character == "\\" {
        isEscaped = true
      } else if character == "\"" {
        isQuoted.toggle()
      } else if character == ";" && !isQuoted {
        parts.append(field[start..<index])
        start = field.index(after: index)
      }
    }
    return parts + [field[start...]]
  }

  private static func trimmed(_ text: Substring) -> Substring {
    var text = text.drop { $0 == " " || $0 == "\t" }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }

  /// The text of a quoted string (RFC 9110 §5.6.4) without its escaping backslashes.
  private static func unescaped(_ text: Substring) -> String {
    var result = ""
    var isEscaped = false
    for character in text {
      if character == "\\" && !isEscaped {
        isEscaped = true
      } else {
        result.append(character)
        isEscaped = false
      }
    }
    return result
  }

  // MARK: Bytes

  private static let utf8Mark: [UInt8] = [0xEF, 0xBB, 0xBF]
  private static let littleEndianMark: [UInt8] = [0xFF, 0xFE]
  private static let bigEndianMark: [UInt8] = [0xFE, 0xFF]

  /// The byte order mark of a charset; empty for none.
  private static func mark(of charset: Charset) -> [UInt8] {
    switch charset {
    case .utf8: utf8Mark
    case .utf16, .utf16BigEndian: bigEndianMark
    case .utf16LittleEndian: littleEndianMark
    case .ascii, .latin1, .windows1252: []
    }
  }

  /// The size of a decoded piece in bytes; even, for UTF-16.
  private static let pieceByteCount = 64 << 10

  /// The end of the piece that begins at `start`; never within a character.
  private static func pieceEnd(
    in bytes: [UInt8], from start: Int, _ charset: Charset
  ) -> Int {
    let end = start + pieceByteCount
    guard end < bytes.count else { return bytes.count }
    switch charset {
    case .ascii, .latin1, .windows1252: return end
    case .utf8:
      // After three continuation bytes a character is complete, or malformed.
      for index in stride(from: end - 1, through: end - 3, by: -1) where bytes[index] >= 0xC0 {
        return index
      }
      return end
    case .utf16, .utf16BigEndian, .utf16LittleEndian:
      let high = bytes[charset == .utf16LittleEndian ? end - 1 : end - 2]
      return (0xD8...0xDB).contains(high) ? end - 2 : end
    }
  }

  /// The text of a piece, regardless of byte order marks.
  private static func decoded(_ bytes: ArraySlice<UInt8>, _ charset: Charset) -> String {
    switch charset {
    case .utf8: String(decoding: bytes, as: UTF8.self)
    case .ascii: string(bytes) { $0 < 0x80 ? Unicode.Scalar($0) : "\u{FFFD}" }
    case .latin1: string(bytes) { Unicode.Scalar($0) }
    case .windows1252:
      string(bytes) { byte in
        (0x80...0x9F).contains(byte) ? windows1252[Int(byte) - 0x80] : Unicode.Scalar(byte)
      }
    case .utf16, .utf16BigEndian: utf16Text(of: bytes, isLittleEndian: false)
    case .utf16LittleEndian: utf16Text(of: bytes, isLittleEndian: true)
    }
  }

  /// The charset that a byte order mark indicates.
  private static func markedCharset(of bytes: [UInt8]) -> Charset? {
    if bytes.starts(with: utf8Mark) { return .utf8 }
    let isMarked = bytes.starts(with: littleEndianMark) || bytes.starts(with: bigEndianMark)
    return isMarked ? .utf16 : nil
  }

  private static func string(
    _ bytes: ArraySlice<UInt8>, _ scalar: (UInt8) -> Unicode.Scalar
  ) -> String {
    var text = String.UnicodeScalarView()
    text.append(contentsOf: bytes.lazy.map(scalar))
    return String(text)
  }

  /// A last odd byte is malformed.
  private static func utf16Text(of bytes: ArraySlice<UInt8>, isLittleEndian: Bool) -> String {
    var units: [UInt16] = []
    units.reserveCapacity(bytes.count / 2 + 1)
    for index in stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2) {
      let (one, two) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      units.append(isLittleEndian ? two << 8 | one : one << 8 | two)
    }
    if bytes.count % 2 == 1 { units.append(0xFFFD) }
    return String(decoding: units, as: UTF16.self)
  }

  /// The characters of 0x80 … 0x9F; the five unassigned bytes are the controls of ISO-8859-1, as in
  /// the WHATWG Encoding Standard.
  private static let windows1252: [Unicode.Scalar] = [
    "\u{20AC}", "\u{81}", "\u{201A}", "\u{192}", "\u{201E}", "\u{2026}", "\u{2020}", "\u{2021}",
    "\u{2C6}", "\u{2030}", "\u{160}", "\u{2039}", "\u{152}", "\u{8D}", "\u{17D}", "\u{8F}",
    "\u{90}", "\u{2018}", "\u{2019}", "\u{201C}", "\u{201D}", "\u{2022}", "\u{2013}", "\u{2014}",
    "\u{2DC}", "\u{2122}", "\u{161}", "\u{203A}", "\u{153}", "\u{9D}", "\u{17E}", "\u{178}",
  ]
}
