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

  /// The failure of a request for a directory listing, or for the name of a file.
  init(_ error: TransferError) {
    self.init(error.code, error.reason + FailureRemedy.ending(error.remedy))
    status = error.status
  }

  /// A response that is no directory listing.
  init(_ error: FileError) { self.init(.invalidResponse, error.reason) }

  /// A file of a listing whose path is that of another one.
  static let isDuplicate = JobFailure(
    .destinationExists, "another URL has the same name here: download it on its own, with -o")

  /// A question for a name without an answer in time.
  static let isSilent = JobFailure(.timedOut, "the server did not say the file's name in time")

  /// A question that was not sent because the server had failed another one before.
  static func isNotAsked(after cause: JobFailure) -> JobFailure {
    JobFailure(cause.code, "the server was not asked for the file's name after: \(cause.reason)")
  }

  /// A file that neither its URL nor its server names; `cause` is the failure of the question.
  static func isNameless(after cause: JobFailure?) -> JobFailure {
    let advice = "the URL has no file name; choose one with -o FILE, or with out= in a list"
    guard let cause else { return JobFailure(.invalidRequest, advice) }
    var failure = JobFailure(cause.code, "\(cause.reason); \(advice)")
    failure.status = cause.status
    return failure
  }

  /// A URL that ends in `/` without `--recursive`.
  static let isDirectory = JobFailure(
    .invalidRequest,
    "the URL is that of a directory: download its files with -r, or name a file for its page with"
      + " -o, or out= in a list")
}
