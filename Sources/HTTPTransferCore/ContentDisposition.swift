package import HTTPTypes

/// The name of a file that a server suggests (`Content-Disposition`, RFC 6266).
package enum ContentDisposition {
  /// The suggested name, made safe.
  ///
  /// `filename*` has precedence over `filename`. Only the last part of a path counts. The server
  /// must not choose a hidden file: a name that begins with a dot counts as none.
  ///
  /// - Parameter fields: the fields of the response.
  /// - Returns: nil if there is none, or if it cannot be the name of a file here.
  package static func fileName(_ fields: HTTPFields) -> String? {
    guard let field = fields.readable(.contentDisposition) else { return nil }
    var plain: String?
    var extended: String?
    for (name, value) in parameters(of: Array(field.utf8)) {
      switch name {
      case "filename*": extended = extended ?? decoded(value)
      case "filename": plain = plain ?? String(validating: value, as: UTF8.self)
      default: break
      }
    }
    return [extended, plain].lazy.compactMap(\.self).compactMap(safe).first
  }

  private static func safe(_ name: String) -> String? {
    let isSeparator: (UInt8) -> Bool = { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "\\") }
    guard let last = name.utf8.split(whereSeparator: isSeparator).last, last.count <= 255,
      last.first != UInt8(ascii: "."), !last.contains(where: { $0 < 0x20 || $0 == 0x7F })
    else { return nil }
    return String(last)
  }

  /// The parameters after the type, with lower-case names; a quoted string without its quotes.
  private static func parameters(of field: [UInt8]) -> [(name: String, value: [UInt8])] {
    var result: [(String, [UInt8])] = []
    var rest = field.drop { $0 != UInt8(ascii: ";") }.dropFirst()
    while !rest.isEmpty {
      let name = rest.prefix { $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: ";") }
      rest = rest.dropFirst(name.count)
      guard rest.first == UInt8(ascii: "=") else {
        rest = rest.dropFirst()
        continue
      }
      rest = rest.dropFirst()
      let value = takeValue(of: &rest)
      let text = String(decoding: name, as: UTF8.self)
      result.append((String(Substring(text).trimmed).lowercased(), value))
      rest = rest.drop { $0 != UInt8(ascii: ";") }.dropFirst()
    }
    return result
  }

  /// Takes a token or a quoted string (RFC 9110 §5.6.4) from the beginning of `rest`.
  private static func takeValue(of rest: inout ArraySlice<UInt8>) -> [UInt8] {
    rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
    guard rest.first == UInt8(ascii: "\"") else {
      let token = rest.prefix { $0 != UInt8(ascii: ";") }
      rest = rest.dropFirst(token.count)
      return Array(Substring(String(decoding: token, as: UTF8.self)).trimmed.utf8)
    }
    rest = rest.dropFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
      if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() {
        value.append(escaped)
      } else {
        value.append(byte)
      }
    }
    return value
  }

  /// The value of an extended parameter (RFC 8187): charset, language, percent-encoded bytes.
  private static func decoded(_ value: [UInt8]) -> String? {
    let parts = value.split(
      separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3,
      let charset = TextDecoding.Charset(name: String(decoding: parts[0], as: UTF8.self))
    else { return nil }
    var bytes: [UInt8] = []
    var rest = parts[2]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let first = rest.popFirst().flatMap(hexadecimalValue),
        let second = rest.popFirst().flatMap(hexadecimalValue)
      else { return nil }
      bytes.append(first << 4 | second)
    }
    if charset == .utf8 { return String(validating: bytes, as: UTF8.self) }
    return TextDecoding.text(of: bytes, charset: charset)
  }
}
