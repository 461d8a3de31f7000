import HTTPTransfer

/// Where the name of a file comes from.
enum NameSource: Sendable {
  /// The user, or a URL that the user gave.
  case user
  /// A directory listing.
  case listing
  /// The URL, though its server has answered the question for the name.
  case urlAfterAnswer
  /// The server of the file, in `Content-Disposition`.
  case response
  /// The same in an earlier run, as a session says.
  case earlierResponse

  /// Whether the server of the file has chosen it.
  var isOfResponse: Bool { self == .response || self == .earlierResponse }

  /// Whether a server has chosen it.
  var isOfServer: Bool { self == .listing || isOfResponse }

  /// The statuses of a URL that is no longer valid.
  private static let refusals = [401, 403, 404, 410]

  /// What helps after the failure of a download, where the name makes a difference; nil elsewhere.
  func remedy(after error: TransferError) -> String? {
    if isOfResponse, error.code == .destinationExists {
      return ": its server chose the name, so --overwrite does not apply: move away what is there;"
        + " -o, out= or --no-content-disposition give another name, but not in the same session"
    }
    guard self == .response || self == .urlAfterAnswer, error.code == .status,
      let status = error.status, Self.refusals.contains(status)
    else { return nil }
    return "; if the URL is valid only once, the question for the file's name has used it: get a"
      + " new URL, and use -o FILE or --no-content-disposition"
  }
}
