internal import HTTPTransferCore
internal import HTTPTypes

/// What is to be done when the exchange has ended, where that is not what its body says.
enum SegmentVerdict {
  /// The body decides.
  case none
  case fail(TransferError)
  case retry(TransferError, after: Duration?)
  /// The URL that was asked refuses, and another one is to be asked.
  case expired(TransferError)
  /// The server still has the version of the file that is there.
  case unchanged(HTTPResponse, from: RemoteURL)
  /// The exchange was ended because everything begins anew.
  case superseded

  var isFailure: Bool {
    switch self {
    case .fail, .retry, .expired: true
    case .none, .unchanged, .superseded: false
    }
  }
}
