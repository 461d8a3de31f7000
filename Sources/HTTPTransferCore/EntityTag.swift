package import HTTPTypes

/// An entity tag (RFC 9110 §8.8.3), byte by byte as the server sent it.
///
/// Not a `String`: the bytes need not be UTF-8, and strings of different bytes can be equal
/// (canonical equivalence).
package struct EntityTag: Hashable, Sendable, CustomStringConvertible {
  /// The most bytes of a tag: every known file keeps its tag in memory, and servers send a few
  /// dozen.
  package static let byteLimit = 1024

  /// Whether the tag is weak: equal tags then promise equivalent, not identical, bytes.
  package let isWeak: Bool

  /// The bytes between the quotes.
  package let bytes: [UInt8]

  /// Creates a tag from a text.
  package init(opaque: String, isWeak: Bool = false) {
    self.bytes = Array(opaque.utf8)
    self.isWeak = isWeak
  }

  /// Creates a tag from the bytes between the quotes; nil if no field can hold them or if there are
  /// more than ``byteLimit``.
  package init?(bytes: some Collection<UInt8>, isWeak: Bool) {
    let quote = UInt8(ascii: "\"")
    guard !bytes.isEmpty, bytes.count <= Self.byteLimit,
      bytes.allSatisfy({ $0 > 0x20 && $0 != quote && $0 != 0x7F })
    else { return nil }
    self.bytes = Array(bytes)
    self.isWeak = isWeak
  }

  /// Parses an `ETag` field.
  ///
  /// An unquoted tag, which some servers send, counts as strong. Returns nil if the value is empty,
  /// too long, or contains control characters or an inner quote.
  package init?(field: some Sequence<UInt8>) {
    let space: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
    var rest = Array(field)[...]
    while let first = rest.first, space.contains(first) { rest.removeFirst() }
    while let last = rest.last, space.contains(last) { rest.removeLast() }
    var isWeak = false
    if rest.starts(with: "W/".utf8) {
      isWeak = true
      rest = rest.dropFirst(2)
    }
    let quote = UInt8(ascii: "\"")
    if rest.count >= 2, rest.first == quote, rest.last == quote {
      rest = rest.dropFirst().dropLast()
    }
    self.init(bytes: rest, isWeak: isWeak)
  }

  /// Parses the text of an `ETag` field.
  package init?(field: String) { self.init(field: field.utf8) }

  /// The tag as the value of a field.
  package var fieldBytes: [UInt8] {
    let quote = UInt8(ascii: "\"")
    return (isWeak ? [UInt8(ascii: "W"), UInt8(ascii: "/")] : []) + [quote] + bytes + [quote]
  }

  /// A field with this tag as its value, such as `If-None-Match`.
  package func field(_ name: HTTPField.Name) -> HTTPField {
    HTTPField(name: name, value: fieldBytes)
  }

  /// The tag for display: malformed UTF-8 appears as U+FFFD.
  package var description: String { String(decoding: fieldBytes, as: UTF8.self) }
}

extension Substring {
  /// The text without leading and trailing spaces, tabs and line ends (the optional white space of
  /// RFC 9110 §5.6.3, and remains of a line end).
  var trimmed: Substring {
    let space: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
    var text = self.utf8
    while let first = text.first, space.contains(first) { text.removeFirst() }
    while let last = text.last, space.contains(last) { text.removeLast() }
    return Substring(text)
  }
}
