package import HTTPTransferCore
package import HTTPTypes

/// The source of a directory of the mount whose names are those of its server's listing.
package struct ListingSource: Hashable, Sendable {
  /// The path below the mount point, without slashes at its ends; empty for the mount's root.
  package let path: String
  /// The URL, whose path ends in `/`; may hold credentials.
  package let url: RemoteURL
  /// Fields to send to the URL's own origin, for the listing and everything that it names.
  package let fields: HTTPFields

  package init(path: String, url: RemoteURL, fields: HTTPFields = HTTPFields()) {
    self.path = path
    self.url = url
    self.fields = fields
  }

  func path(of name: String) -> String { path.isEmpty ? name : path + "/" + name }
}

/// The sources that a list gives to a mount.
package struct MountSources: Sendable {
  package var files: [FileSource]
  package var listings: [ListingSource]

  package init(files: [FileSource] = [], listings: [ListingSource] = []) {
    self.files = files
    self.listings = listings
  }
}
