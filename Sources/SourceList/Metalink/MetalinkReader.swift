import HTTPTransferCore

/// Makes the entries of a list from the elements of a Metalink.
///
/// As RFC 5854 §5 says, it ignores unknown elements, and those of other namespaces, with everything
/// inside them.
final class MetalinkReader: XMLElementHandler {
  private enum Version {
    case three
    case four

    init?(namespace: String) {
      switch namespace {
      case "http://www.metalinker.org/": self = .three
      case "urn:ietf:params:xml:ns:metalink": self = .four
      default: return nil
      }
    }
  }

  /// The elements with a meaning.
  private enum Element {
    case metalink, files, file, verification, resources
    // The elements whose text is used.
    case size
    case hash(type: String)
    case pieces
    case pieceHash(piece: Int?)
    case url(rank: Int, type: String?)

    var hasText: Bool {
      switch self {
      case .size, .hash, .pieceHash, .url: true
      default: false
      }
    }
  }

  private struct OpenElement {
    let element: Element
    let line: Int
  }

  /// The rank of a URL without a priority in the document: RFC 5854 §4.2.16.1.
  private static let lowestRank = 999_999

  /// The maximum length of an element's text in bytes, equal to that of a list's line.
  private static let maximumTextByteCount = SourceList.maximumLineByteCount

  private let sourceName: String
  private let rules: PathRules
  /// How many lines precede the parser's first line.
  var firstLine = 0

  private var version: Version?
  private var namespace = ""
  private var open: [OpenElement] = []
  /// How many elements are open inside an ignored one.
  private var ignoredDepth = 0
  private var text: [UInt8] = []
  private var file: MetalinkFile?
  private var pieceList: PieceList?

  private var entries: [SourceEntry] = []
  private var paths = PathTable()
  private var errors: [SourceDiagnostic] = []
  private var warnings = WarningLog()
  private var isTruncated = false

  init(sourceName: String, rules: PathRules) {
    self.sourceName = sourceName
    self.rules = rules
  }

  // MARK: Elements

  func start(
    _ name: String, namespace: String, attributes: [String: String], line: Int
  ) -> Bool {
    let line = line + firstLine
    guard ignoredDepth == 0 else {
      ignoredDepth += 1
      return true
    }
    if open.isEmpty {
      guard name == "metalink", let version = Version(namespace: namespace) else {
        fail(
          line: line,
          "an XML document, but no Metalink of version 3 or 4; a list has one URL a line")
        return false
      }
      self.version = version
      self.namespace = namespace
      open.append(OpenElement(element: .metalink, line: line))
      return true
    }
    guard namespace == self.namespace,
      let element = element(name, attributes: attributes, line: line)
    else {
      ignoredDepth = 1
      return !isTruncated
    }
    open.append(OpenElement(element: element, line: line))
    text.removeAll(keepingCapacity: true)
    return !isTruncated
  }

  /// The element with this name below the open one; nil if it has no meaning there.
  private func element(
    _ name: String, attributes: [String: String], line: Int
  ) -> Element? {
    guard let parent = open.last?.element, let version else { return nil }
    switch (parent, name, version) {
    case (.metalink, "files", .three): return .files
    case (.metalink, "file", .four), (.files, "file", .three):
      file = MetalinkFile(name: attributes["name"] ?? "", line: line)
      return .file
    case (.file, "size", _): return .size
    case (.file, "verification", .three): return .verification
    case (.file, "resources", .three): return .resources
    case (.file, "hash", .four), (.verification, "hash", .three):
      return attributes["type"].map { .hash(type: $0) }
    case (.file, "pieces", .four), (.verification, "pieces", .three):
      return beginPieces(attributes, line: line) ? .pieces : nil
    case (.pieces, "hash", _):
      return .pieceHash(
        piece: attributes["piece"].map { Int64(digits: $0).flatMap { Int(exactly: $0) } ?? -1 })
    case (.file, "url", .four), (.resources, "url", .three):
      return .url(rank: rank(attributes, version), type: attributes["type"])
    default: return nil
    }
  }

  /// `priority` counts up from 1; the `preference` of version 3 counts down from 100.
  private func rank(_ attributes: [String: String], _ version: Version) -> Int {
    let text = attributes[version == .four ? "priority" : "preference"]
    guard let number = text.flatMap({ Int64(digits: $0) }), number <= Self.lowestRank else {
      return Self.lowestRank
    }
    return version == .four ? Int(number) : 100 - min(100, Int(number))
  }

  private func beginPieces(_ attributes: [String: String], line: Int) -> Bool {
    guard let type = attributes["type"], let algorithm = Checksum.Algorithm(named: type) else {
      return false
    }
    guard let length = attributes["length"].flatMap({ Int64(length: $0) }), length > 0
    else {
      fail(line: line, "piece hashes without the length of a piece in bytes")
      return false
    }
    pieceList = PieceList(algorithm: algorithm, pieceByteCount: length)
    return true
  }

  func text(_ piece: UnsafeBufferPointer<UInt8>) -> Bool {
    guard ignoredDepth == 0, let last = open.last, last.element.hasText else { return true }
    guard text.count + piece.count <= Self.maximumTextByteCount else {
      fail(line: last.line, "a text of more than \(Self.maximumTextByteCount) bytes")
      return false
    }
    text += piece
    return true
  }

  func end() -> Bool {
    guard ignoredDepth == 0 else {
      ignoredDepth -= 1
      return true
    }
    guard let last = open.popLast() else { return true }
    switch last.element {
    case .size: takeSize(line: last.line)
    case .hash(let type): takeHash(type, line: last.line)
    case .pieceHash(let piece): takePieceHash(piece, line: last.line)
    case .pieces: endPieces(line: last.line)
    case .url(let rank, let type): takeURL(rank: rank, type: type, line: last.line)
    case .file: endFile()
    case .metalink, .files, .verification, .resources: break
    }
    return !isTruncated
  }

  /// The text of the element that ends, without white space around it.
  private var trimmedText: String {
    func isBlank(_ byte: UInt8) -> Bool { [0x09, 0x0A, 0x0D, 0x20].contains(byte) }
    guard let first = text.firstIndex(where: { !isBlank($0) }),
      let last = text.lastIndex(where: { !isBlank($0) })
    else { return "" }
    return String(decoding: text[first...last], as: UTF8.self)
  }

  // MARK: File properties

  private func takeSize(line: Int) {
    guard let length = Int64(length: trimmedText) else {
      return fail(line: line, "a size that is not a number of bytes")
    }
    file?.length = length
  }

  private func takeHash(_ type: String, line: Int) {
    guard let algorithm = Checksum.Algorithm(named: type) else { return }
    do {
      file?.checksums.append(try Checksum(algorithm: algorithm, hexadecimal: trimmedText))
    } catch {
      fail(line: line, "\(error)")
    }
  }

  private func takePieceHash(_ piece: Int?, line: Int) {
    guard let algorithm = pieceList?.algorithm else { return }
    do {
      let checksum = try Checksum(algorithm: algorithm, hexadecimal: trimmedText)
      pieceList?.append(checksum.digest, piece: piece)
    } catch {
      fail(line: line, "\(error)")
    }
  }

  private func endPieces(line: Int) {
    guard let list = pieceList else { return }
    pieceList = nil
    guard list.hashes != nil else {
      return fail(line: line, "piece hashes that are not numbered from 0 on, or none")
    }
    file?.pieceLists.append(list)
  }

  private func takeURL(rank: Int, type: String?, line: Int) {
    let text = trimmedText
    let scheme = text.prefix { $0 != ":" }.lowercased()
    // The type of version 3 is the scheme, except for a torrent, whose URL is http.
    let kind = type.map { $0.lowercased() } ?? scheme
    if version == .three, type != nil, kind != "http", kind != "https" {
      return warnOfURL(kind, line: line)
    }
    guard scheme == "http" || scheme == "https" || !text.contains(":") else {
      return warnOfURL(scheme, line: line)
    }
    do {
      guard file?.add(try RemoteURL(text), rank: rank) != false else {
        fail(line: line, "more than \(SourceList.maximumURLCount) URLs of one file")
        isTruncated = true
        return
      }
    } catch {
      file?.hasMalformedURL = true
      fail(line: line, "malformed URL: \(error)")
    }
  }

  private func warnOfURL(_ kind: String, line: Int) {
    let isPlain = kind.utf8.count <= 16 && kind.utf8.allSatisfy { (0x21...0x7E).contains($0) }
    let shown = isPlain ? " '\(kind)'" : ""
    warnings.add(
      "a URL of the kind\(shown) skipped: httpfs reads http and https", about: "u:" + shown,
      line: line)
  }

  private func endFile() {
    guard let file else { return }
    self.file = nil
    let urls = file.rankedURLs
    guard let url = urls.first else {
      if !file.hasMalformedURL {
        warnings.add(
          "a file without an http or https URL left out", about: "f:\(file.line)", line: file.line)
      }
      return
    }
    let path: String
    do {
      path = try EntryPath.explicit(out: file.name, directory: nil, rules: rules)
    } catch {
      return fail(line: file.line, error.metalinkMessage)
    }
    if let other = paths.insert(path, line: file.line) {
      return fail(line: file.line, "the name '\(path)' is already used in line \(other)")
    }
    var entry = SourceEntry(
      path: path, url: url, mirrors: Array(urls.dropFirst()), checksum: file.checksum,
      line: file.line)
    entry.length = file.length
    entry.pieces = file.pieces
    if entry.pieces == nil, !file.pieceLists.isEmpty {
      warnings.add(
        "piece hashes ignored: they are not as many as the size needs", about: "p:\(file.line)",
        line: file.line)
    }
    entries.append(entry)
  }

  // MARK: Results

  func fail(line: Int?, _ message: String) {
    guard !isTruncated else { return }
    errors.append(SourceDiagnostic(sourceName: sourceName, line: line, message: message))
    if errors.count == SourceListError.maximumDiagnosticCount { isTruncated = true }
  }

  /// The list, after the document was read.
  func finish() throws(SourceListError) -> SourceList {
    for clash in paths.clashes() {
      fail(
        line: clash.secondLine,
        "the name '\(clash.path)' is a file and a directory at once, see line \(clash.firstLine)")
    }
    if entries.isEmpty, errors.isEmpty {
      fail(line: nil, "the Metalink names no file with an http or https URL")
    }
    guard errors.isEmpty else {
      throw SourceListError(
        diagnostics: errors.sorted { ($0.line ?? 0) < ($1.line ?? 0) }, isTruncated: isTruncated)
    }
    return SourceList(entries: entries, warnings: warnings.diagnostics(sourceName: sourceName))
  }
}

extension EntryPath.Problem {
  /// What is wrong with the name of a file in a Metalink, which has no `out=`.
  fileprivate var metalinkMessage: String {
    switch self {
    case .emptyName: "a file without a name"
    case .segmentTooLong(let byteCount):
      "a name of \(byteCount) bytes; the limit is \(EntryPath.maximumSegmentByteCount)"
    case .reserved(let name): "the name '\(name)' is reserved for httpfs itself"
    default: message(suggestsTree: false)
    }
  }
}
