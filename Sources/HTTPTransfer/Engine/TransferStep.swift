internal import HTTPTransferCore
internal import HTTPTypes

/// What a transfer does next; its driver carries it out.
enum TransferStep {
  /// Nothing: what is under way decides.
  case wait
  /// Sends requests for what nothing under way will bring.
  case plan
  /// Sends the first requests again, unless it pauses.
  case launch
  /// Tries a failed segment again after a delay; nil for at once, because the server is not to blame.
  case tryAgain(Int, after: Duration?)
  /// Asks the signer again after a delay.
  case signAgain(after: Duration)
  /// Everything wanted is there.
  case finish
  /// Forgets everything that was fetched, for this reason, and starts at the first byte.
  case startOver(String)
  /// Leaves the file of an earlier run as it is: the response says that it is the current one.
  case leaveEarlier(HTTPResponse, from: RemoteURL)
  /// Ends without success; `removes` what was stored, too.
  case fail(TransferError, removes: Bool = false)
}
