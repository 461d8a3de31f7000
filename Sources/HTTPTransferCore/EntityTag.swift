package import HTTPTypes

/// An entity tag (RFC 9110 §8.8.3), byte by byte as the server sent it.
///
/// Not a `String`: the bytes need not be UTF-8, and strings of different bytes can be equal
/// (canonical equivalence).
public struct EntityTag: Hashable, Sendable, CustomStringConvertible {
  /// The most bytes of a tag: every file that was looked at has one in memory, and servers send some dozens.
  public static let byteLimit = 1024

  /// Whether the tag is weak: equal tags then promise equivalent, not identical, bytes.
  public let isWeak: Bool

  /// The bytes between the quotes.
  public let bytes: [UInt8]

  /// The tag of a text.
  public init(opaque: String, isWeak: Bool = false) {
    self.bytes = Array(opaque.utf8)
    self.isWeak = isWeak
  }

  /// The tag of the bytes between the quotes; nil where no field can hold them, or there are more than
  /// ``byteLimit``.
  public init?(bytes: some Collection<UInt8>, isWeak: Bool) {
    let quote = UInt8(ascii: "\"")
    guard !bytes.isEmpty, bytes.count <= Self.byteLimit,
      bytes.allSatisfy({ $0 > 0x20 && $0 != quote && $0 != 0x7F })
    else { return nil }
    self.bytes = Array(bytes)
    self.isWeak = isWeak
  }

  /// Parses an `ETag` field.
  ///
  /// A tag that is not quoted, as some servers send it, is taken as
  /// strong; nil if the value is empty, too long, or holds control characters or a quote inside.
  public init?(field: some Sequence<UInt8>) {
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
  public init?(field: String) { self.init(field: field.utf8) }

  /// The tag as the value of a field.
  public var fieldBytes: [UInt8] {
    let quote = UInt8(ascii: "\"")
    return (isWeak ? [UInt8(ascii: "W"), UInt8(ascii: "/")] : []) + [quote] + bytes + [quote]
  }

  /// A field that holds the tag as it came, `If-None-Match` for one.
  package func field(_ name: HTTPField.Name) -> HTTPField {
    HTTPField(name: name, value: fieldBytes)
  }

  /// The tag for people: what is no UTF-8 is shown as U+FFFD.
  public var description: String { String(decoding: fieldBytes, as: UTF8.self) }
}

extension Substring {
  /// The text without spaces, tabs and line ends at its ends (the optional white space of RFC 9110
  /// §5.6.3, and what is left of a line).
  var trimmed: Substring {
    let space: Set<UInt8> = [0x20, 0x09, 0x0D, 0x0A]
    var text = self.utf8
    while let first = text.first, space.contains(first) { text.removeFirst() }
    while let last = text.last, space.contains(last) { text.removeLast() }
    return Substring(text)
  }
}
