/// Finds tags that are longer than any of a Metalink, in one pass: libxml2 compares the attributes of a tag
/// each with all others, so a tag of a megabyte would keep it busy for minutes.
enum TagScanner {
  /// The longest tag in bytes.
  static let maximumByteCount = 64 << 10

  /// Where in a document a byte is.
  private enum Place {
    case text
    /// In a tag that began at this index; in quotes where `quote` is not 0.
    case tag(start: Int, quote: UInt8)
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
          place = .tag(start: index, quote: 0)
        }
      case .tag(let start, let quote):
        if index - start >= maximumByteCount { return start }
        if quote != 0 {
          if byte == quote { place = .tag(start: start, quote: 0) }
        } else if byte == UInt8(ascii: ">") {
          place = .text
        } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
          place = .tag(start: start, quote: byte)
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
