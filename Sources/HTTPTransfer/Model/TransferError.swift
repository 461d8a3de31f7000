public import HTTPTransferCore
public import HTTPTypes

/// Why a transfer has failed: what went wrong, where, and what the server or the system said.
public struct TransferError: Error, Sendable, CustomStringConvertible {
  /// The kind of a failure, for decisions.
  public enum Code: String, Sendable, CaseIterable {
    /// ``Transfer/cancel()`` was called, or the task that waited was cancelled.
    case cancelled
    /// The host's name has no address.
    case unresolvedHost
    /// Nothing listens there, or no route leads there.
    case connectionRefused
    /// Connected before, then cut; also a body that is shorter than announced.
    case connectionLost
    /// No connection, or no byte, within the time that the request allows.
    case timedOut
    /// The certificate or the handshake was not acceptable.
    case tls
    /// Too many redirects, or one that may not be followed: out of HTTP, from https to http, from a
    /// public address to a private one.
    case redirect
    /// The server answered with a status that is no success: see ``TransferError/status``.
    case status
    /// An answer that contradicts itself or the request.
    case invalidResponse
    /// The remote file keeps changing.
    case changed
    /// The bytes do not hash to what they should.
    case checksumMismatch
    /// The body is longer than the destination takes.
    case tooLarge
    /// The destination cannot be written: see ``TransferError/errno``.
    case destination
    /// A file is there already that this transfer may not replace: see ``ExistingFile``.
    case destinationExists
    /// Another transfer, of this or another process, writes the same file.
    case destinationInUse
    /// The body to be sent cannot be read, or has changed while it was sent.
    case unreadableBody
    /// What was asked for cannot be: an empty range, or one that begins before the first byte.
    case invalidRequest
    /// The process is out of memory or descriptors.
    case outOfResources
    /// Anything else that libcurl reports.
    case other
  }

  public let code: Code

  /// Where the failing request went; its description holds no credentials.
  public let url: RemoteURL

  /// What went wrong and what to do, in one line without credentials.
  public let reason: String

  /// The head of the response that is the reason, where one is.
  public let response: HTTPResponse?

  /// The `errno` of the failed system call; 0 where none failed.
  public let errno: CInt

  /// Whether the same request may succeed when sent again soon.
  public let isTransient: Bool

  /// Whether no route leads to the server, as while a network is down.
  let hasNoRoute: Bool

  /// The status of ``response``.
  public var status: Int? { response?.status.code }

  /// A failure with its reason.
  init(
    _ code: Code, _ url: RemoteURL, _ reason: String, response: HTTPResponse? = nil,
    errno: CInt = 0, isTransient: Bool = false, hasNoRoute: Bool = false
  ) {
    self.code = code
    self.url = url
    self.reason = reason
    self.response = response
    self.errno = errno
    self.isTransient = isTransient
    self.hasNoRoute = hasNoRoute
  }

  /// A failed exchange.
  init(_ error: ExchangeError) {
    let code: Code =
      switch error.code {
      case .unresolvedHost: .unresolvedHost
      case .connectionRefused, .noRoute: .connectionRefused
      case .connectionTimedOut, .timedOut: .timedOut
      case .connectionLost, .truncated: .connectionLost
      case .tls: .tls
      case .tooManyRedirects, .forbiddenRedirect: .redirect
      case .malformedResponse, .headTooLarge: .invalidResponse
      case .unreadableBody: .unreadableBody
      case .outOfResources: .outOfResources
      case .other: .other
      }
    self.init(
      code, error.url, error.description, isTransient: error.isTransient,
      hasNoRoute: error.code == .noRoute)
  }

  /// The reason, in one line.
  public var description: String { reason }
}
