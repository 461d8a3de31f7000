/// Finds the links of any HTML document in one pass.
///
/// It follows the rules of HTML about where tags, comments and raw text begin and end (WHATWG,
/// "Tokenization"). It builds no tree and compares nothing with earlier input, so its work grows
/// linearly with the bytes.
enum HTMLLinks {
  /// The longest tag in bytes.
  static let maximumTagByteCount = 64 << 10

  /// How many attributes a tag may have.
  static let maximumAttributeCount = 1000

  /// Passes the links of `html`, UTF-8, to `builder` in order, until there are too many.
  static func collect(
    from html: [UInt8], into builder: inout ListingBuilder
  ) throws(ListingError) {
    var scanner = HTMLScanner(html)
    var collector = LinkCollector(builder)
    while collector.builder.excess == nil, let token = try scanner.next() {
      switch token {
      case .text(let text): collector.append(text)
      case .start(let tag): collector.take(tag)
      case .end(let name): collector.takeEnd(name)
      }
    }
    collector.endDescription()
    builder = collector.builder
  }
}

/// A start tag with the parts that links need; the bytes are those of the document.
struct HTMLTag {
  var name: ArraySlice<UInt8>
  /// The value of the first `href`, its references not resolved.
  var href: ArraySlice<UInt8>?
  /// Whether the tag ends in `/>`.
  var isSelfClosing = false
}

/// Makes links and their descriptions from tags and text.
private struct LinkCollector {
  private(set) var builder: ListingBuilder
  /// The entry of the last link, and the text after that link.
  private var described: Int?
  private var text: [UInt8] = []
  private var isInLink = false

  /// How much text to keep: the text to examine, with each byte as a character reference, and a
  /// little more to show that there is more.
  private static let maximumTextByteCount = 12 * (ListedFacts.maximumTextByteCount + 1)

  init(_ builder: ListingBuilder) { self.builder = builder }

  mutating func take(_ tag: HTMLTag) {
    if isHTMLName(tag.name, "a") {
      endDescription()
      isInLink = !tag.isSelfClosing
      described = reference(in: tag).flatMap { builder.add($0) }
    } else if isHTMLName(tag.name, "base") {
      if let reference = reference(in: tag) { builder.setBase(reference) }
    } else {
      // The cells of a table are separate words.
      append([UInt8(ascii: " ")])
    }
  }

  mutating func takeEnd(_ name: ArraySlice<UInt8>) {
    if isHTMLName(name, "a") { isInLink = false }
  }

  mutating func append(_ piece: ArraySlice<UInt8>) {
    guard described != nil, !isInLink, text.count <= Self.maximumTextByteCount else { return }
    text += piece.prefix(Self.maximumTextByteCount + 1)
  }

  mutating func endDescription() {
    if let described {
      // Text that was cut is longer than any description that we accept.
      let isCut = text.count > Self.maximumTextByteCount
      builder.describe(described, isCut ? text : CharacterReferences.resolved(in: text[...]))
    }
    described = nil
    text.removeAll(keepingCapacity: true)
  }

  private func reference(in tag: HTMLTag) -> String? {
    tag.href.map { String(decoding: CharacterReferences.resolved(in: $0), as: UTF8.self) }
  }
}

/// Whether a name of the document is `other`, which must be in lower case.
func isHTMLName(_ name: ArraySlice<UInt8>, _ other: StaticString) -> Bool {
  name.count == other.utf8CodeUnitCount
    && other.withUTF8Buffer { other in
      zip(name, other).allSatisfy { byte, expected in
        byte == expected || (0x41...0x5A).contains(byte) && byte | 0x20 == expected
      }
    }
}
