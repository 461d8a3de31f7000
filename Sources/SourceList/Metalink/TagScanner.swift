/// Finds tags that are longer than any of a Metalink, or have more attributes, in one pass: libxml2 compares
/// the attributes of a tag each with all others, so a tag of a megabyte would keep it busy for minutes, and
/// so would very many of 64 KiB, which it goes on to parse when the document is known to be broken.
enum TagScanner {
  /// The longest tag in bytes.
  static let maximumByteCount = 64 << 10

  /// The most attributes, the declarations of namespaces among them.
  static let maximumAttributeCount =
    XMLElements.maximumAttributeCount + XMLElements.maximumDeclarationCount

  /// Where in a document a byte is.
  private enum Place {
    case text
    /// In a tag that began at this index; in quotes where `quote` is not 0. Each of its attributes has a
    /// value.
    case tag(start: Int, quote: UInt8, valueCount: Int)
    /// In what ends with these bytes: a comment, a CDATA section, an instruction.
    case other(end: StaticString)
  }

  /// The line, counted from 1, on which the first tag begins that is too long; nil where none is.
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
