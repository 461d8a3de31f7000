internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache

/// Why a file or a range cannot be read.
package struct FileError: Error, Sendable, CustomStringConvertible {
  package enum Code: String, Sendable, CaseIterable {
    /// 404 or 410.
    case missing
    /// 401, 403 or 407.
    case denied
    /// The remote file is proven to be another version than the open one.
    case stale
    /// The server cannot be reached.
    case unreachable
    /// No route leads to the server: a network is down, perhaps for a moment.
    case disconnected
    /// No answer, or not enough of it, before the deadline.
    case timedOut
    /// The server keeps sending responses that cannot be correct.
    case invalidResponse
    /// The server does not accept the request: 400, 405 and the like.
    case rejected
    /// The server reports that it cannot serve now (429, 5xx), or the exchange was interrupted.
    case unavailable
    /// The user's command has made no URL to request.
    case unsigned
    /// TLS, redirect and other failures that a retry does not fix.
    case refused
    /// The servers send bytes that do not match the hashes of the list.
    case corrupt
    /// The process or the system has no descriptor left for a file of the cache.
    case tooManyFiles
    /// The process or the system is short of memory, or of descriptors for a connection.
    case exhausted
    /// The cache cannot be read or written.
    case cacheFailed
    /// The mount is being taken down.
    case unmounted
  }

  package let code: Code

  /// One line for `.status` and the log, without credentials.
  package let reason: String

  /// What a failure shows about the server that was asked.
  enum Contact: Sendable {
    /// It could not be reached.
    case unreachable
    /// It accepted a connection, and gave no usable answer.
    case accepted
    /// It answered that it does not serve the request, or not now.
    case refused
  }

  /// The origin of the failed hop; nil if the failure does not concern a connection.
  let origin: String?
  /// What the failure shows about the server; nil if it shows nothing.
  let contact: Contact?
  /// Whether the server refuses a URL whose signature has expired.
  private var isOfExpiredSignature = false

  package init(_ code: Code, _ reason: String) {
    self.init(code, reason, contact: nil)
  }

  init(_ code: Code, _ reason: String, origin: String? = nil, contact: Contact?) {
    self.code = code
    self.reason = reason
    self.origin = origin
    self.contact = contact
  }

  package var description: String { reason }

  /// The reason, and what to do about it.
  package var advisedReason: String { reason + FailureRemedy.ending(remedy) }

  /// What the user can do about it; nil if the reason says it, or only time helps.
  private var remedy: FailureRemedy? {
    if isOfExpiredSignature { return nil }
    return switch code {
    case .missing, .rejected: .url
    case .denied: reason.contains("proxy") ? .proxyCredentials : .credentials
    case .refused: .ofTLS(reason)
    case .unreachable: .network
    default: nil
    }
  }

  /// Whether it may pass without the user doing anything: not if the server's answer is clear.
  package var mayPass: Bool {
    switch code {
    case .missing, .denied, .rejected, .refused, .stale, .corrupt: false
    case .unreachable, .disconnected, .timedOut, .invalidResponse, .unavailable, .unsigned,
      .tooManyFiles, .exhausted, .cacheFailed, .unmounted:
      true
    }
  }

  /// Whether the failure concerns the server that was asked, so that another one may do better.
  var isOfServer: Bool {
    switch code {
    case .unreachable, .disconnected, .timedOut, .invalidResponse, .unavailable, .missing,
      .denied, .rejected, .refused:
      true
    case .stale, .unsigned, .corrupt, .tooManyFiles, .exhausted, .cacheFailed, .unmounted: false
    }
  }

  /// The same failure of a server that is gone: reads get EIO, however its network behaves.
  var ofOutage: FileError {
    FileError(.unreachable, reason, origin: origin, contact: contact)
  }

  /// The same refusal, of a URL whose signature has expired.
  var ofExpiredSignature: FileError {
    var error = FileError(
      code, reason + ": the signature of the listed URL has expired", origin: origin,
      contact: contact)
    error.isOfExpiredSignature = true
    return error
  }

  /// The remote file is another version than the pinned one.
  static let hasChanged = FileError(.stale, ResponseFault.hasChanged)

  /// No server has bytes that match the piece hash of the list.
  static let wrongPiece = FileError(
    .corrupt, "checksum mismatch: what the servers send is not what the list's piece hash says")

  /// No server has a whole file that matches the checksum of the list.
  static let wrongChecksum = FileError(
    .corrupt, "checksum mismatch: the whole is not what the list's checksum says")

  init(_ error: ExchangeError) {
    let code: Code =
      switch error.code {
      case .unresolvedHost, .connectionRefused, .gone: .unreachable
      case .noRoute: .disconnected
      case .connectionTimedOut, .timedOut: .timedOut
      case .connectionLost, .truncated, .other: .unavailable
      case .outOfResources: .exhausted
      case .malformedResponse: .invalidResponse
      case .tls, .tooManyRedirects, .forbiddenRedirect, .headTooLarge, .unreadableBody: .refused
      }
    self.init(code, error.description, origin: error.url.origin, contact: Self.contact(error))
  }

  private static func contact(_ error: ExchangeError) -> Contact? {
    switch error.code {
    case .unresolvedHost, .connectionRefused, .noRoute, .connectionTimedOut, .gone: .unreachable
    case .connectionLost, .truncated, .malformedResponse, .tls, .tooManyRedirects,
      .forbiddenRedirect, .headTooLarge:
      .accepted
    case .timedOut, .unreadableBody, .outOfResources, .other: nil
    }
  }

  /// The error for a response that does not answer the request.
  init(_ verdict: ResponseVerdict) {
    switch verdict {
    case .missing(let status):
      self.init(.missing, StatusPhrase.text(of: status), contact: .refused)
    case .denied(let status):
      self.init(
        .denied, StatusPhrase.text(of: status) + ResponseFault.meaning(ofRefusal: status),
        contact: .refused)
    case .rejected(let status):
      self.init(.rejected, StatusPhrase.text(of: status), contact: .refused)
    case .unavailable(let status, let delay):
      self.init(
        .unavailable,
        StatusPhrase.text(of: status) + (delay.map { ", retry after \($0)" } ?? ""),
        contact: .refused)
    case .invalid(let reason): self.init(.invalidResponse, reason)
    case .unsatisfiable: self.init(.invalidResponse, "HTTP 416 to a range that should exist")
    case .preconditionFailed: self.init(.stale, "HTTP 412")
    case .notModified: self.init(.invalidResponse, "HTTP 304 to a request without a condition")
    case .part, .whole: self.init(.invalidResponse, "an answer to another question")
    }
  }

  init(_ error: CacheError) {
    self.init(
      error.code == .descriptorLimit ? .tooManyFiles : .cacheFailed, "\(error)")
  }

  /// The error number that an application gets when an operation on the name (lookup, open) fails.
  package var openErrno: CInt {
    switch code {
    case .missing: ENOENT
    case .denied: EACCES
    case .stale: ESTALE
    case .timedOut: ETIMEDOUT
    case .tooManyFiles, .exhausted: EMFILE
    case .unreachable, .disconnected, .invalidResponse, .rejected, .unavailable, .unsigned,
      .refused, .corrupt, .cacheFailed, .unmounted:
      EIO
    }
  }

  /// The error number that an application gets when a read of an open file fails: a name that has
  /// vanished is no answer to a read.
  package var readErrno: CInt {
    switch code {
    case .missing, .tooManyFiles, .exhausted: EIO
    default: openErrno
    }
  }
}
