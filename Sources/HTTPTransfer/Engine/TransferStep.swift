internal import HTTPTransferCore
internal import HTTPTypes

/// The next step of a transfer; its driver carries it out.
enum TransferStep {
  /// Waits: the requests in flight decide.
  case wait
  /// Sends requests for bytes that no request in flight will bring.
  case plan
  /// Sends the first requests again, unless it pauses.
  case launch
  /// Retries a failed segment after a delay; nil for at once, because the server is not to blame.
  case tryAgain(Int, after: Duration?)
  /// Asks the signer again after a delay.
  case signAgain(after: Duration)
  /// Finishes: every wanted byte is present.
  case finish
  /// Forgets all fetched bytes, for this reason, and starts at the first byte.
  case startOver(String)
  /// Leaves the file of an earlier run as it is, because the response confirms its version.
  case leaveEarlier(HTTPResponse, from: RemoteURL)
  /// Ends without success; also removes the stored bytes if `removes` is set.
  case fail(TransferError, removes: Bool = false)
}
