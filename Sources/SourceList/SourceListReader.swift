import HTTPTransferCore

/// Makes lists from texts and URLs.
package enum SourceListReader {
  /// Parses a list.
  ///
  /// - Parameters:
  ///   - bytes: The content: UTF-8 with or without byte order mark, with lines that end in LF or
  ///     CRLF; or a Metalink; or either compressed by gzip (recognized by its first bytes).
  ///   - sourceName: The name of the list in errors and warnings.
  ///   - tree: Whether names keep host and path as directories (`--tree`). `out=` still gives the
  ///     complete path.
  ///   - rules: The paths that `out=` and `dir=` may have.
  ///   - listings: Which URLs that end in `/` are directory listings. The others are files, which
  ///     need a name.
  ///   - naming: Whether servers are asked for names. The caller asks them, and looks for equal
  ///     names then.
  /// - Returns: The checked list.
  /// - Throws: ``SourceListError`` with every error found, up to a limit.
  package static func parse(
    _ bytes: [UInt8], sourceName: String, tree: Bool = false, rules: PathRules = .mount,
    listings: ListingRule = .never, naming: NamingRule = .byURL
  ) throws(SourceListError) -> SourceList {
    var parser = SourceListParser(
      sourceName: sourceName, tree: tree, rules: rules, listings: listings, naming: naming)
    if GzipInflater.isGzip(bytes) {
      // The part of a Metalink read so far; nil for a list, and before the first byte.
      var metalink: [UInt8]?
      var isFirst = true
      do {
        try GzipInflater.inflate(bytes, maximumByteCount: SourceList.maximumInflatedByteCount) {
          chunk in
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
  package static func single(
    url: String, tree: Bool = false, listings: ListingRule = .never, naming: NamingRule = .byURL
  ) throws(SourceListError) -> SourceList {
    do {
      let remote = try RemoteURL(url)
      if listings != .never, let listing = remote.listing {
        let path =
          tree ? try EntryPath.listing(of: listing, out: nil, directory: nil, tree: true) : ""
        let entry = SourceEntry(path: path, url: listing, isListing: true)
        return SourceList(entries: [entry], warnings: [])
      }
      let asks = naming.asks(about: remote)
      let path =
        asks
        ? try EntryPath.provisional(from: remote, directory: nil)
        : try EntryPath.derived(from: remote, directory: nil, tree: tree)
      var entry = SourceEntry(path: path, url: remote)
      entry.asksForName = asks
      return SourceList(entries: [entry], warnings: [])
    } catch {
      let (name, message) =
        switch error {
        case let error as RemoteURL.ParseError: ("malformed URL", "\(error)")
        case let error as EntryPath.Problem:
          ("URL", "\(error.message(suggestsTree: false)) (out= goes below the URL in a list file)")
        default: ("URL", "malformed")
        }
      throw SourceListError(diagnostics: [
        SourceDiagnostic(sourceName: name, line: nil, message: message)
      ])
    }
  }
}
