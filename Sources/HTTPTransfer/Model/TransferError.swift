public import HTTPTransferCore
public import HTTPTypes

/// Why a transfer failed: the kind of failure, its place, and the message of the server or system.
public struct TransferError: Error, Sendable, CustomStringConvertible {
  /// The kind of a failure, for decisions.
  public enum Code: String, Sendable, CaseIterable {
    /// ``Transfer/cancel()`` was called, or the waiting task was cancelled.
    case cancelled
    /// The host's name has no address.
    case unresolvedHost
    /// No program listens on the port, or no route leads to the host.
    case connectionRefused
    /// The connection was lost; also a body that is shorter than announced.
    case connectionLost
    /// No connection, or no byte, within the time limits of the request.
    case timedOut
    /// The certificate or the handshake was not acceptable.
    case tls
    /// Too many redirects, or one that must not be followed: out of HTTP, from https to http, or
    /// from a public address to a private one.
    case redirect
    /// The server answered with a status other than success: see ``TransferError/status``.
    case status
    /// An answer that contradicts itself or the request.
    case invalidResponse
    /// The remote file keeps changing.
    case changed
    /// The hash of the bytes is not the expected one.
    case checksumMismatch
    /// The body is longer than the destination allows.
    case tooLarge
    /// The destination cannot be written: see ``TransferError/errno``.
    case destination
    /// A file exists that this transfer must not replace: see ``ExistingFile``.
    case destinationExists
    /// Another transfer, of this or another process, writes the same file.
    case destinationInUse
    /// The request's body cannot be read, or changed while it was sent.
    case unreadableBody
    /// The request is impossible: an empty range, or one that begins before the first byte.
    case invalidRequest
    /// The process is out of memory or descriptors.
    case outOfResources
    /// Anything else that libcurl reports.
    case other
  }

  public let code: Code

  /// The URL of the failed request; its description contains no credentials.
  public let url: RemoteURL

  /// What went wrong and what to do, in one line without credentials.
  public let reason: String

  /// The head of the response that caused the failure; nil if no response did.
  public let response: HTTPResponse?

  /// The `errno` of the failed system call; 0 if no call failed.
  public let errno: CInt

  /// Whether the same request may soon succeed.
  public let isTransient: Bool

  /// Whether no route leads to the server, as while a network is down.
  let hasNoRoute: Bool

  /// The status of ``response``.
  public var status: Int? { response?.status.code }

  /// Creates an error with its reason.
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

  /// Creates the error of a failed exchange.
  init(_ error: ExchangeError) {
    let code: Code =
      switch error.code {
      case .unresolvedHost: .unresolvedHost
      case .connectionRefused, .noRoute, .gone: .connectionRefused
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
