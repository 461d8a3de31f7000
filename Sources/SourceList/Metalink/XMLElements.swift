internal import CXML

/// Receives an XML document element by element.
protocol XMLElementHandler: AnyObject {
  /// An element begins.
  ///
  /// - Parameters:
  ///   - name: its local name.
  ///   - namespace: the URI of its namespace; empty for none.
  ///   - attributes: the values of its attributes without a namespace, by name.
  ///   - line: the line on which its start tag ends.
  /// - Returns: whether to continue.
  func start(
    _ name: String, namespace: String, attributes: [String: String], line: Int
  ) -> Bool

  /// The last open element ends.
  ///
  /// - Returns: whether to continue.
  func end() -> Bool

  /// A piece of the text of the last open element.
  ///
  /// - Returns: whether to continue.
  func text(_ piece: UnsafeBufferPointer<UInt8>) -> Bool
}

/// Why a document cannot be read as XML.
struct XMLProblem: Error, Equatable {
  /// Counted from 1; nil if the problem concerns no line.
  let line: Int?
  let message: String
}

/// Reads XML with libxml2 and rejects input that could exhaust it.
///
/// It allows no document type, so no entities except XML's own, no long tag, few attributes and
/// namespaces, and little nesting.
enum XMLElements {
  /// How many elements may be open at once.
  static let maximumNesting = 16

  /// The maximum number of attributes of a tag: the parser compares each with all others.
  static let maximumAttributeCount = 64

  /// The maximum number of namespaces of a tag: the parser searches all that are in scope.
  static let maximumDeclarationCount = 16

  /// Passes the elements of `document`, UTF-8, to `handler`.
  ///
  /// - Throws: if the document is not well-formed or exceeds a limit; the handler has then received
  ///   the part before the problem.
  static func read(_ document: [UInt8], into handler: any XMLElementHandler) throws(XMLProblem) {
    if let line = TagScanner.firstLongTag(in: document) {
      throw XMLProblem(
        line: line,
        message: "a tag of more than \(TagScanner.maximumByteCount) bytes or"
          + " \(TagScanner.maximumAttributeCount) attributes")
    }
    guard httpfs_libxml_load() else {
      throw XMLProblem(
        line: nil,
        message: "a Metalink needs libxml2, which is not there; install the package libxml2")
    }
    let collector = Collector(handler)
    let handlers = httpfs_xml_handlers(
      start: takeStart, end: takeEnd, text: takeText, document_type: takeDocumentType,
      problem: takeProblem)
    guard let parser = httpfs_xml_new(handlers, Unmanaged.passUnretained(collector).toOpaque())
    else { throw XMLProblem(line: nil, message: "no memory for the document") }
    defer { httpfs_xml_free(parser) }
    collector.parser = parser
    document.withUnsafeBytes { bytes in
      guard let start = bytes.baseAddress else { return }
      // Far below Int32.max, because of the limit of a Metalink.
      httpfs_xml_parse(
        parser, start.assumingMemoryBound(to: CChar.self), CInt(clamping: bytes.count))
    }
    withExtendedLifetime(collector) {}
    if let problem = collector.problem { throw problem }
  }
}

/// Receives the parser's callbacks for one document.
private final class Collector {
  private let handler: any XMLElementHandler
  var parser: OpaquePointer?
  private(set) var problem: XMLProblem?
  private var depth = 0
  /// Whether the parser was told to stop; it may still call once more.
  private var isStopped = false

  init(_ handler: any XMLElementHandler) { self.handler = handler }

  private var line: Int { Int(httpfs_xml_line(parser)) }

  private func stop() {
    isStopped = true
    httpfs_xml_stop(parser)
  }

  private func fail(_ message: String, line: Int) {
    if problem == nil { problem = XMLProblem(line: line, message: message) }
    stop()
  }

  func takeStart(
    _ name: UnsafePointer<UInt8>, _ namespace: UnsafePointer<UInt8>?, declarationCount: Int,
    attributes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, attributeCount: Int
  ) {
    guard !isStopped else { return }
    depth += 1
    guard depth <= XMLElements.maximumNesting else {
      return fail("elements inside elements, too deeply for a Metalink", line: line)
    }
    guard attributeCount <= XMLElements.maximumAttributeCount,
      declarationCount <= XMLElements.maximumDeclarationCount
    else { return fail("a tag of too many attributes", line: line) }
    var values: [String: String] = [:]
    if var attribute = attributes {
      for _ in 0..<attributeCount {
        if attribute[2] == nil, let key = attribute[0], let start = attribute[3],
          let end = attribute[4], end >= start
        {
          let value = UnsafeBufferPointer(start: start, count: end - start)
          values[String(cString: key)] = String(decoding: value, as: UTF8.self)
        }
        attribute += 5
      }
    }
    let goesOn = handler.start(
      String(cString: name), namespace: namespace.map { String(cString: $0) } ?? "",
      attributes: values, line: line)
    if !goesOn { stop() }
  }

  func takeEnd() {
    guard !isStopped else { return }
    depth -= 1
    if !handler.end() { stop() }
  }

  func takeText(_ text: UnsafePointer<UInt8>, _ byteCount: Int) {
    guard !isStopped else { return }
    if !handler.text(UnsafeBufferPointer(start: text, count: byteCount)) { stop() }
  }

  func takeDocumentType() {
    guard !isStopped else { return }
    fail("a document type declaration, which no Metalink has", line: line)
  }

  func takeProblem(_ message: UnsafePointer<CChar>?, line: Int) {
    guard !isStopped, problem == nil else { return }
    // The message of libxml2 may contain some of the document's text.
    let text = message.map { String(cString: $0) } ?? ""
    let plain = text.utf8.prefix(120).map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: " ") }
    let words = trimmingBlanks(Substring(String(decoding: plain, as: UTF8.self)))
    problem = XMLProblem(line: line, message: "not well-formed XML: \(words)")
    // The parser passes nothing on after this. It cannot be stopped here, because it does not
    // expect that.
    isStopped = true
  }
}

private func collector(_ context: UnsafeMutableRawPointer) -> Collector {
  Unmanaged<Collector>.fromOpaque(context).takeUnretainedValue()
}

private func takeStart(
  _ context: UnsafeMutableRawPointer?, _ name: UnsafePointer<UInt8>?,
  _ namespace: UnsafePointer<UInt8>?, _ declarationCount: CInt, _ attributeCount: CInt,
  _ attributes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?
) {
  guard let context, let name else { return }
  collector(context).takeStart(
    name, namespace, declarationCount: Int(declarationCount), attributes: attributes,
    attributeCount: Int(attributeCount))
}

private func takeEnd(_ context: UnsafeMutableRawPointer?) {
  guard let context else { return }
  collector(context).takeEnd()
}

private func takeText(
  _ context: UnsafeMutableRawPointer?, _ text: UnsafePointer<UInt8>?, _ byteCount: CInt
) {
  guard let context, let text, byteCount > 0 else { return }
  collector(context).takeText(text, Int(byteCount))
}

private func takeDocumentType(_ context: UnsafeMutableRawPointer?) {
  guard let context else { return }
  collector(context).takeDocumentType()
}

private func takeProblem(
  _ context: UnsafeMutableRawPointer?, _ line: CInt, _ message: UnsafePointer<CChar>?
) {
  guard let context else { return }
  collector(context).takeProblem(message, line: Int(line))
}
