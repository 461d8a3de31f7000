public import HTTPTransferCore
internal import SourceList

/// The names of a remote directory, as its server lists them in HTML.
///
/// Servers write listings in many ways (nginx, Apache, lighttpd, Caddy and Python's are known), and all
/// of them link what they list. So a name is what a link leads to, if that is one segment below the
/// directory: on the same server, without a query (those sort the table), and fit to be a name in the
/// mount. All other links are passed over.
public struct DirectoryListing: Sendable, Equatable {
  /// The files and directories, in the order of the listing; no two of one name.
  public let entries: [ListingEntry]

  /// How many links lead to names that no file of a mount may have.
  public let unusableCount: Int

  /// How many names are both a file and a directory in the listing: they are shown as files.
  public let clashCount: Int

  private let indices: [PathKey: Int]

  /// The listing of no names.
  public init() {
    entries = []
    unusableCount = 0
    clashCount = 0
    indices = [:]
  }

  /// Reads a listing.
  ///
  /// - Parameters:
  ///   - bytes: the body of the response, whole and without content coding.
  ///   - contentType: its `Content-Type` field; it must be HTML's.
  ///   - url: where the response came from; its path ends in `/`.
  ///   - isRoot: whether the mount shows the directory at its root, where some names are its own.
  ///   - allowsDirectories: whether directories are shown; else they count as unusable.
  ///   - hidden: names that are not shown, and not counted as unusable.
  /// - Throws: ``ListingError``; a document without links is a listing without names.
  public init(
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

  /// The entry of a name.
  public subscript(name: String) -> ListingEntry? {
    index(of: name).map { entries[$0] }
  }

  /// The place of a name among ``entries``.
  public func index(of name: String) -> Int? { indices[PathKey(name)] }

  /// Whether a media type is that of HTML.
  public static func isHTML(_ contentType: String?) -> Bool {
    guard let type = contentType?.prefix(while: { $0 != ";" }) else { return false }
    let name = type.filter { $0 != " " && $0 != "\t" }.lowercased()
    return name == "text/html" || name == "application/xhtml+xml"
  }

  /// The document as UTF-8: by the charset that the field names, else UTF-8 where it is that.
  private static func utf8(of bytes: [UInt8], contentType: String?) -> [UInt8] {
    let charset = contentType.flatMap(TextDecoding.charsetName)?.lowercased()
    if charset == nil || charset == "utf-8" || charset == "utf8" {
      if String(validating: bytes, as: UTF8.self) != nil { return bytes }
    }
    return TextDecoding.utf8(of: bytes, contentType: contentType)
  }
}

/// Gathers the names that the links of a document lead to.
struct ListingBuilder {
  private let isRoot: Bool
  private let allowsDirectories: Bool
  private let hidden: HiddenNames
  private var resolver: LinkResolver
  private(set) var entries: [ListingEntry] = []
  private(set) var indices: [PathKey: Int] = [:]
  private(set) var unusableCount = 0
  private(set) var clashCount = 0
  /// What there is more of than a directory may have.
  private(set) var excess: ListingError?
  private var linkCount = 0
  private var hasBase = false

  init(url: RemoteURL, isRoot: Bool, allowsDirectories: Bool, hidden: HiddenNames) {
    self.isRoot = isRoot
    self.hidden = hidden
    self.allowsDirectories = allowsDirectories
    resolver = LinkResolver(url: url)
  }

  /// Takes the `href` of a `base` element; the first one counts.
  mutating func setBase(_ reference: String) {
    guard !hasBase else { return }
    hasBase = true
    resolver.setBase(reference)
  }

  /// Takes the `href` of an `a` element.
  ///
  /// - Returns: where among the entries the one is that was added.
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
    // A server that has both serves objects, not files: what can be read is kept.
    clashCount += 1
    guard !entry.isDirectory else { return nil }
    entries[known] = entry
    return known
  }

  /// Takes the text between the link of an entry and the next link.
  mutating func describe(_ index: Int, _ text: [UInt8]) {
    guard !entries[index].isDirectory else { return }
    entries[index].facts = ListedFacts(text)
  }
}
