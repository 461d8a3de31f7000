/// Splits an HTML document into tags and text.
///
/// It reads each byte only a small number of times.
struct HTMLScanner {
  enum Token {
    case text(ArraySlice<UInt8>)
    case start(HTMLTag)
    /// The name of an end tag.
    case end(ArraySlice<UInt8>)
  }

  private let html: [UInt8]
  private var position = 0
  /// The current element whose text is not markup.
  private var rawText: ArraySlice<UInt8>?

  init(_ html: [UInt8]) { self.html = html }

  /// The elements that contain no markup.
  private static let rawNames: [StaticString] = ["script", "style", "textarea", "title", "xmp"]

  private static let less = UInt8(ascii: "<")
  private static let greater = UInt8(ascii: ">")
  private static let slash = UInt8(ascii: "/")

  /// The next tag, or piece of text; nil at the end.
  ///
  /// - Throws: ``ListingError/tagTooLong`` at a tag that is longer than any in a listing.
  mutating func next() throws(ListingError) -> Token? {
    if let name = rawText.take() { skipRawText(of: name) }
    while position < html.count {
      guard html[position] == Self.less else { return .text(takeText()) }
      switch byte(1) {
      case Self.slash? where isLetter(byte(2)):
        if let tag = try takeTag(nameAt: position + 2) { return .end(tag.name) }
      case UInt8(ascii: "!")?: skipDeclaration()
      case Self.slash?, UInt8(ascii: "?")?: skip(past: Self.greater)
      case let next where isLetter(next):
        guard let tag = try takeTag(nameAt: position + 1) else { break }
        if !tag.isSelfClosing, Self.rawNames.contains(where: { isHTMLName(tag.name, $0) }) {
          rawText = tag.name
        }
        return .start(tag)
      default: return .text(takeText())
      }
    }
    return nil
  }

  private func byte(_ offset: Int) -> UInt8? {
    position + offset < html.count ? html[position + offset] : nil
  }

  private func isLetter(_ byte: UInt8?) -> Bool {
    byte.map { (0x61...0x7A).contains($0 | 0x20) } ?? false
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0D).contains(byte)
  }

  /// The bytes up to the next `<`; at least one.
  private mutating func takeText() -> ArraySlice<UInt8> {
    let end = html[(position + 1)...].firstIndex(of: Self.less) ?? html.count
    defer { position = end }
    return html[position..<end]
  }

  private mutating func skip(past byte: UInt8) {
    position = html[position...].firstIndex(of: byte).map { $0 + 1 } ?? html.count
  }

  /// Skips a comment, or another declaration that begins with `<!`.
  private mutating func skipDeclaration() {
    guard html[position...].starts(with: "<!--".utf8) else { return skip(past: Self.greater) }
    // The first hyphens may also be the last ones: `<!-->`.
    position += 2
    repeat {
      skip(past: Self.greater)
      let end = html[..<position].suffix(3)
      if end.elementsEqual("-->".utf8) { return }
    } while position < html.count
  }

  /// Skips to the end tag of an element that contains no markup.
  private mutating func skipRawText(of name: ArraySlice<UInt8>) {
    while position < html.count {
      guard let start = html[position...].firstIndex(of: Self.less) else { break }
      position = start
      let rest = html[start...].dropFirst(2).prefix(name.count + 1)
      if byte(1) == Self.slash, rest.count == name.count + 1,
        zip(rest, name).allSatisfy({ $0 | 0x20 == $1 | 0x20 }),
        rest.last.map({ Self.isBlank($0) || $0 == Self.slash || $0 == Self.greater }) == true
      {
        return
      }
      position += 1
    }
    position = html.count
  }

  /// A tag with its attributes; nil if the document ends inside the tag.
  private mutating func takeTag(nameAt start: Int) throws(ListingError) -> HTMLTag? {
    let tagStart = position
    position = start
    var tag = HTMLTag(
      name: takeWord { Self.isBlank($0) || $0 == Self.slash || $0 == Self.greater })
    var attributeCount = 0
    while true {
      tag.isSelfClosing = false
      while let byte = byte(0), Self.isBlank(byte) || byte == Self.slash {
        tag.isSelfClosing = byte == Self.slash
        position += 1
      }
      guard position - tagStart < HTMLLinks.maximumTagByteCount,
        attributeCount <= HTMLLinks.maximumAttributeCount
      else { throw .tagTooLong }
      guard let byte = byte(0) else { return nil }
      if byte == Self.greater {
        position += 1
        return tag
      }
      attributeCount += 1
      let name = takeAttributeName()
      let value = takeAttributeValue()
      if tag.href == nil, isHTMLName(name, "href") { tag.href = value }
    }
  }

  private mutating func takeAttributeName() -> ArraySlice<UInt8> {
    let start = position
    // A leading equals sign belongs to the name.
    position += 1
    _ = takeWord {
      Self.isBlank($0) || $0 == Self.slash || $0 == Self.greater || $0 == UInt8(ascii: "=")
    }
    return html[start..<position]
  }

  private mutating func takeAttributeValue() -> ArraySlice<UInt8> {
    skipBlanks()
    guard byte(0) == UInt8(ascii: "=") else { return [] }
    position += 1
    skipBlanks()
    guard let quote = byte(0), quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      return takeWord { Self.isBlank($0) || $0 == Self.greater }
    }
    position += 1
    let value = takeWord { $0 == quote }
    if position < html.count { position += 1 }
    return value
  }

  private mutating func skipBlanks() {
    _ = takeWord { !Self.isBlank($0) }
  }

  /// The bytes up to the first one that ends a word.
  private mutating func takeWord(endingAt isEnd: (UInt8) -> Bool) -> ArraySlice<UInt8> {
    let start = position
    while position < html.count, !isEnd(html[position]) { position += 1 }
    return html[start..<position]
  }
}
