internal import DirectoryListing
internal import HTTPTransferCore

/// What a mount keeps of listings takes in memory, about, in bytes.
///
/// The one place where that is reckoned. It need not be exact, but must grow with all that a server
/// decides: how many names there are, and how long they and their URLs are.
enum HeldBytes {
  /// A name takes its entry, a place in the table of names, and what arrays and tables keep free.
  private static let ofName = 160

  /// A listing has a table, an array, a URL and a tag, also without names.
  private static let ofListing = 1 << 10

  /// A file that was looked at, with the version of it that its server has described.
  private static let ofFile = 3 << 10

  /// A directory that was looked at, and not what it holds itself.
  private static let ofDirectory = 1 << 10

  /// A text that does not fit into a string's 16 bytes has a header and what the allocator adds.
  static func of(_ text: String) -> Int {
    let byteCount = text.utf8.count
    return byteCount <= 15 ? 0 : byteCount + 48
  }

  /// An entry of a listing: a URL of its own is made when it is looked at.
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
