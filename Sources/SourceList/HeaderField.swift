/// A request header field that is safe to send: its name is a token (RFC 9110 §5.6.2), and its
/// value has no control character except TAB.
///
/// So neither can start another field.
///
/// The value may be a secret: show only the name.
package struct HeaderField: Sendable, Hashable {
  /// The name as written in the list; field names are compared without case.
  package let name: String

  /// The value without white space at its ends; may be empty.
  package let value: String

  /// Makes a field from a name and a value; nil unless both are safe.
  package init?(name: String, value: String) {
    guard !name.isEmpty, name.utf8.allSatisfy(Self.isTokenByte),
      value.utf8.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 })
    else { return nil }
    self.name = name
    self.value = value
  }

  /// Splits `Name: value` at its first colon; nil unless both parts are safe.
  package init?(line: some StringProtocol) {
    let line = Substring(line)
    guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    self.init(
      name: String(line[..<colon]),
      value: String(trimmingBlanks(line[line.utf8.index(after: colon)...])))
  }

  /// Whether this is the field called `other`, in any case.
  package func isNamed(_ other: String) -> Bool {
    name.utf8.count == other.utf8.count
      && zip(name.utf8, other.utf8).allSatisfy { asciiLowercased($0) == asciiLowercased($1) }
  }

  /// Whether only httpfs may set this field, so that a range request keeps its meaning: conditions,
  /// ranges, codings, and the framing of the message.
  package var isReserved: Bool { Self.reservedNames.contains { isNamed($0) } }

  /// Whether this field sets the end of a message, which only its body can determine.
  package var isFraming: Bool { isNamed("Content-Length") || isNamed("Transfer-Encoding") }

  private static let reservedNames = [
    "Accept-Encoding", "Connection", "Content-Length", "Expect", "If-Match",
    "If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Keep-Alive",
    "Proxy-Connection", "Range", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
  ]

  /// `tchar` of RFC 9110 §5.6.2.
  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}

func asciiLowercased(_ byte: UInt8) -> UInt8 {
  (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
}

/// The text without spaces and tabs at its ends.
func trimmingBlanks(_ text: Substring) -> Substring {
  let utf8 = text.utf8
  var start = utf8.startIndex
  var end = utf8.endIndex
  while start < end, utf8[start] == 0x20 || utf8[start] == 0x09 { start = utf8.index(after: start) }
  while end > start {
    let last = utf8.index(before: end)
    guard utf8[last] == 0x20 || utf8[last] == 0x09 else { break }
    end = last
  }
  return text[start..<end]
}
