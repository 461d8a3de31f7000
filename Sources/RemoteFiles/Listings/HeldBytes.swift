internal import DirectoryListing
internal import HTTPTransferCore

/// Estimates the memory that a mount needs for its listings, in bytes.
///
/// All such estimates are made here. They need not be exact, but must grow with everything that a
/// server controls: the number of names, and the lengths of names and URLs.
enum HeldBytes {
  /// A name needs its entry, a place in the table of names, and the spare capacity of arrays and
  /// tables.
  private static let ofName = 160

  /// A listing has a table, an array, a URL and a tag, even without names.
  private static let ofListing = 1 << 10

  /// A file that has been created, with the version that its server has described.
  private static let ofFile = 3 << 10

  /// A directory that has been created, without its own contents.
  private static let ofDirectory = 1 << 10

  /// A text that does not fit into a string's 16 bytes has a header and the allocator's overhead.
  static func of(_ text: String) -> Int {
    let byteCount = text.utf8.count
    return byteCount <= 15 ? 0 : byteCount + 48
  }

  /// The size of an entry of a listing; its URL is made only when it is needed.
  static func of(_ entry: ListingEntry) -> Int {
    ofName + of(entry.name) + (entry.encodedName.map { of($0) } ?? 0)
  }

  static func of(_ entries: [ListingEntry]) -> Int {
    entries.reduce(ofListing) { $0 + of($1) }
  }

  static func of(_ source: FileSource) -> Int { ofFile + of(source.path) + of(source.url.text) }

  static func of(_ source: ListingSource) -> Int {
    ofDirectory + of(source.path) + of(source.url.text)
  }
}
