/// The file name in a `Content-Disposition` field (RFC 6266), as the server wrote it.
///
/// Nothing makes it safe as the name of a file. The time to parse it is linear in the length of the
/// field.
package struct ContentDisposition: Equatable, Sendable {
  /// The value of the first valid `filename*`, else that of the first `filename`; nil for none.
  package let fileName: String?

  /// The maximum length of a field in bytes; a longer one has no name.
  package static let maximumByteCount = 8 << 10

  /// Parses the value of a field.
  ///
  /// It accepts what servers send beside the grammar: no disposition type, unquoted spaces, and
  /// bytes above ASCII, which are UTF-8 or else ISO-8859-1.
  package init(field: some Collection<UInt8>) {
    guard field.count <= Self.maximumByteCount else {
      fileName = nil
      return
    }
    var plain: String?
    var extended: String?
    var scanner = Scanner(rest: Array(field)[...])
    while let parameter = scanner.nextParameter() {
      switch parameter.name {
      case "filename":
        plain = plain ?? Self.text(of: parameter.value)
      case "filename*":
        extended = extended ?? Self.extendedText(of: parameter.value)
      default: break
      }
    }
    fileName = extended ?? plain
  }

  private static func text(of bytes: [UInt8]) -> String? {
    guard !bytes.isEmpty else { return nil }
    return String(validating: bytes, as: UTF8.self)
      ?? TextDecoding.text(of: bytes, charset: .latin1)
  }

  /// The text of an extended value (RFC 8187 §3.2): `charset'language'percent-encoded`.
  ///
  /// - Returns: nil for another charset, for bytes that it does not have, or for a malformed value.
  private static func extendedText(of value: [UInt8]) -> String? {
    let parts = value.split(
      separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let bytes = percentDecoded(parts[2]), !bytes.isEmpty else { return nil }
    switch String(decoding: parts[0], as: UTF8.self).lowercased() {
    case "utf-8": return String(validating: bytes, as: UTF8.self)
    case "iso-8859-1": return TextDecoding.text(of: bytes, charset: .latin1)
    default: return nil
    }
  }

  private static func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    var decoded: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        decoded.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(hexadecimalValue),
        let low = rest.popFirst().flatMap(hexadecimalValue)
      else { return nil }
      decoded.append(high << 4 | low)
    }
    return decoded
  }
}

/// Splits a field into its parameters.
private struct Scanner {
  var rest: ArraySlice<UInt8>

  private static let semicolon = UInt8(ascii: ";")
  private static let quote = UInt8(ascii: "\"")

  /// The next parameter, with its name in lower case and its value without quotes; nil at the end.
  ///
  /// Parts without `=`, such as the disposition type, are no parameters.
  mutating func nextParameter() -> (name: String, value: [UInt8])? {
    while !rest.isEmpty {
      let name = take { $0 != UInt8(ascii: "=") && $0 != Self.semicolon }
      guard rest.popFirst() == UInt8(ascii: "=") else { continue }
      return (String(decoding: Self.trimmed(name), as: UTF8.self).lowercased(), takeValue())
    }
    return nil
  }

  private mutating func takeValue() -> [UInt8] {
    _ = take(while: Self.isBlank)
    guard rest.first == Self.quote else {
      let value = Array(Self.trimmed(take { $0 != Self.semicolon }))
      rest = rest.dropFirst()
      return value
    }
    rest = rest.dropFirst()
    var value: [UInt8] = []
    while let byte = rest.popFirst(), byte != Self.quote {
      // A backslash at the very end escapes nothing.
      if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() {
        value.append(escaped)
      } else {
        value.append(byte)
      }
    }
    _ = take { $0 != Self.semicolon }
    rest = rest.dropFirst()
    return value
  }

  private mutating func take(while isWanted: (UInt8) -> Bool) -> ArraySlice<UInt8> {
    let taken = rest.prefix(while: isWanted)
    rest = rest[taken.endIndex...]
    return taken
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var bytes = bytes.drop(while: isBlank)
    while let last = bytes.last, isBlank(last) { bytes.removeLast() }
    return bytes
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
