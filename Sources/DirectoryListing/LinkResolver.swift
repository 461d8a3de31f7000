internal import HTTPTransferCore

/// Finds the links of a listing that lead to children of its directory.
///
/// References are resolved as RFC 3986 §5 says, except that a reference with `..` counts as leading
/// elsewhere, because no listing needs it for its children. Paths are compared segment by segment
/// and decoded, because a server may encode its own path differently than the user.
struct LinkResolver {
  /// A link to a child.
  struct Target: Equatable {
    /// The child's name, decoded; nil if it is not UTF-8.
    let name: String?
    /// The name as in a URL's path.
    let segment: String
    let isDirectory: Bool
  }

  private let url: RemoteURL
  /// The decoded segments of the directory's path.
  private let directory: [[UInt8]]
  /// The segments before the child's name in a relative reference.
  ///
  /// Empty unless a `base` element names a directory above; nil if it leads elsewhere.
  private var relativeDirectory: ArraySlice<[UInt8]>?

  /// Resolves the links of the document at `url`, whose path ends in `/`.
  init(url: RemoteURL) {
    self.url = url
    let path = Array(url.path.utf8)[...]
    directory = Self.segments(of: path).dropLast().map(Self.decoded)
    relativeDirectory = []
  }

  /// Handles the `href` of a `base` element.
  mutating func setBase(_ reference: String) {
    switch path(of: reference) {
    case nil: relativeDirectory = nil
    case .absolute(let path):
      let base = Self.segments(of: path).dropLast().map(Self.decoded)
      relativeDirectory = directory.starts(with: base) ? directory[base.count...] : nil
    case .relative(let path): relativeDirectory = path.contains(Self.slash) ? nil : []
    }
  }

  /// The child that `reference` leads to; nil if it leads elsewhere.
  func child(_ reference: String) -> Target? {
    var segments: [ArraySlice<UInt8>]
    let parents: ArraySlice<[UInt8]>
    switch path(of: reference) {
    case nil: return nil
    case .absolute(let path):
      segments = Self.segments(of: path)
      parents = directory[...]
    case .relative(let path):
      guard let relativeDirectory else { return nil }
      segments = path.split(separator: Self.slash, omittingEmptySubsequences: false)
      parents = relativeDirectory
    }
    // A path that ends in a slash has an empty last segment.
    let isDirectory = segments.count > 1 && segments.last?.isEmpty == true
    if isDirectory { segments.removeLast() }
    guard segments.count == parents.count + 1, let last = segments.last, !last.isEmpty,
      zip(segments, parents).allSatisfy({ Self.decoded($0) == $1 })
    else { return nil }
    // The parent, or the directory itself.
    if last.elementsEqual("..".utf8) || last.elementsEqual(".".utf8) { return nil }
    return Target(
      name: String(validating: Self.decoded(last), as: UTF8.self),
      segment: Self.encoded(last), isDirectory: isDirectory)
  }

  // MARK: References

  private static let slash = UInt8(ascii: "/")

  /// The path in a reference.
  private enum Path {
    case absolute(ArraySlice<UInt8>)
    /// Without `./` at its start.
    case relative(ArraySlice<UInt8>)
  }

  /// The path of a reference on the directory's own server; nil if it is invalid, leads to another
  /// server, or has a query or a fragment.
  private func path(of reference: String) -> Path? {
    let text = Self.trimmed(Array(reference.utf8))
    guard !text.isEmpty, !text.contains(UInt8(ascii: "?")), !text.contains(UInt8(ascii: "#")) else {
      return nil
    }
    if text.starts(with: "//".utf8) {
      return absolutePath(of: url.scheme + ":" + String(decoding: text, as: UTF8.self))
    }
    if text.first == Self.slash { return .absolute(text) }
    if Self.hasScheme(text) { return absolutePath(of: String(decoding: text, as: UTF8.self)) }
    var relative = text
    while relative.starts(with: "./".utf8) { relative = relative.dropFirst(2) }
    return .relative(relative)
  }

  private func absolutePath(of text: String) -> Path? {
    guard let target = try? RemoteURL(text), target.userInfo == nil,
      target.normalizedOrigin == url.normalizedOrigin
    else { return nil }
    return .absolute(target.path.isEmpty ? [Self.slash] : Array(target.path.utf8)[...])
  }

  /// Removes surrounding blanks and line breaks, which HTML allows.
  private static func trimmed(_ text: [UInt8]) -> ArraySlice<UInt8> {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }
    guard let first = text.firstIndex(where: { !isBlank($0) }),
      let last = text.lastIndex(where: { !isBlank($0) })
    else { return [] }
    return text[first...last]
  }

  /// Whether a reference begins with a scheme (RFC 3986 §3.1): a colon before any slash.
  private static func hasScheme(_ text: ArraySlice<UInt8>) -> Bool {
    guard let colon = text.firstIndex(of: UInt8(ascii: ":")), let first = text.first,
      (0x61...0x7A).contains(first | 0x20)
    else { return false }
    return text[..<colon].allSatisfy {
      (0x61...0x7A).contains($0 | 0x20) || (0x30...0x39).contains($0)
        || $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
    }
  }

  // MARK: Segments

  /// The segments of an absolute path.
  private static func segments(of path: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
    path.dropFirst().split(separator: slash, omittingEmptySubsequences: false)
  }

  /// Decodes the percent-encodings of a segment; a `%` without two digits stays.
  private static func decoded(_ segment: ArraySlice<UInt8>) -> [UInt8] {
    guard segment.contains(UInt8(ascii: "%")) else { return Array(segment) }
    var bytes: [UInt8] = []
    var rest = segment
    while let byte = rest.first {
      if let value = escape(at: rest) {
        bytes.append(value)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
        rest = rest.dropFirst()
      }
    }
    return bytes
  }

  /// Percent-encodes all bytes of a segment that a URL's path cannot contain.
  private static func encoded(_ segment: ArraySlice<UInt8>) -> String {
    var bytes: [UInt8] = []
    for index in segment.indices {
      let byte = segment[index]
      if isPathByte(byte) || (byte == UInt8(ascii: "%") && escape(at: segment[index...]) != nil) {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static let digits = Array("0123456789ABCDEF".utf8)

  /// `pchar` of RFC 3986 §3.3, except percent-encodings.
  private static func isPathByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: otherPathBytes.contains(byte)
    }
  }

  private static let otherPathBytes = Array("-._~!$&'()*+,;=:@".utf8)

  /// The byte that a percent-encoding at the start of `text` stands for.
  private static func escape(at text: ArraySlice<UInt8>) -> UInt8? {
    let start = text.startIndex
    guard text.count >= 3, text[start] == UInt8(ascii: "%"),
      let high = hexadecimalValue(text[start + 1]), let low = hexadecimalValue(text[start + 2])
    else { return nil }
    return high << 4 | low
  }
}
