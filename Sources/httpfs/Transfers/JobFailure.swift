import HTTPTransfer
import HTTPTransferCore
import RemoteFiles

/// Why a file of a run fails without a transfer.
struct JobFailure: Error, Sendable {
  /// One line without credentials.
  let reason: String
  let code: TransferError.Code
  /// The status of HTTP; nil if no response is the cause.
  private(set) var status: Int?

  init(_ code: TransferError.Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// The failure of a request for a directory listing.
  init(_ error: TransferError) {
    self.init(error.code, error.reason + FailureRemedy.ending(error.remedy))
    status = error.status
  }

  /// A response that is no directory listing.
  init(_ error: FileError) { self.init(.invalidResponse, error.reason) }

  /// A file of a listing whose path is that of another one.
  static let isDuplicate = JobFailure(
    .destinationExists, "another URL has the same name here: download it on its own, with -o")

  /// A URL that ends in `/` without `--recursive`.
  static let isDirectory = JobFailure(
    .invalidRequest,
    "the URL is that of a directory: download its files with -r, or name a file for its page with"
      + " -o, or out= in a list")
}
