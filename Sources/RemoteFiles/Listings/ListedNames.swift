package import DirectoryListing
internal import HTTPTransferCore

/// The names of a directory at one moment, and their URLs.
package struct ListedNames: Sendable {
  let listing: DirectoryListing
  /// The directory's URL, with the credentials of its source; after a redirect, the target of it.
  let url: RemoteURL
  /// The strong or weak tag of the answer, for the next request.
  let entityTag: EntityTag?
  /// The memory that the names need, estimated.
  let byteCount: Int

  init(listing: DirectoryListing, url: RemoteURL, entityTag: EntityTag?) {
    self.listing = listing
    self.url = url
    self.entityTag = entityTag
    byteCount = HeldBytes.of(listing.entries)
  }

  /// The entries in the order of the listing.
  package var entries: [ListingEntry] { listing.entries }

  /// The URL of an entry; that of a directory ends in `/`.
  func url(of entry: ListingEntry) -> RemoteURL? {
    url.replacingPath(url.path + entry.segment + (entry.isDirectory ? "/" : ""))
  }
}
