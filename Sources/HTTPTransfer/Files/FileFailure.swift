internal import HTTPTransferCore

/// A failure of a local file, before it is assigned to a transfer.
struct FileFailure: Error {
  let code: TransferError.Code
  let reason: String
  let errno: CInt

  /// The failure of a transfer from `url`.
  func error(at url: RemoteURL) -> TransferError {
    TransferError(code, url, reason, errno: errno)
  }
}
