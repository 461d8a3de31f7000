package import DirectoryListing
package import HTTPTransferCore

/// The names of a directory at one moment, and their URLs.
package struct ListedNames: Sendable {
  let listing: DirectoryListing
  /// The directory's URL, with the credentials of its source; after a redirect, the target of it.
  package let url: RemoteURL
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

  /// How many names of the listing are left out, because they cannot be names of files here.
  package var skippedCount: Int { listing.unusableCount + listing.clashCount }

  /// The URL of an entry; that of a directory ends in `/`.
  package func url(of entry: ListingEntry) -> RemoteURL? {
    url.replacingPath(url.path + entry.segment + (entry.isDirectory ? "/" : ""))
  }
}
