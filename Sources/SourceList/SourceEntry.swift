package import HTTPTransferCore

/// One file of a list: its name in the mount and the source of its bytes.
///
/// Or a directory that the mount fills from its server's listing.
package struct SourceEntry: Sendable, Equatable {
  /// The path relative to the mount point: `name` or `directory/name`.
  ///
  /// No segment is empty, `.` or `..`, has a control character or is longer than 255 bytes. The
  /// path is empty if a listing is the mount's root.
  package var path: String

  /// The source of the bytes; it may contain credentials, so show only ``RemoteURL/redacted``.
  package var url: RemoteURL

  /// Further URLs of the same bytes, in the order of the list, without ``url``.
  package var mirrors: [RemoteURL]

  /// Fields to send with every request for this file, in the order of the list.
  package var headers: [HeaderField]

  /// The checksum of the complete file; nil if the list has none.
  package var checksum: Checksum?

  /// The hash of each piece of the file; nil unless a Metalink gives it.
  package var pieces: PieceHashes?

  /// The complete length in bytes, which every server of the file must confirm; nil unless a
  /// Metalink gives it.
  package var length: Int64?

  /// The maximum number of bytes per second for this file; 0 for no limit, nil if the list has
  /// none.
  package var rateLimit: Int64?

  /// The line of the list that holds the URL, counted from 1; 0 for a URL from the command line.
  package var line: Int

  /// Whether the URL is that of a directory listing; its path ends in `/` then.
  package var isListing: Bool

  /// Whether the server is asked for the last name of the path, which is empty if the URL has none.
  package var asksForName = false

  /// Whether a session says that the server has chosen the name.
  package var isNamedByServer = false

  package init(
    path: String, url: RemoteURL, mirrors: [RemoteURL] = [], headers: [HeaderField] = [],
    checksum: Checksum? = nil, line: Int = 0, isListing: Bool = false
  ) {
    self.path = path
    self.url = url
    self.mirrors = mirrors
    self.headers = headers
    self.checksum = checksum
    self.line = line
    self.isListing = isListing
  }
}
