package import HTTPTransferCore

/// A URL line with the options read so far.
struct PendingEntry {
  private let url: RemoteURL
  private let mirrors: [RemoteURL]
  let line: Int

  /// The line of its name: the URL's line, or that of the last `out=` or `dir=`.
  var nameLine: Int

  /// The last `out=`, as in aria2.
  var out: String?
  /// The last `dir=`.
  var directory: String?
  /// Every `header=`, in order.
  private(set) var headers: [HeaderField] = []
  private var headerByteCount = 0
  /// The last `user-agent=`.
  var userAgent: HeaderField?
  /// The last `referer=`.
  var referer: HeaderField?
  /// The last `checksum=`.
  var checksum: Checksum?
  /// The last `length=`.
  var length: Int64?
  /// The last `max-download-limit=`; 0 for no limit.
  var rateLimit: Int64?
  /// The last `named-by=`.
  var namer: Substring?
  /// Every `pieces=`, in order.
  var pieces: PieceHashes?

  /// The URL of the directory listing that the entry may be; nil if it is a file.
  private let listing: RemoteURL?
  /// Whether the URL is that of a directory listing, whatever options follow.
  let isListing: Bool

  init(url: RemoteURL, mirrors: [RemoteURL], line: Int, listings: ListingRule) {
    listing = listings == .never ? nil : url.listing
    isListing = listing != nil && listings == .always
    self.url = url
    self.mirrors = mirrors
    self.line = line
    nameLine = line
  }

  /// Adds a `header=`.
  ///
  /// - Returns: whether there is room for it; always unless `isLimited`.
  mutating func add(_ field: HeaderField, isLimited: Bool) -> Bool {
    headerByteCount += field.name.utf8.count + field.value.utf8.count
    guard
      !isLimited
        || headers.count < SourceList.maximumHeaderCount
          && headerByteCount <= SourceList.maximumHeaderByteCount
    else { return false }
    headers.append(field)
    return true
  }

  /// Sets a `referer=`; as in aria2, `*` means the file's own URL, here without credentials.
  mutating func setReferer(_ value: Substring) {
    referer = HeaderField(
      name: "Referer", value: value == "*" ? url.withoutUserInfo : String(value))
  }

  /// Whether the options read so far leave it a directory listing.
  var isDirectory: Bool { isListing || listing != nil && out == nil }

  /// Whether the server is asked for the name.
  func asksForName(_ naming: NamingRule) -> Bool {
    out == nil && !isDirectory && naming.asks(about: url)
  }

  /// Whether the server is asked although `out=` gives a path: an earlier question has failed.
  var awaitsName: Bool { namer == "nobody" }

  /// The path in the mount.
  func path(
    tree: Bool, rules: PathRules, naming: NamingRule
  ) throws(EntryPath.Problem) -> String {
    if asksForName(naming) { return try EntryPath.provisional(from: url, directory: directory) }
    if isDirectory, let listing {
      return try EntryPath.listing(of: listing, out: out, directory: directory, tree: tree)
    }
    if let out { return try EntryPath.explicit(out: out, directory: directory, rules: rules) }
    return try EntryPath.derived(from: url, directory: directory, tree: tree)
  }

  /// The complete entry.
  ///
  /// A `header=` takes precedence over the option for the same field.
  func entry(path: String) -> SourceEntry {
    var fields = headers
    for field in [userAgent, referer] {
      if let field, !headers.contains(where: { $0.isNamed(field.name) }) { fields.append(field) }
    }
    var entry = SourceEntry(
      path: path, url: isDirectory ? listing ?? url : url, mirrors: isDirectory ? [] : mirrors,
      headers: fields, checksum: checksum, line: line, isListing: isDirectory)
    entry.length = length
    entry.pieces = pieces
    entry.rateLimit = rateLimit
    entry.isNamedByServer = namer == "server"
    return entry
  }
}

extension RemoteURL {
  /// The URL as that of a directory, if it ends in `/` or has no path; otherwise nil.
  package var listing: RemoteURL? {
    guard query == nil else { return nil }
    if path.isEmpty { return replacingPath("/") }
    return path.utf8.last == UInt8(ascii: "/") ? self : nil
  }
}
