package import HTTPTransferCore

/// The rules for the path of a file in the mount.
enum EntryPath {
  /// The longest name of a file or directory in bytes (`NAME_MAX` of Linux).
  static let maximumSegmentByteCount = 255

  /// The longest path in bytes (`PATH_MAX` of Linux, without the NUL).
  static let maximumPathByteCount = 4095

  /// The maximum number of names in a path: each is a directory of its own, with its own path.
  static let maximumSegmentCount = 128

  /// Why a path cannot be used.
  enum Problem: Error, Equatable {
    case emptyName
    case absolute
    case emptySegment
    case dotSegment
    case controlCharacter
    case segmentTooLong(byteCount: Int)
    case pathTooLong(byteCount: Int)
    case pathTooDeep
    case reserved(String)
    case noNameInURL
    case dotNameInURL

    /// What is wrong, and what to do.
    func message(suggestsTree: Bool) -> String {
      switch self {
      case .emptyName: "the name is empty"
      case .absolute: "an absolute path as a name; names in a list are relative"
      case .emptySegment: "an empty segment in the name (a '/' at its end, or two in a row)"
      case .dotSegment: "'.' or '..' as a segment of the name"
      case .controlCharacter: "a control character in the name"
      case .segmentTooLong(let byteCount):
        "a name of \(byteCount) bytes; the limit is \(EntryPath.maximumSegmentByteCount);"
          + " choose a shorter one with out="
      case .pathTooLong(let byteCount):
        "a path of \(byteCount) bytes; the limit is \(EntryPath.maximumPathByteCount)"
      case .pathTooDeep:
        "a path of more than \(EntryPath.maximumSegmentCount) directories and names"
      case .reserved(let name):
        "the name '\(name)' is reserved for httpfs itself; choose another with out="
          + (suggestsTree ? " or use --tree" : "")
      case .noNameInURL: "a URL that ends in '/' needs out=: it names no file"
      case .dotNameInURL: "the URL's path holds '.' or '..'; name the file with out="
      }
    }
  }

  /// The path that `out=` and `dir=` give.
  static func explicit(
    out: String, directory: String?, rules: PathRules
  ) throws(Problem) -> String {
    if out.isEmpty { throw .emptyName }
    if rules == .local { return prefixed(out, directory: directory) }
    // A directory before an absolute name does not make it relative.
    if out.utf8.first == UInt8(ascii: "/") { throw .absolute }
    let path = prefixed(out, directory: directory)
    try check(path)
    return path
  }

  /// The path for a URL that has no `out=`: the last segment of its path or, with `tree`, its
  /// host and whole path.
  static func derived(
    from url: RemoteURL, directory: String?, tree: Bool
  ) throws(Problem) -> String {
    let encoded = url.path.utf8
    let nameStart =
      encoded.lastIndex(of: UInt8(ascii: "/")).map { encoded.index(after: $0) }
      ?? encoded.endIndex
    guard nameStart < encoded.endIndex else { throw .noNameInURL }
    let name: String
    if tree {
      name = try treePath(of: url)
    } else {
      name = try safeSegment(Substring(encoded[nameStart...]))
    }
    let path = prefixed(name, directory: directory)
    try check(path)
    return path
  }

  /// The path for a URL whose server is asked for the name: as long as it has not answered, that
  /// of ``derived(from:directory:tree:)``; with an empty last name if the URL has none.
  static func provisional(from url: RemoteURL, directory: String?) throws(Problem) -> String {
    do throws(Problem) {
      return try derived(from: url, directory: directory, tree: false)
    } catch {
      guard error == .noNameInURL else { throw error }
      let path = try explicit(out: "_", directory: directory, rules: .mount)
      return String(Substring(path.utf8.dropLast()))
    }
  }

  /// The host and the complete path of a URL.
  private static func treePath(of url: RemoteURL) throws(Problem) -> String {
    // The port is kept: two ports of one host are two origins.
    var name = url.authority
    for segment in url.path.utf8.split(separator: UInt8(ascii: "/")) {
      name += "/"
      name += try safeSegment(Substring(segment))
    }
    return name
  }

  /// `directory/name`; the directory may end in one `/`, which is natural there.
  private static func prefixed(_ name: String, directory: String?) -> String {
    guard let directory, !directory.isEmpty else { return name }
    return directory.utf8.count > 1 && directory.utf8.last == UInt8(ascii: "/")
      ? directory + name : "\(directory)/\(name)"
  }

  /// Decodes a segment of a URL's path and replaces what a name cannot contain by `_`: an encoded
  /// `/`, NUL and other control characters.
  ///
  /// If the decoded bytes are not UTF-8, the segment stays encoded, because any other name would
  /// guess its encoding.
  private static func safeSegment(_ segment: Substring) throws(Problem) -> String {
    let encoded = segment.utf8
    var decoded = segment[...]
    if encoded.contains(UInt8(ascii: "%")) {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(encoded.count)
      var index = encoded.startIndex
      while index < encoded.endIndex {
        if encoded[index] == UInt8(ascii: "%"),
          let first = encoded.index(index, offsetBy: 1, limitedBy: encoded.endIndex),
          let second = encoded.index(index, offsetBy: 2, limitedBy: encoded.endIndex),
          second < encoded.endIndex,
          let high = hexadecimalValue(encoded[first]), let low = hexadecimalValue(encoded[second])
        {
          bytes.append(high << 4 | low)
          index = encoded.index(after: second)
        } else {
          bytes.append(encoded[index])
          index = encoded.index(after: index)
        }
      }
      if let text = String(validating: bytes, as: UTF8.self) { decoded = Substring(text) }
    }
    if decoded.utf8.elementsEqual(".".utf8) || decoded.utf8.elementsEqual("..".utf8) {
      throw .dotNameInURL
    }
    var hasUnsafe = false
    var previous: UInt8 = 0
    for byte in decoded.utf8 {
      if byte == UInt8(ascii: "/") || isControl(byte, after: previous) { hasUnsafe = true }
      previous = byte
    }
    guard hasUnsafe else { return String(decoded) }
    var safe = String.UnicodeScalarView()
    for scalar in decoded.unicodeScalars {
      let isUnsafe =
        scalar == "/" || scalar.value < 0x20 || (0x7F...0x9F).contains(scalar.value)
      safe.append(isUnsafe ? "_" : scalar)
    }
    return String(safe)
  }

  /// Whether the byte of a UTF-8 text is, or ends, a control character of C0 or C1.
  private static func isControl(_ byte: UInt8, after previous: UInt8) -> Bool {
    byte < 0x20 || byte == 0x7F || (previous == 0xC2 && (0x80...0x9F).contains(byte))
  }

  /// The path of the directory that shows a listing: `out=`, or else, as for a file, the last
  /// segment of the URL's path, or its host if there is none.
  static func listing(
    of url: RemoteURL, out: String?, directory: String?, tree: Bool
  ) throws(Problem) -> String {
    if let out { return try explicit(out: withoutSlash(out), directory: directory, rules: .mount) }
    let path = withoutSlash(url.path)
    if path.isEmpty {
      return try explicit(out: url.authority, directory: directory, rules: .mount)
    }
    guard let file = url.replacingPath(path) else { throw .noNameInURL }
    return try derived(from: file, directory: directory, tree: tree)
  }

  private static func withoutSlash(_ path: String) -> String {
    path.utf8.last == UInt8(ascii: "/") ? String(Substring(path.utf8.dropLast())) : path
  }

  /// Checks that the system accepts the length of a path.
  private static func checkSize(_ path: String) throws(Problem) {
    let byteCount = path.utf8.count
    if byteCount > maximumPathByteCount { throw .pathTooLong(byteCount: byteCount) }
    if path.utf8.count(where: { $0 == UInt8(ascii: "/") }) >= maximumSegmentCount {
      throw .pathTooDeep
    }
  }

  /// Checks a complete path: each segment, the length and, with `atRoot`, that it does not begin
  /// with one of the mount's own names.
  static func check(_ path: String, atRoot: Bool = true) throws(Problem) {
    let utf8 = path.utf8
    if utf8.first == UInt8(ascii: "/") { throw .absolute }
    try checkSize(path)
    var segmentByteCount = 0
    var hasOnlyDots = true
    var previous: UInt8 = 0

    func checkSegment() throws(Problem) {
      if segmentByteCount == 0 { throw .emptySegment }
      if hasOnlyDots, segmentByteCount <= 2 { throw .dotSegment }
      if segmentByteCount > maximumSegmentByteCount {
        throw .segmentTooLong(byteCount: segmentByteCount)
      }
    }

    for byte in utf8 {
      if byte == UInt8(ascii: "/") {
        try checkSegment()
        segmentByteCount = 0
        hasOnlyDots = true
      } else {
        if isControl(byte, after: previous) { throw .controlCharacter }
        if byte != UInt8(ascii: ".") { hasOnlyDots = false }
        segmentByteCount += 1
      }
      previous = byte
    }
    try checkSegment()
    // Every reserved name starts with a dot: the others need no look-up.
    if atRoot, utf8.first == UInt8(ascii: ".") {
      let end = utf8.firstIndex(of: UInt8(ascii: "/")) ?? utf8.endIndex
      let root = String(path[..<end])
      if SourceList.reservedRootNames.contains(root) { throw .reserved(root) }
    }
  }
}

extension RemoteURL {
  /// Whether `--tree` gives it another name than `other`: a query is no part of a name.
  package func hasOtherTreeName(than other: RemoteURL) -> Bool {
    authority != other.authority || path != other.path
  }
}
