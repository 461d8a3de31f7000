package import HTTPTransferCore
internal import SourceList

/// The names of a remote directory, as its server lists them in HTML.
///
/// Servers format listings differently (nginx, Apache, lighttpd, Caddy and Python are known), but
/// all link to the entries. So a name is the target of a link if the target is one segment below
/// the directory, on the same server, without a query (those sort the table), and valid as a name
/// in the mount. All other links are ignored.
package struct DirectoryListing: Sendable, Equatable {
  /// The files and directories, in the order of the listing, with unique names.
  package let entries: [ListingEntry]

  /// How many links lead to names that a mount cannot use.
  package let unusableCount: Int

  /// How many names the listing has both as a file and as a directory; they are shown as files.
  package let clashCount: Int

  private let indices: [PathKey: Int]

  /// How deep directories may lie below the first one: a server may make each contain itself.
  package static let maximumDepth = 32

  /// An empty listing.
  package init() {
    entries = []
    unusableCount = 0
    clashCount = 0
    indices = [:]
  }

  /// Reads a listing.
  ///
  /// - Parameters:
  ///   - bytes: the complete body of the response, without content coding.
  ///   - contentType: its `Content-Type` field, which must be that of HTML.
  ///   - url: the URL of the response; its path ends in `/`.
  ///   - isRoot: whether the directory is the mount's root, where the mount itself uses some names.
  ///   - allowsDirectories: whether to show directories; otherwise they count as unusable.
  ///   - hidden: names to leave out, without counting them as unusable.
  /// - Throws: ``ListingError``; a document without links is an empty listing.
  package init(
    _ bytes: [UInt8], contentType: String?, from url: RemoteURL, isRoot: Bool,
    allowsDirectories: Bool = true, hidden: HiddenNames = HiddenNames()
  ) throws(ListingError) {
    guard Self.isHTML(contentType) else { throw .notHTML(contentType) }
    guard bytes.count <= ListingError.maximumByteCount else { throw .tooLarge }
    var builder = ListingBuilder(
      url: url, isRoot: isRoot, allowsDirectories: allowsDirectories, hidden: hidden)
    try HTMLLinks.collect(from: Self.utf8(of: bytes, contentType: contentType), into: &builder)
    if let excess = builder.excess { throw excess }
    entries = builder.entries
    unusableCount = builder.unusableCount
    clashCount = builder.clashCount
    indices = builder.indices
  }

  /// The entry with this name.
  package subscript(name: String) -> ListingEntry? {
    index(of: name).map { entries[$0] }
  }

  /// The index of a name in ``entries``.
  package func index(of name: String) -> Int? { indices[PathKey(name)] }

  /// Whether a media type is that of HTML.
  package static func isHTML(_ contentType: String?) -> Bool {
    guard let type = contentType?.prefix(while: { $0 != ";" }) else { return false }
    let name = type.filter { $0 != " " && $0 != "\t" }.lowercased()
    return name == "text/html" || name == "application/xhtml+xml"
  }

  /// The document as UTF-8: converted from the charset of the field; without one, unchanged if it
  /// is valid UTF-8.
  private static func utf8(of bytes: [UInt8], contentType: String?) -> [UInt8] {
    let charset = contentType.flatMap(TextDecoding.charsetName)?.lowercased()
    if charset == nil || charset == "utf-8" || charset == "utf8" {
      if String(validating: bytes, as: UTF8.self) != nil { return bytes }
    }
    return TextDecoding.utf8(of: bytes, contentType: contentType)
  }
}

/// Collects the names of a document's links.
struct ListingBuilder {
  private let isRoot: Bool
  private let allowsDirectories: Bool
  private let hidden: HiddenNames
  private var resolver: LinkResolver
  private(set) var entries: [ListingEntry] = []
  private(set) var indices: [PathKey: Int] = [:]
  private(set) var unusableCount = 0
  private(set) var clashCount = 0
  /// The limit of a directory that was exceeded.
  private(set) var excess: ListingError?
  private var linkCount = 0
  private var hasBase = false

  init(url: RemoteURL, isRoot: Bool, allowsDirectories: Bool, hidden: HiddenNames) {
    self.isRoot = isRoot
    self.hidden = hidden
    self.allowsDirectories = allowsDirectories
    resolver = LinkResolver(url: url)
  }

  /// Handles the `href` of a `base` element; the first one counts.
  mutating func setBase(_ reference: String) {
    guard !hasBase else { return }
    hasBase = true
    resolver.setBase(reference)
  }

  /// Handles the `href` of an `a` element.
  ///
  /// - Returns: the index of the added entry.
  mutating func add(_ reference: String) -> Int? {
    linkCount += 1
    guard linkCount <= ListingError.maximumLinkCount else {
      excess = .tooManyLinks
      return nil
    }
    guard let target = resolver.child(reference),
      target.name.map(hidden.contains) != true
    else { return nil }
    guard let name = target.name, EntryName.isAllowed(name, atRoot: isRoot),
      allowsDirectories || !target.isDirectory
    else {
      unusableCount += 1
      return nil
    }
    let entry = ListingEntry(
      name: name, segment: target.segment, isDirectory: target.isDirectory)
    guard let known = indices[PathKey(name)] else {
      guard entries.count < ListingError.maximumEntryCount else {
        excess = .tooManyEntries
        return nil
      }
      indices[PathKey(name)] = entries.count
      entries.append(entry)
      return entries.count - 1
    }
    guard entries[known].isDirectory != entry.isDirectory else { return nil }
    // A server that has both serves objects, not files. We keep the readable one.
    clashCount += 1
    guard !entry.isDirectory else { return nil }
    entries[known] = entry
    return known
  }

  /// Handles the text between the link of an entry and the next link.
  mutating func describe(_ index: Int, _ text: [UInt8]) {
    guard !entries[index].isDirectory else { return }
    entries[index].facts = ListedFacts(text)
  }
}
