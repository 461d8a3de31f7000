/// Turns the bytes of a body into text, as its `Content-Type` says.
///
/// Decoding never fails: what is malformed becomes U+FFFD, and bytes of an unknown charset are read
/// as ISO-8859-1, in which each byte is a character.
public enum TextDecoding {
  /// A character encoding that can be decoded.
  public enum Charset: Sendable, Hashable, CaseIterable {
    case utf8
    case ascii
    case latin1
    case windows1252
    /// With a byte order mark, else big-endian (RFC 2781 §4.3).
    case utf16
    case utf16LittleEndian
    case utf16BigEndian

    /// The charset of a name, in any case, or of one of its aliases in the IANA registry; nil for
    /// one that cannot be decoded.
    public init?(name: some StringProtocol) {
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
  /// A byte order mark of UTF-8 or UTF-16 decides before the field does, and is not part of the text.
  ///
  /// - Parameters:
  ///   - bytes: the body, without content coding.
  ///   - contentType: the value of its `Content-Type` field (RFC 9110 §8.3); nil where there is none.
  /// - Returns: the text.
  public static func text(of bytes: some Sequence<UInt8>, contentType: String?) -> String {
    let bytes = Array(bytes)
    let declared = contentType.flatMap(charsetName).flatMap { Charset(name: $0) }
    return text(of: bytes, charset: markedCharset(of: bytes) ?? declared ?? .latin1)
  }

  /// Decodes bytes of a known charset; a byte order mark of it is dropped.
  public static func text(of bytes: some Sequence<UInt8>, charset: Charset) -> String {
    let bytes = Array(bytes)
    switch charset {
    case .utf8:
      let start = bytes.starts(with: utf8Mark) ? utf8Mark.count : 0
      return String(decoding: bytes[start...], as: UTF8.self)
    case .ascii: return string(bytes) { $0 < 0x80 ? Unicode.Scalar($0) : "\u{FFFD}" }
    case .latin1: return string(bytes) { Unicode.Scalar($0) }
    case .windows1252:
      return string(bytes) { byte in
        (0x80...0x9F).contains(byte) ? windows1252[Int(byte) - 0x80] : Unicode.Scalar(byte)
      }
    case .utf16:
      return utf16Text(of: bytes, isLittleEndian: bytes.starts(with: [0xFF, 0xFE]))
    case .utf16LittleEndian: return utf16Text(of: bytes, isLittleEndian: true)
    case .utf16BigEndian: return utf16Text(of: bytes, isLittleEndian: false)
    }
  }

  /// The value of the `charset` parameter of a `Content-Type`, unquoted; nil where it has none.
  public static func charsetName(ofContentType field: String) -> String? {
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

  /// The parts between semicolons that are not in quotes; the first one is the media type.
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

  /// The text of a quoted string (RFC 9110 §5.6.4), whose backslashes stand before what is meant.
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

  /// What a byte order mark says.
  private static func markedCharset(of bytes: [UInt8]) -> Charset? {
    if bytes.starts(with: utf8Mark) { return .utf8 }
    if bytes.starts(with: [0xFF, 0xFE]) || bytes.starts(with: [0xFE, 0xFF]) { return .utf16 }
    return nil
  }

  private static func string(
    _ bytes: [UInt8], _ scalar: (UInt8) -> Unicode.Scalar
  ) -> String {
    var text = String.UnicodeScalarView()
    text.append(contentsOf: bytes.lazy.map(scalar))
    return String(text)
  }

  /// A last odd byte is malformed.
  private static func utf16Text(of bytes: [UInt8], isLittleEndian: Bool) -> String {
    var units: [UInt16] = []
    units.reserveCapacity(bytes.count / 2 + 1)
    for index in stride(from: 0, to: bytes.count - 1, by: 2) {
      let (one, two) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
      units.append(isLittleEndian ? two << 8 | one : one << 8 | two)
    }
    if bytes.count % 2 == 1 { units.append(0xFFFD) }
    if units.first == 0xFEFF { units.removeFirst() }
    return String(decoding: units, as: UTF16.self)
  }

  /// The characters of 0x80 … 0x9F; the five bytes without one are the controls of ISO-8859-1, as in
  /// the WHATWG Encoding Standard.
  private static let windows1252: [Unicode.Scalar] = [
    "\u{20AC}", "\u{81}", "\u{201A}", "\u{192}", "\u{201E}", "\u{2026}", "\u{2020}", "\u{2021}",
    "\u{2C6}", "\u{2030}", "\u{160}", "\u{2039}", "\u{152}", "\u{8D}", "\u{17D}", "\u{8F}",
    "\u{90}", "\u{2018}", "\u{2019}", "\u{201C}", "\u{201D}", "\u{2022}", "\u{2013}", "\u{2014}",
    "\u{2DC}", "\u{2122}", "\u{161}", "\u{203A}", "\u{153}", "\u{9D}", "\u{17E}", "\u{178}",
  ]
}
