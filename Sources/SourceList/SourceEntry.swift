public import HTTPTransferCore

/// One file of a list: the name it gets in the mount and where its bytes come from; or a directory
/// that the mount fills from its server's listing.
public struct SourceEntry: Sendable, Equatable {
  /// The path relative to the mount point: `name` or `directory/name`.
  ///
  /// No segment is empty, `.` or `..`, holds a control character or is longer than 255 bytes. Empty
  /// where a listing is the mount's root.
  public var path: String

  /// Where the bytes come from; may carry credentials, so show only ``RemoteURL/redacted``.
  public var url: RemoteURL

  /// Further URLs of the same bytes, in the order of the list, without ``url``.
  public var mirrors: [RemoteURL]

  /// Fields to send with every request for this file, in the order of the list.
  public var headers: [HeaderField]

  /// What the whole file must hash to; nil where the list says nothing.
  public var checksum: Checksum?

  /// What each piece of the file must hash to; nil but for the files of a Metalink that says so.
  public var pieces: PieceHashes?

  /// The complete length in bytes that every server of the file must agree to; nil but for the files of
  /// a Metalink that says so.
  public var length: Int64?

  /// The most bytes per second that may be fetched of it; 0 for no limit, nil where the list says nothing.
  public var rateLimit: Int64?

  /// The line of the list that holds the URL, counted from 1; 0 for a URL from the command line.
  public var line: Int

  /// Whether the URL is that of a directory listing; its path ends in `/` then.
  public var isListing: Bool

  public init(
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
