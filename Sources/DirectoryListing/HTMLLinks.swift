internal import CXML

/// Finds the links of an HTML document with libxml2.
enum HTMLLinks {
  /// Hands the links of `html`, UTF-8, to `builder` in their order, until it is full.
  static func collect(
    from html: [UInt8], into builder: inout ListingBuilder
  ) throws(ListingError) {
    guard httpfs_libxml_load() else { throw .parserMissing }
    let collector = LinkCollector(builder)
    let handlers = httpfs_html_handlers(start: takeStart, end: takeEnd, text: takeText)
    guard let parser = httpfs_html_new(handlers, Unmanaged.passUnretained(collector).toOpaque())
    else { throw .outOfMemory }
    defer { httpfs_html_free(parser) }
    collector.parser = parser
    html.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      // Bounded far below Int32.max by the limit of a listing, three bytes for each of its own.
      httpfs_html_parse(
        parser, start.assumingMemoryBound(to: CChar.self), CInt(clamping: bytes.count))
    }
    withExtendedLifetime(collector) {}
    if collector.isTooDeep { throw .tooDeeplyNested }
    collector.endDescription()
    builder = collector.builder
  }
}

/// What the parser calls back, for the time of one document.
private final class LinkCollector {
  var builder: ListingBuilder
  var parser: OpaquePointer?
  var isTooDeep = false
  /// The entry whose link was the last one, and the text behind that, up to the next one.
  private var described: Int?
  private var text: [UInt8] = []
  private var isInLink = false

  init(_ builder: ListingBuilder) { self.builder = builder }

  func take(_ name: UnsafePointer<UInt8>, _ attributes: Attributes) {
    guard let parser, !isTooDeep else { return }
    // The parser looks through all open elements at each end tag: bounded, or time would not be.
    if Int(httpfs_html_depth(parser)) > ListingError.maximumNesting {
      isTooDeep = true
      return httpfs_html_stop(parser)
    }
    if Self.isName(name, "a") {
      endDescription()
      isInLink = true
      described = Self.reference(in: attributes).flatMap { builder.add($0) }
      if builder.isFull { httpfs_html_stop(parser) }
    } else if Self.isName(name, "base") {
      if let reference = Self.reference(in: attributes) { builder.setBase(reference) }
    } else {
      // Cells of a table are words of their own.
      append([UInt8(ascii: " ")])
    }
  }

  func takeEnd(_ name: UnsafePointer<UInt8>) {
    if Self.isName(name, "a") { isInLink = false }
  }

  /// Takes text as far as it may be looked at, and a little more, which shows that there is more.
  func append(_ piece: some Collection<UInt8>) {
    guard described != nil, !isInLink, text.count <= ListedFacts.maximumTextByteCount else {
      return
    }
    text += piece.prefix(ListedFacts.maximumTextByteCount + 1)
  }

  func endDescription() {
    if let described { builder.describe(described, text) }
    described = nil
    text.removeAll(keepingCapacity: true)
  }

  /// Names and values by turns, and a null pointer at the end.
  typealias Attributes = UnsafeMutablePointer<UnsafePointer<UInt8>?>?

  /// The value of `href`, with its character references resolved.
  private static func reference(in attributes: Attributes) -> String? {
    guard var pair = attributes else { return nil }
    while let name = pair[0] {
      if isName(name, "href") { return pair[1].map { String(cString: $0) } }
      pair += 2
    }
    return nil
  }

  /// Whether a name, which the parser has put into lower case, is `other`.
  private static func isName(_ name: UnsafePointer<UInt8>, _ other: StaticString) -> Bool {
    other.withUTF8Buffer { other in
      // Ends at the first difference, at the latest behind the name's terminating zero.
      other.enumerated().allSatisfy { name[$0.offset] == $0.element } && name[other.count] == 0
    }
  }
}

private func takeStart(
  _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<UInt8>?,
  _ attributes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?
) {
  guard let context, let name else { return }
  Unmanaged<LinkCollector>.fromOpaque(context).takeUnretainedValue().take(name, attributes)
}

private func takeEnd(_ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<UInt8>?) {
  guard let context, let name else { return }
  Unmanaged<LinkCollector>.fromOpaque(context).takeUnretainedValue().takeEnd(name)
}

private func takeText(
  _ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<UInt8>?, _ byteCount: CInt
) {
  guard let context, let text, byteCount > 0 else { return }
  Unmanaged<LinkCollector>.fromOpaque(context).takeUnretainedValue().append(
    UnsafeBufferPointer(start: text, count: Int(byteCount)))
}
