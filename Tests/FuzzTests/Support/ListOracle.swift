import HTTPTransferCore
import SourceList

/// The rules of the list's format, in an independent and simple form.
struct ListOracle {
  private let rules: PathRules

  /// Whether the bytes begin like gzip, so their lines are not those of the list.
  let isCompressed: Bool

  /// The numbers of the lines that hold URLs, ascending.
  private var urlLines: [Int] = []

  /// The first line that must be refused for its bytes alone.
  ///
  /// The reasons are control characters, bytes that are not UTF-8, and a length over the limit.
  private var firstBadLine: Int?

  private var lineCount = 0

  /// Reads the lines of `bytes`.
  init(bytes: [UInt8], rules: PathRules) {
    self.rules = rules
    isCompressed = bytes.starts(with: [0x1F, 0x8B])
    let lines = bytes.split(separator: 0x0A, omittingEmptySubsequences: false)
    lineCount = lines.count
    for (index, line) in lines.enumerated() {
      var line = Array(line)
      if index == 0, line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
      if line.last == 0x0D { line.removeLast() }
      let text = line.drop { $0 == 0x20 || $0 == 0x09 }
      let isTooLong = rules == .mount && line.count > SourceList.maximumLineByteCount
      if !isTooLong, text.isEmpty || text.first == UInt8(ascii: "#") { continue }
      if text.count == line.count { urlLines.append(index + 1) }
      let hasControl = text.contains { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }
      let isBad = isTooLong || hasControl || String(validating: text, as: UTF8.self) == nil
      if isBad, firstBadLine == nil { firstBadLine = index + 1 }
    }
  }

  // MARK: Refused lists

  /// The rule that a refusal violates; nil if it is right.
  func rule(brokenBy error: SourceListError) -> String? {
    if error.diagnostics.isEmpty { return "an error without a reason" }
    for diagnostic in error.diagnostics {
      if rules == .mount, diagnostic.message.unicodeScalars.contains(where: Self.isControl) {
        return "a message with a control character: \(diagnostic.message.debugDescription)"
      }
      if let line = diagnostic.line, !(1...max(1, lineCount)).contains(line), !isCompressed {
        return "an error in line \(line) of \(lineCount)"
      }
    }
    guard !isCompressed, !error.isTruncated, let firstBadLine else { return nil }
    return error.diagnostics.contains { $0.line == firstBadLine }
      ? nil : "line \(firstBadLine) is not named: \(error)"
  }

  // MARK: Accepted lists

  /// The rule that an accepted list violates; nil if there is none.
  func rule(brokenBy list: SourceList) -> String? {
    if rules == .mount, list.entries.isEmpty { return "a list without entries" }
    if !isCompressed {
      if let firstBadLine { return "line \(firstBadLine) must be refused" }
      if list.entries.map(\.line) != urlLines {
        return "entries of lines \(list.entries.map(\.line)), URLs in lines \(urlLines)"
      }
    }
    for entry in list.entries {
      if rules == .mount, let rule = Self.rule(brokenByPath: entry.path) {
        return "\(rule): \(entry.path.debugDescription)"
      }
      if let rule = Self.rule(brokenBy: entry) { return "\(rule) in line \(entry.line)" }
    }
    guard rules == .mount else { return nil }
    return Self.clash(list.entries.map(\.path)).map { "\($0.debugDescription) is there twice" }
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
  }

  private static func rule(brokenByPath path: String) -> String? {
    if path.utf8.count > 4095 { return "a path of \(path.utf8.count) bytes" }
    if path.unicodeScalars.contains(where: isControl) { return "a control character" }
    let segments = Array(path.utf8).split(separator: 0x2F, omittingEmptySubsequences: false)
    for segment in segments {
      if segment.isEmpty { return "an empty segment" }
      if segment.elementsEqual(".".utf8) || segment.elementsEqual("..".utf8) { return "a dot" }
      if segment.count > 255 { return "a name of \(segment.count) bytes" }
    }
    let reserved = [".status", ".status.json", ".metrics", ".control"]
    if let root = segments.first, reserved.contains(String(decoding: root, as: UTF8.self)) {
      return "a reserved name"
    }
    return nil
  }

  private static func rule(brokenBy entry: SourceEntry) -> String? {
    for url in [entry.url] + entry.mirrors {
      if !["http", "https"].contains(url.scheme) { return "a URL of scheme \(url.scheme)" }
      if url.text.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) {
        return "a URL with a space or control character"
      }
      if url.authority.isEmpty { return "a URL without a host" }
    }
    for field in entry.headers {
      let token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
      if field.name.isEmpty || !field.name.utf8.allSatisfy({ token.utf8.contains($0) }) {
        return "a field name that is no token"
      }
      if field.value.utf8.contains(where: { ($0 < 0x20 && $0 != 0x09) || $0 == 0x7F }) {
        return "a field value with a control character"
      }
      let owned = ["range", "host-length", "content-length", "transfer-encoding", "if-range"]
      if owned.contains(field.name.lowercased()) { return "the field \(field.name)" }
    }
    if let checksum = entry.checksum,
      checksum.digest.count != checksum.algorithm.digestByteCount
    {
      return "a digest of \(checksum.digest.count) bytes"
    }
    return nil
  }

  /// A path that occurs twice, or that is both a file and a directory of other files.
  private static func clash(_ paths: [String]) -> String? {
    var files: Set<PathKey> = []
    for path in paths where !files.insert(PathKey(path)).inserted { return path }
    for path in paths {
      var parent = Array(path.utf8)
      while let slash = parent.lastIndex(of: 0x2F) {
        parent.removeSubrange(slash...)
        let name = String(decoding: parent, as: UTF8.self)
        if files.contains(PathKey(name)) { return name }
      }
    }
    return nil
  }
}
