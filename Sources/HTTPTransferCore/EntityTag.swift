/// An entity tag (RFC 9110 §8.8.3).
public struct EntityTag: Hashable, Sendable {
  /// Whether the tag is weak: equal tags then promise equivalent, not identical, bytes.
  public let isWeak: Bool

  /// The opaque text between the quotes.
  public let opaque: String

  public init(opaque: String, isWeak: Bool = false) {
    self.opaque = opaque
    self.isWeak = isWeak
  }

  /// Parses an `ETag` field.
  ///
  /// A tag that is not quoted, as some servers send it, is taken as
  /// strong; nil if the value is empty or holds control characters or a quote inside.
  public init?(field: String) {
    // By bytes: what a quote and a combining mark make together is one character.
    var text = Substring(field).trimmed.utf8
    var isWeak = false
    if text.starts(with: "W/".utf8) {
      isWeak = true
      text = text.dropFirst(2)
    }
    let quote = UInt8(ascii: "\"")
    if text.count >= 2, text.first == quote, text.last == quote {
      text = text.dropFirst().dropLast()
    }
    guard !text.isEmpty, text.allSatisfy({ $0 > 0x20 && $0 != quote && $0 != 0x7F }) else {
      return nil
    }
    self.init(opaque: String(Substring(text)), isWeak: isWeak)
  }

  /// The tag as a field value, for `If-None-Match`.
  public var field: String { (isWeak ? "W/" : "") + "\"\(opaque)\"" }
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
