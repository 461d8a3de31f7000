internal import HTTPTransferCore
internal import HTTPTypes

/// What to do when the exchange has ended, if its body does not decide that.
enum SegmentVerdict {
  /// The body decides.
  case none
  case fail(TransferError)
  case retry(TransferError, after: Duration?)
  /// The URL was refused: request another one.
  case expired(TransferError)
  /// The server still has the version of the file at the destination.
  case unchanged(HTTPResponse, from: RemoteURL)
  /// The exchange was ended because other requests replace it.
  case superseded

  /// Why the answer is of no use for the file, if its server could serve another one.
  var complaint: TransferError? {
    switch self {
    case .fail(let error): error
    // After other failures, the redirects are followed again, too, once the exchange has ended.
    case .retry(let error, _): error.mayHaveMoved ? nil : error
    case .none, .expired, .unchanged, .superseded: nil
    }
  }
}
