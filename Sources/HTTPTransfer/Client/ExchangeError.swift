internal import CCurl
package import HTTPTransferCore

/// Why an exchange failed before its response was complete.
///
/// A status such as 404 is not an error of the exchange: the receiver gets it in the head.
package struct ExchangeError: Error, Sendable, CustomStringConvertible {
  package enum Code: String, Sendable {
    /// The host's name has no address.
    case unresolvedHost = "host name does not resolve"
    /// No server listens there.
    case connectionRefused = "connection refused"
    /// No route leads there: a network is down, or the host is not connected.
    case noRoute = "no route to the server"
    case connectionTimedOut = "timed out while connecting"
    /// A ``HopGate`` has refused to connect, because the server could not be reached before.
    case gone = "server gone"
    /// Connected, then interrupted: reset, closed early, or aborted by the network.
    case connectionLost = "connection lost"
    /// The body ended before its declared length.
    case truncated = "response cut short"
    case timedOut = "timed out"
    /// The certificate or the handshake was not acceptable.
    case tls = "TLS failure"
    case tooManyRedirects = "too many redirects"
    /// A redirect from https to http, to another scheme, or from a public address to a private one.
    case forbiddenRedirect = "redirect refused"
    /// Not HTTP, or an inconsistent message.
    case malformedResponse = "malformed response"
    /// More than 256 KiB of header fields, more than 1,000 of them, or more than 2,000 lines.
    case headTooLarge = "header fields over 256 KiB, or too many of them"
    /// The request's body could not be read or not be sent again.
    case unreadableBody = "request body unreadable"
    case outOfResources = "out of memory or descriptors"
    case other = "transfer failed"
  }

  package let code: Code

  /// The URL of the failed request; shown redacted.
  package let url: RemoteURL

  /// libcurl's description, or ours.
  ///
  /// It contains no credentials, because libcurl gets no URL with credentials, except that of a
  /// proxy, which was checked.
  package let detail: String

  /// A failure of the given kind.
  package init(code: Code, url: RemoteURL, detail: String) {
    self.code = code
    self.url = url
    self.detail = detail
  }

  /// Whether the same request may succeed when sent again soon.
  package var isTransient: Bool {
    switch code {
    case .connectionLost, .truncated, .timedOut, .connectionTimedOut, .malformedResponse,
      .outOfResources, .other, .connectionRefused, .noRoute, .unresolvedHost, .gone:
      true
    case .tls, .tooManyRedirects, .forbiddenRedirect, .headTooLarge, .unreadableBody: false
    }
  }

  /// Whether the server could not be reached.
  package var isUnreachable: Bool {
    switch code {
    case .unresolvedHost, .connectionRefused, .noRoute, .connectionTimedOut, .gone: true
    default: false
    }
  }

  /// Whether, if no response has begun, no server answers at ``url``: if redirects have led there,
  /// they may lead elsewhere by now.
  package var mayHaveMoved: Bool {
    isUnreachable || [.timedOut, .connectionLost, .tooManyRedirects].contains(code)
  }

  package var description: String {
    // The detail of `gone` is the description of an earlier error.
    code == .gone ? detail : detail.isEmpty ? code.rawValue : "\(code.rawValue): \(detail)"
  }

  /// Maps the `CURLcode` of an exchange with `url`.
  init(curlCode: CURLcode, url: RemoteURL, detail: String) {
    let code: Code =
      switch curlCode {
      case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: .unresolvedHost
      case CURLE_COULDNT_CONNECT: .connectionRefused
      case CURLE_OPERATION_TIMEDOUT: .timedOut
      case CURLE_PARTIAL_FILE: .truncated
      case CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_GOT_NOTHING: .connectionLost
      case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CACERT_BADFILE,
        CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR:
        .tls
      case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2,
        CURLE_BAD_CONTENT_ENCODING:
        .malformedResponse
      case CURLE_OUT_OF_MEMORY: .outOfResources
      default: .other
      }
    self.init(code: code, url: url, detail: detail)
  }
}
