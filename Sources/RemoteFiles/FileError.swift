internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache

/// Why a file, or some bytes of it, cannot be had.
public struct FileError: Error, Sendable, CustomStringConvertible {
  public enum Code: String, Sendable, CaseIterable {
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
    /// The server keeps answering with what no correct answer can be.
    case invalidResponse
    /// The server says that it cannot serve now (429, 5xx).
    case unavailable
    /// The user's command has given no URL to ask.
    case unsigned
    /// TLS, redirect and other failures that trying again does not mend.
    case refused
    /// What the servers send is not what the list says by its hashes.
    case corrupt
    /// The process or the system has no descriptor left.
    case tooManyFiles
    /// The cache cannot be read or written.
    case cacheFailed
    /// The mount is being taken down.
    case unmounted
  }

  public let code: Code

  /// One line for `.status` and the log, without credentials.
  public let reason: String

  public init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  public var description: String { reason }

  /// Whether it says something about the server that was asked, so that another one may do better.
  var isOfServer: Bool {
    switch code {
    case .unreachable, .disconnected, .timedOut, .invalidResponse, .unavailable, .missing,
      .denied, .refused:
      true
    case .stale, .unsigned, .corrupt, .tooManyFiles, .cacheFailed, .unmounted: false
    }
  }

  /// Bytes of which no server has the ones that hash to what the list says.
  static let wrongPiece = FileError(
    .corrupt, "checksum mismatch: what the servers send is not what the list's piece hash says")

  /// A whole of which no server has the one that hashes to what the list says.
  static let wrongWhole = FileError(
    .corrupt, "checksum mismatch: the whole is not what the list's checksum says")

  init(_ error: ExchangeError) {
    let code: Code =
      switch error.code {
      case .unresolvedHost, .connectionRefused: .unreachable
      case .noRoute: .disconnected
      case .connectionTimedOut, .timedOut: .timedOut
      case .connectionLost, .truncated, .outOfResources, .other: .unavailable
      case .malformedResponse: .invalidResponse
      case .tls, .tooManyRedirects, .forbiddenRedirect, .headTooLarge, .unreadableBody: .refused
      }
    self.init(code, error.description)
  }

  /// What a response that is no answer means.
  init(_ verdict: ResponseVerdict) {
    switch verdict {
    case .missing(let status): self.init(.missing, "HTTP \(status)")
    case .denied(let status):
      self.init(.denied, "HTTP \(status)" + ResponseFault.meaning(ofRefusal: status))
    case .unavailable(let status, let delay):
      self.init(.unavailable, "HTTP \(status)" + (delay.map { ", retry after \($0)" } ?? ""))
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

  /// What an application sees when an operation on the name (lookup, open) fails.
  public var openErrno: CInt {
    switch code {
    case .missing: ENOENT
    case .denied: EACCES
    case .stale: ESTALE
    case .timedOut: ETIMEDOUT
    case .tooManyFiles: EMFILE
    case .unreachable, .disconnected, .invalidResponse, .unavailable, .unsigned, .refused, .corrupt,
      .cacheFailed, .unmounted:
      EIO
    }
  }

  /// What an application sees when a read of an open file fails: a name that has vanished is no
  /// answer to a read.
  public var readErrno: CInt {
    switch code {
    case .missing, .tooManyFiles: EIO
    default: openErrno
    }
  }
}
