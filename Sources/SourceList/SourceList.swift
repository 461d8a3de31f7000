import HTTPTransferCore

/// A list of URLs, parsed and checked: what a mount shows.
///
/// The format is a superset of aria2's input file: one URL a line, mirrors of one file separated
/// by TAB, `#` comments, and indented `name=value` options below a URL; or a Metalink (version 3, or 4:
/// RFC 5854), which is told from a list by its first character. Paths are unique, and no path is both a
/// file and a directory. Names that differ only in case are different names.
public struct SourceList: Sendable, Equatable {
  /// The files, in the order of the list; at least one.
  public let entries: [SourceEntry]

  /// What was ignored, ascending by line.
  public let warnings: [SourceDiagnostic]

  /// The longest line in bytes.
  ///
  /// A signed URL with all its mirrors stays far below; a binary file
  /// given by mistake does not.
  public static let maximumLineByteCount = 64 * 1024

  /// How many bytes a compressed list may inflate to: several million URLs.
  public static let maximumInflatedByteCount = 1 << 30

  /// The most files of a list.
  ///
  /// Each takes some 250 bytes of memory.
  public static let maximumEntryCount = 5_000_000

  /// The most URLs of one file, in a list or a Metalink: whoever asks a server looks at all of them.
  public static let maximumURLCount = 1000

  /// The most `header=` lines below a URL, and the most bytes of their names and values: they go with each
  /// request, and servers take less.
  public static let maximumHeaderCount = 100
  public static let maximumHeaderByteCount = 64 << 10

  /// The names at the root that the mount itself answers for.
  public static let reservedRootNames: Set<String> = [
    ".status", ".status.json", ".metrics", ".control",
  ]

  /// Parses a list.
  ///
  /// - Parameters:
  ///   - bytes: The content: UTF-8 with or without byte order mark, lines that end in LF or
  ///     CRLF; or a Metalink; or either compressed by gzip (told by its first bytes).
  ///   - sourceName: What to call the list in errors and warnings.
  ///   - tree: Whether names keep host and path as directories (`--tree`). `out=` still names the
  ///     whole path.
  ///   - rules: Which paths `out=` and `dir=` may give.
  ///   - allowsListings: Whether a URL that ends in `/` is a directory listing; else it is a file,
  ///     which needs a name.
  /// - Returns: The checked list.
  /// - Throws: ``SourceListError`` with every error found, up to a limit.
  public static func parse(
    _ bytes: [UInt8], sourceName: String, tree: Bool = false, rules: PathRules = .mount,
    allowsListings: Bool = false
  ) throws(SourceListError) -> SourceList {
    var parser = SourceListParser(
      sourceName: sourceName, tree: tree, rules: rules, allowsListings: allowsListings)
    if GzipInflater.isGzip(bytes) {
      // A Metalink as far as it has come; nil for a list, or while nothing has come.
      var metalink: [UInt8]?
      var isFirst = true
      do {
        try GzipInflater.inflate(bytes, maximumByteCount: maximumInflatedByteCount) { chunk in
          if isFirst, Metalink.isDocument(startingWith: chunk) { metalink = [] }
          isFirst = false
          guard metalink == nil else {
            metalink? += chunk
            return (metalink?.count ?? 0) <= Metalink.maximumByteCount
          }
          parser.consume(chunk)
          return !parser.isStopped
        }
        if let metalink {
          return try Metalink.parse(metalink, sourceName: sourceName, rules: rules)
        }
      } catch let error as SourceListError {
        throw error
      } catch {
        parser.fail(line: nil, "\(error)")
      }
    } else if Metalink.isDocument(startingWith: bytes) {
      return try Metalink.parse(bytes, sourceName: sourceName, rules: rules)
    } else {
      parser.consume(bytes[...])
    }
    return try parser.finish()
  }

  /// The list of one URL, as in `httpfs mount URL MOUNTPOINT`.
  ///
  /// A listing, where those are allowed, is the mount's root, unless `tree` gives it directories.
  ///
  /// - Throws: ``SourceListError`` where the URL is malformed or gives the file no usable name.
  public static func single(
    url: String, tree: Bool = false, allowsListings: Bool = false
  ) throws(SourceListError) -> SourceList {
    do {
      let remote = try RemoteURL(url)
      if allowsListings, let listing = remote.listing {
        let path =
          tree ? try EntryPath.listing(of: listing, out: nil, directory: nil, tree: true) : ""
        let entry = SourceEntry(path: path, url: listing, isListing: true)
        return SourceList(entries: [entry], warnings: [])
      }
      let path = try EntryPath.derived(from: remote, directory: nil, tree: tree)
      return SourceList(entries: [SourceEntry(path: path, url: remote)], warnings: [])
    } catch {
      let message =
        switch error {
        case let error as RemoteURL.ParseError: "malformed URL: \(error)"
        case let error as EntryPath.Problem:
          "\(error.message(suggestsTree: false)) (out= goes below the URL in a list file)"
        default: "malformed URL"
        }
      throw SourceListError(diagnostics: [
        SourceDiagnostic(sourceName: "URL", line: nil, message: message)
      ])
    }
  }
}
