package import HTTPTransferCore
package import HTTPTypes

/// One HTTP request, as a value; immutable once started.
package struct ExchangeRequest: Sendable {
  /// The method; `GET` unless said otherwise.
  package var method: HTTPRequest.Method

  /// Where to.
  ///
  /// Userinfo in the URL is sent as basic authentication, never in the request line.
  package var url: RemoteURL

  /// The bytes asked for; nil for the whole representation.
  package var range: ByteRange?

  /// Header fields that any server on the way may see (conditions, for example).
  package var fields: HTTPFields

  /// Header fields and credentials that belong to one origin: they are sent to
  /// ``confidentialOrigin`` only and dropped when a redirect leads elsewhere.
  package var confidentialFields: HTTPFields

  /// `user:password`, percent-encoded, for basic authentication at ``confidentialOrigin``; what the
  /// URL holds unless set.
  package var userInfo: String?

  /// The origin (scheme, host, port) that may see ``confidentialFields``.
  package var confidentialOrigin: String

  /// The origin that the user has named, or a command of the user's: what lies elsewhere has been
  /// named by a redirect; ``confidentialOrigin`` unless set.
  package var namedOrigin: String?

  /// Whose places the exchange takes: those of the origin that the user has named.
  package var placeOrigin: String { namedOrigin ?? confidentialOrigin }

  /// How many redirects are followed; 0 hands a redirect to the receiver as the final response.
  package var maximumRedirects: Int

  /// Whether a 301 or 302 keeps method and body, as RFC 9110 §15.4 has it, where most clients go
  /// on with `GET`.
  ///
  /// 307 and 308 always keep them, 303 never does.
  package var keepsMethodOnRedirect = false

  /// Whether a redirect to another origin fails the exchange instead of being followed.
  package var staysInOrigin = false

  /// What is sent after the head; nil for no body.
  package var body: (any ExchangeBody)?

  /// Whether credentials are sent only after a 401 has asked for them.
  package var authenticatesOnChallenge = false

  /// Whether codings that libcurl can undo are asked for and undone: the receiver sees the decoded
  /// body under the coded one's head.
  package var decodesContent = false

  /// How long a connection may take to come up, TLS included.
  package var connectTimeout: Duration

  /// How long no byte may move, in either direction, before the exchange fails; whole seconds,
  /// nil for as long as it takes.
  package var stallTimeout: Duration?

  /// How long the response's head may take from the moment that the request is sent, however slowly
  /// bytes drip in; nil for as long as it takes.
  ///
  /// For requests without a body: an upload's head comes after it.
  package var headTimeout: Duration?

  /// The most that a `Retry-After` of the response (429, 503) closes its origin for every exchange
  /// of the client.
  package var retryAfterCeiling = RetryPolicy().retryAfterCeiling

  /// What bounds its body's bytes per second, and those of all others that share it; nil for nothing
  /// but the client's own limit.
  package var rateLimit: RateLimit?

  /// Who comes first where more is asked of an origin than may be under way at once.
  package var priority = ExchangePriority.demand

  /// A request for `range` of `url`.
  package init(
    method: HTTPRequest.Method = .get, url: RemoteURL, range: ByteRange? = nil,
    fields: HTTPFields = HTTPFields(), confidentialFields: HTTPFields = HTTPFields(),
    confidentialOrigin: String? = nil, maximumRedirects: Int = 10,
    connectTimeout: Duration = .seconds(10)
  ) {
    self.method = method
    self.url = url
    self.range = range
    self.fields = fields
    self.confidentialFields = confidentialFields
    self.userInfo = url.userInfo
    self.confidentialOrigin = confidentialOrigin ?? url.origin
    self.maximumRedirects = maximumRedirects
    self.connectTimeout = connectTimeout
  }

  /// Sends the credentials that ``url`` holds, where it was not listed but made by a command of the
  /// user's; those of the listed one are for its own origin.
  package mutating func useOwnCredentials() {
    guard let own = url.userInfo else { return }
    if url.origin != confidentialOrigin { confidentialFields = HTTPFields() }
    confidentialOrigin = url.origin
    userInfo = own
  }
}

/// How urgent an exchange is; the most urgent first.
package enum ExchangePriority: Sendable, CaseIterable {
  /// Somebody waits for it.
  case demand
  /// Somebody will probably want it.
  case readAhead
}

/// Names one transfer of one client.
package struct ExchangeID: Hashable, Sendable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }
}
