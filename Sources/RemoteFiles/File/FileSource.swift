package import HTTPTransferCore
package import HTTPTypes

/// The source of a file of the mount.
package struct FileSource: Hashable, Sendable {
  /// The path below the mount point, without a leading slash.
  package private(set) var path: String
  /// The URL as listed; may hold credentials.
  package private(set) var url: RemoteURL
  /// Fields to send to the URL's own origin, and to no other.
  package private(set) var fields: HTTPFields
  /// What else the list says about the file; nil if it says no more.
  package private(set) var details: SourceDetails?

  package init(
    path: String, url: RemoteURL, fields: HTTPFields = HTTPFields(), details: SourceDetails? = nil
  ) {
    self.path = path
    self.url = url
    self.fields = fields
    self.details = details
  }

  /// Whether `other` is the same file, reached with another signature, other credentials or at
  /// another rate.
  package func differsInAccessOnly(from other: FileSource) -> Bool {
    var moved = self
    moved.url = other.url
    moved.fields = other.fields
    if hasSameContentDetails(as: other) { moved.details = other.details }
    return moved == other && cacheKeyText == other.cacheKeyText
  }

  /// Whether `other` is the same file, perhaps shown under another name.
  func isSameFile(as other: FileSource) -> Bool {
    var renamed = self
    renamed.path = other.path
    return renamed == other || renamed.differsInAccessOnly(from: other)
  }

  private func hasSameContentDetails(as other: FileSource) -> Bool {
    switch (details, other.details) {
    case (nil, nil): true
    case (let own?, let others?): own.describesSameContent(as: others)
    case (let details?, nil), (nil, let details?): !details.describesContent
    }
  }

  /// The text that names the file's cache entry: URL, selecting fields and piece hashes.
  ///
  /// The URL is without userinfo and signature; the fields are those that may select another
  /// representation. The piece hashes are part of it because the record of such an entry claims
  /// that its bytes have them. Credentials are left out: they can change while the file does not.
  package var cacheKeyText: String {
    let selecting = fields.filter { !Self.credentialFields.contains($0.name) }
      .map { "\($0.name.canonicalName): \($0.value)" }
    let pieces = details?.pieces.map { ["pieces: \($0.fingerprint)"] } ?? []
    return ([url.withoutSignature] + selecting + pieces).joined(separator: "\n")
  }

  private static let credentialFields: Set<HTTPField.Name> = [
    .authorization, .cookie, .proxyAuthorization, .userAgent, .referer,
  ]
}
