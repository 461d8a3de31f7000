internal import DirectoryListing
internal import HTTPTransferCore
internal import HTTPTypes

/// The head of a listing.
struct ListingAnswer: Sendable {
  let contentType: String?
  /// The directory's URL, with the credentials of its source.
  let url: RemoteURL
  let entityTag: EntityTag?

  /// The most bytes of a directory's URL: a listing may have a hundred thousand names below it.
  static let maximumURLByteCount = 4 << 10

  /// - Throws: if the response cannot be a listing that may be shown.
  init(
    _ fields: HTTPFields, _ content: ContentVersion, from url: RemoteURL, to source: ListingSource
  ) throws(FileError) {
    // The client follows no redirect to another origin; this is the last line of defence.
    guard url.normalizedOrigin == source.url.normalizedOrigin else {
      throw FileError(.refused, "the listing comes from another server, \(url.redacted)")
    }
    guard url.path.utf8.last == UInt8(ascii: "/"), let own = source.url.replacingPath(url.path)
    else {
      throw FileError(.refused, "redirected to something that is not a directory, \(url.redacted)")
    }
    // The URL of each of its names contains it.
    guard own.text.utf8.count <= Self.maximumURLByteCount else {
      throw FileError(
        .refused, "the listing's URL has more than \(Self.maximumURLByteCount >> 10) KiB")
    }
    guard content.contentCoding == nil else {
      throw FileError(.refused, "a listing in a coding that was not asked for")
    }
    contentType = fields.readable(.contentType)
    guard DirectoryListing.isHTML(contentType) else {
      throw FileError(ListingError.notHTML(contentType))
    }
    if let length = content.completeLength, length > ListingError.maximumByteCount {
      throw FileError(ListingError.tooLarge)
    }
    self.url = own
    entityTag = content.entityTag
  }
}

extension FileError {
  /// A failure for good: a retry brings the same listing.
  init(_ error: ListingError) { self.init(.refused, error.description) }
}
