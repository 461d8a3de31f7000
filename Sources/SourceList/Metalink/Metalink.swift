import HTTPTransferCore

/// Metalinks: XML documents that name files with their mirrors and hashes; version 4 (RFC 5854,
/// `.meta4`) and version 3 (`.metalink`).
enum Metalink {
  /// The longest document: some two hundred thousand piece hashes.
  static let maximumByteCount = 32 << 20

  /// Whether a text begins like an XML document; no line of a list does.
  static func isDocument(startingWith bytes: some Collection<UInt8>) -> Bool {
    var rest = bytes[...]
    if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest = rest.dropFirst(3) }
    return rest.first { ![0x09, 0x0A, 0x0D, 0x20].contains($0) } == UInt8(ascii: "<")
  }

  /// Reads a document as a list.
  ///
  /// - Parameters:
  ///   - bytes: the complete document, UTF-8.
  ///   - sourceName: its name in errors and warnings.
  ///   - rules: the paths that its file names may be.
  /// - Returns: the checked list.
  /// - Throws: ``SourceListError`` with every error found, up to a limit.
  static func parse(
    _ bytes: [UInt8], sourceName: String, rules: PathRules
  ) throws(SourceListError) -> SourceList {
    let reader = MetalinkReader(sourceName: sourceName, rules: rules)
    guard bytes.count <= maximumByteCount else {
      reader.fail(line: nil, "a Metalink of more than \(maximumByteCount >> 20) MiB")
      return try reader.finish()
    }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      reader.fail(line: nil, "bytes that are not UTF-8; a Metalink must be UTF-8")
      return try reader.finish()
    }
    // XML does not allow blanks before the declaration, but they do no harm.
    let start =
      bytes.starts(with: [0xEF, 0xBB, 0xBF])
      ? 3 : bytes.firstIndex { ![0x09, 0x0A, 0x0D, 0x20].contains($0) } ?? 0
    let skippedLineCount = bytes[..<start].reduce(0) { $0 + ($1 == UInt8(ascii: "\n") ? 1 : 0) }
    reader.firstLine = skippedLineCount
    do {
      try XMLElements.read(start == 0 ? bytes : Array(bytes[start...]), into: reader)
    } catch {
      reader.fail(line: error.line.map { $0 + skippedLineCount }, error.message)
    }
    return try reader.finish()
  }
}
