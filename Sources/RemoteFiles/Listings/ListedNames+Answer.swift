internal import DirectoryListing
package import HTTPTransferCore
package import HTTPTypes

extension ListedNames {
  /// Reads the names in a complete answer.
  ///
  /// - Parameters:
  ///   - body: the bytes of the listing.
  ///   - answer: its head.
  ///   - source: the directory.
  ///   - depth: how many directories of the same listing lie above it.
  ///   - hidden: the names to leave out.
  /// - Throws: if the listing cannot be shown.
  init(
    _ body: [UInt8], _ answer: ListingAnswer, of source: ListingSource, depth: Int,
    hidden: HiddenNames
  ) throws(ListingError) {
    let listing = try DirectoryListing(
      body, contentType: answer.contentType, from: answer.url, isRoot: source.path.isEmpty,
      allowsDirectories: depth < DirectoryListing.maximumDepth, hidden: hidden)
    self.init(listing: listing, url: answer.url, entityTag: answer.entityTag)
  }

  /// Reads the names in a complete response that another client has received.
  ///
  /// - Parameters:
  ///   - body: the bytes of the listing, undecoded.
  ///   - head: the head of the response.
  ///   - url: its URL, after redirects.
  ///   - source: the directory that was asked for.
  ///   - depth: how many directories of the same listing lie above it.
  /// - Throws: if the response cannot be a listing that may be shown, as in a mount.
  package init(
    _ body: [UInt8], _ head: HTTPResponse, from url: RemoteURL, of source: ListingSource,
    depth: Int
  ) throws(FileError) {
    let content = ContentVersion(head.headerFields, completeLength: nil)
    let answer = try ListingAnswer(head.headerFields, content, from: url, to: source)
    do throws(ListingError) {
      self = try ListedNames(body, answer, of: source, depth: depth, hidden: HiddenNames())
    } catch {
      throw FileError(error)
    }
  }
}
