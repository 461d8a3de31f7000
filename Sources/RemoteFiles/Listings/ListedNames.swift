public import DirectoryListing
internal import HTTPTransferCore

/// The names of a directory at a moment, and where they lead.
public struct ListedNames: Sendable {
  let listing: DirectoryListing
  /// The directory's URL, with the credentials of its source: after a redirect, that which it led to.
  let url: RemoteURL
  /// The strong or weak tag of the answer, for the next question.
  let entityTag: EntityTag?
  /// What the names take in memory, about.
  let byteCount: Int

  init(listing: DirectoryListing, url: RemoteURL, entityTag: EntityTag?) {
    self.listing = listing
    self.url = url
    self.entityTag = entityTag
    byteCount = HeldBytes.of(listing.entries)
  }

  /// The entries in the order of the listing.
  public var entries: [ListingEntry] { listing.entries }

  /// The URL of an entry; that of a directory ends in `/`.
  func url(of entry: ListingEntry) -> RemoteURL? {
    url.replacingPath(url.path + entry.segment + (entry.isDirectory ? "/" : ""))
  }
}
