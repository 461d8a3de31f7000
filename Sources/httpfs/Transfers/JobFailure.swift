import HTTPTransfer
import HTTPTransferCore
import RemoteFiles

/// Why a file of a run fails without a transfer.
struct JobFailure: Error, Sendable {
  /// One line without credentials.
  private(set) var reason: String
  let code: TransferError.Code
  /// The status of HTTP; nil if no response is the cause.
  private(set) var status: Int?
  /// Whether a session keeps the file: its next run may succeed, and checks all that this one does.
  private(set) var canResume: Bool

  init(_ code: TransferError.Code, _ reason: String, canResume: Bool) {
    self.code = code
    self.reason = reason
    self.canResume = canResume
  }

  /// The failure of a request for a directory listing, or for the name of a file.
  init(_ error: TransferError) {
    self.init(error.code, error.reason + FailureRemedy.ending(error.remedy), canResume: true)
    status = error.status
  }

  /// A response that is no directory listing.
  init(_ error: FileError) { self.init(.invalidResponse, error.reason, canResume: true) }

  /// A file of a listing whose path is that of another one.
  static let isDuplicate = JobFailure(
    .destinationExists, "another URL has the same name here: download it on its own, with -o",
    canResume: false)

  /// A question for a name without an answer in time.
  static let isSilent = JobFailure(
    .timedOut, "the server did not say the file's name in time", canResume: true)

  /// A question that was not sent because the server had failed another one before.
  static func isNotAsked(after cause: JobFailure) -> JobFailure {
    var failure = JobFailure(
      cause.code, "the server was not asked for the file's name after: \(cause.reason)",
      canResume: true)
    failure.status = cause.status
    return failure
  }

  /// A file that neither its URL nor its server names.
  static let isNameless = JobFailure(
    .invalidRequest, "the URL has no file name; choose one with -o FILE, or with out= in a list",
    canResume: false)

  /// A file whose server names something that is there already and no regular file.
  static let isNoFile = JobFailure(
    .destinationExists,
    "its server has given it the name of something that is no regular file: use -o, out= or"
      + " --no-content-disposition for another name", canResume: false)

  /// The failure as a consequence of `cause`, a question for the file's name: the next run of a
  /// session asks again.
  func after(_ cause: JobFailure) -> JobFailure {
    var failure = JobFailure(cause.code, "\(cause.reason); \(reason)", canResume: true)
    failure.status = cause.status
    return failure
  }

  /// A URL that ends in `/` without `--recursive`.
  static let isDirectory = JobFailure(
    .invalidRequest,
    "the URL is that of a directory: download its files with -r, or name a file for its page with"
      + " -o, or out= in a list", canResume: true)

  /// The failure of a file that is in the session already, which keeps it.
  var keptBySession: JobFailure {
    var failure = self
    failure.canResume = true
    return failure
  }

  /// The failure in a command with a session that does not keep the file.
  var outsideSession: JobFailure {
    var failure = self
    failure.reason += "; the session does not keep it"
    return failure
  }
}
