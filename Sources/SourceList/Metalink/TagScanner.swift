/// Finds, in one pass, tags that are longer or have more attributes than any in a Metalink.
///
/// libxml2 compares each attribute of a tag with all others, so a tag of a megabyte would keep it
/// busy for minutes. So would very many tags of 64 KiB, because libxml2 parses on after the
/// document is known to be malformed.
enum TagScanner {
  /// The longest tag in bytes.
  static let maximumByteCount = 64 << 10

  /// The most attributes, the declarations of namespaces among them.
  static let maximumAttributeCount =
    XMLElements.maximumAttributeCount + XMLElements.maximumDeclarationCount

  /// The part of a document that a byte belongs to.
  private enum Place {
    case text
    /// In a tag that began at this index; inside quotes if `quote` is not 0.
    ///
    /// Each attribute has a value, so `valueCount` counts the attributes.
    case tag(start: Int, quote: UInt8, valueCount: Int)
    /// In a comment, a CDATA section or an instruction, which ends with these bytes.
    case other(end: StaticString)
  }

  /// The line, counted from 1, on which the first tag that is too long begins; nil if there is
  /// none.
  static func firstLongTag(in document: [UInt8]) -> Int? {
    document.withUnsafeBufferPointer { bytes in
      guard let start = startOfLongTag(in: bytes) else { return nil }
      return bytes[..<start].reduce(1) { $0 + ($1 == UInt8(ascii: "\n") ? 1 : 0) }
    }
  }

  private static func startOfLongTag(in bytes: UnsafeBufferPointer<UInt8>) -> Int? {
    var place = Place.text
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      switch place {
      case .text:
        guard byte == UInt8(ascii: "<") else { break }
        let rest = bytes[index...]
        if rest.starts(with: "<!--".utf8) {
          place = .other(end: "-->")
          index += 3
        } else if rest.starts(with: "<![CDATA[".utf8) {
          place = .other(end: "]]>")
          index += 8
        } else if rest.starts(with: "<?".utf8) {
          place = .other(end: "?>")
          index += 1
        } else {
          place = .tag(start: index, quote: 0, valueCount: 0)
        }
      case .tag(let start, let quote, let count):
        if index - start >= maximumByteCount || count > maximumAttributeCount { return start }
        if quote != 0 {
          if byte == quote { place = .tag(start: start, quote: 0, valueCount: count) }
        } else if byte == UInt8(ascii: ">") {
          place = .text
        } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
          place = .tag(start: start, quote: byte, valueCount: count + 1)
        }
      case .other(let end):
        let length = end.utf8CodeUnitCount
        guard byte == UInt8(ascii: ">"), index + 1 >= length else { break }
        let tail = bytes[(index + 1 - length)...index]
        if end.withUTF8Buffer({ tail.elementsEqual($0) }) { place = .text }
      }
      index += 1
    }
    return nil
  }
}
