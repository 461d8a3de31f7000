import HTTPTransferCore

/// A list of URLs, parsed and checked: the content of a mount.
///
/// The format is a superset of aria2's input file: one URL a line, mirrors of one file separated by
/// TAB, `#` comments, and indented `name=value` options below a URL. Or it is a Metalink (version
/// 3, or 4: RFC 5854), recognized by its first character. Paths are unique, and no path is both a
/// file and a directory. Names that differ only in case are different names.
public struct SourceList: Sendable, Equatable {
  /// The files, in the order of the list; at least one.
  public let entries: [SourceEntry]

  /// What was ignored, ascending by line.
  public let warnings: [SourceDiagnostic]

  /// The maximum length of a line.
  ///
  /// A signed URL with all its mirrors is far shorter; a binary file given by mistake is not.
  public static let maximumLineByteCount = 64 * 1024

  /// The maximum size of an inflated list: several million URLs.
  public static let maximumInflatedByteCount = 1 << 30

  /// The maximum number of files in a list.
  ///
  /// Each takes some 250 bytes of memory.
  public static let maximumEntryCount = 5_000_000

  /// The maximum number of URLs of one file, in a list or a Metalink: each choice of a server looks
  /// at all of them.
  public static let maximumURLCount = 1000

  /// The maximum number of `header=` lines below a URL, and of bytes in their names and values.
  ///
  /// They are part of each request, and servers accept less.
  public static let maximumHeaderCount = 100
  public static let maximumHeaderByteCount = 64 << 10

  /// The names at the root that the mount uses itself.
  public static let reservedRootNames: Set<String> = [
    ".status", ".status.json", ".metrics", ".control",
  ]

  /// Parses a list.
  ///
  /// - Parameters:
  ///   - bytes: The content: UTF-8 with or without byte order mark, with lines that end in LF or
  ///     CRLF; or a Metalink; or either compressed by gzip (recognized by its first bytes).
  ///   - sourceName: The name of the list in errors and warnings.
  ///   - tree: Whether names keep host and path as directories (`--tree`). `out=` still gives the
  ///     complete path.
  ///   - rules: The paths that `out=` and `dir=` may have.
  ///   - allowsListings: Whether a URL that ends in `/` is a directory listing. Otherwise it is a
  ///     file, which needs a name.
  /// - Returns: The checked list.
  /// - Throws: ``SourceListError`` with every error found, up to a limit.
  public static func parse(
    _ bytes: [UInt8], sourceName: String, tree: Bool = false, rules: PathRules = .mount,
    allowsListings: Bool = false
  ) throws(SourceListError) -> SourceList {
    var parser = SourceListParser(
      sourceName: sourceName, tree: tree, rules: rules, allowsListings: allowsListings)
    if GzipInflater.isGzip(bytes) {
      // The part of a Metalink read so far; nil for a list, and before the first byte.
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
  /// If listings are allowed, a listing becomes the mount's root, unless `tree` gives it
  /// directories.
  ///
  /// - Throws: ``SourceListError`` if the URL is malformed or gives the file no usable name.
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
