public import HTTPTransferCore
public import HTTPTypes

/// Where a file of the mount comes from.
public struct FileSource: Hashable, Sendable {
  /// The path below the mount point, without a leading slash.
  public let path: String
  /// The URL as listed; may hold credentials.
  public let url: RemoteURL
  /// Fields to send to the URL's own origin, and to no other.
  public let fields: HTTPFields

  public init(path: String, url: RemoteURL, fields: HTTPFields = HTTPFields()) {
    self.path = path
    self.url = url
    self.fields = fields
  }

  /// What names the file's cache entry: the URL without userinfo, and the fields that may select
  /// another representation.
  ///
  /// Credentials are left out: they change without the file changing.
  public var cacheKeyText: String {
    let selecting = fields.filter { !Self.credentialFields.contains($0.name) }
      .map { "\($0.name.canonicalName): \($0.value)" }
    return ([url.withoutUserInfo] + selecting).joined(separator: "\n")
  }

  private static let credentialFields: Set<HTTPField.Name> = [
    .authorization, .cookie, .proxyAuthorization, .userAgent, .referer,
  ]
}
