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
    var text = Substring(field).trimmed
    var isWeak = false
    if text.hasPrefix("W/") {
      isWeak = true
      text = text.dropFirst(2)
    }
    if text.count >= 2, text.first == "\"", text.last == "\"" {
      text = text.dropFirst().dropLast()
    }
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x22 && $0 != 0x7F }) else {
      return nil
    }
    self.init(opaque: String(text), isWeak: isWeak)
  }

  /// The tag as a field value, for `If-None-Match`.
  public var field: String { (isWeak ? "W/" : "") + "\"\(opaque)\"" }
}

extension Substring {
  /// The text without spaces and tabs at its ends (the optional white space of RFC 9110 §5.6.3).
  var trimmed: Substring {
    var text = self
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" || last == "\r" { text.removeLast() }
    return text
  }
}
