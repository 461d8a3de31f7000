public import HTTPTransferCore
public import HTTPTypes

/// Where a file of the mount comes from.
public struct FileSource: Hashable, Sendable {
  /// The path below the mount point, without a leading slash.
  public private(set) var path: String
  /// The URL as listed; may hold credentials.
  public private(set) var url: RemoteURL
  /// Fields to send to the URL's own origin, and to no other.
  public private(set) var fields: HTTPFields
  /// What else the list says of the file; nil where it says nothing.
  public private(set) var details: SourceDetails?

  public init(
    path: String, url: RemoteURL, fields: HTTPFields = HTTPFields(), details: SourceDetails? = nil
  ) {
    self.path = path
    self.url = url
    self.fields = fields
    self.details = details
  }

  /// Whether `other` is the same file, reached with another signature, other credentials or at another
  /// rate.
  public func differsInAccessOnly(from other: FileSource) -> Bool {
    var moved = self
    moved.url = other.url
    moved.fields = other.fields
    if hasSameContentDetails(as: other) { moved.details = other.details }
    return moved == other && cacheKeyText == other.cacheKeyText
  }

  /// Whether `other` is the same file, shown under another name perhaps.
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

  /// What names the file's cache entry: the URL without userinfo and signature, and the fields that may
  /// select another representation; and the piece hashes, because the record of such an entry claims that
  /// its bytes have them.
  ///
  /// Credentials are left out: they change without the file changing.
  public var cacheKeyText: String {
    let selecting = fields.filter { !Self.credentialFields.contains($0.name) }
      .map { "\($0.name.canonicalName): \($0.value)" }
    let pieces = details?.pieces.map { ["pieces: \($0.fingerprint)"] } ?? []
    return ([url.withoutSignature] + selecting + pieces).joined(separator: "\n")
  }

  private static let credentialFields: Set<HTTPField.Name> = [
    .authorization, .cookie, .proxyAuthorization, .userAgent, .referer,
  ]
}
