/// A name in a directory listing.
package struct ListingEntry: Sendable, Hashable {
  /// The name that the mount shows, decoded and valid as a file name (``EntryName`` of the lists).
  package let name: String

  /// The percent-encoded name as in a URL's path, without a slash; nil if it equals `name`.
  ///
  /// Most names need no encoding, and a listing may have a hundred thousand.
  package let encodedName: String?

  package let isDirectory: Bool

  /// The attributes of a file in the listing; nil if it has none, or only rounded ones.
  package internal(set) var facts: ListedFacts?

  init(name: String, segment: String, isDirectory: Bool) {
    self.name = name
    encodedName = segment == name && segment.utf8.elementsEqual(name.utf8) ? nil : segment
    self.isDirectory = isDirectory
  }

  /// The last part of the entry's URL, after the directory's path.
  package var segment: String { encodedName ?? name }
}
