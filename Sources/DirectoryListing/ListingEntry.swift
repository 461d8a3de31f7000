/// A name in a directory listing.
public struct ListingEntry: Sendable, Hashable {
  /// The name that the mount shows: decoded, and fit to be one (``EntryName`` of the lists).
  public let name: String

  /// The name as it stands in a URL's path, percent-encoded, without a slash; nil where it is `name`.
  ///
  /// Most names need no encoding, and a listing may hold a hundred thousand.
  package let encodedName: String?

  public let isDirectory: Bool

  /// What the listing says of a file; nil where it does not, or not to the byte.
  public internal(set) var facts: ListedFacts?

  init(name: String, segment: String, isDirectory: Bool) {
    self.name = name
    encodedName = segment == name && segment.utf8.elementsEqual(name.utf8) ? nil : segment
    self.isDirectory = isDirectory
  }

  /// What follows the directory's path in the entry's URL.
  public var segment: String { encodedName ?? name }
}
