package import HTTPTransferCore
package import HTTPTypes

/// One HTTP request, as a value; immutable once started.
package struct ExchangeRequest: Sendable {
  /// The method; `GET` by default.
  package var method: HTTPRequest.Method

  /// The URL.
  ///
  /// Userinfo in the URL is sent as basic authentication, never in the request line.
  package var url: RemoteURL

  /// The requested bytes; nil for the whole representation.
  package var range: ByteRange?

  /// Header fields that every server on the way may see (conditions, for example).
  package var fields: HTTPFields

  /// Header fields and credentials that belong to one origin: they are sent only to
  /// ``confidentialOrigin``, and not to other origins after a redirect.
  package var confidentialFields: HTTPFields

  /// `user:password`, percent-encoded, for basic authentication at ``confidentialOrigin``; by
  /// default that of the URL.
  package var userInfo: String?

  /// The origin (scheme, host, port) that may see ``confidentialFields``.
  package var confidentialOrigin: String

  /// The origin that the user, or a command of the user, has named.
  ///
  /// All other origins come from redirects. By default ``confidentialOrigin``.
  package var namedOrigin: String?

  /// The origin whose slots the exchange takes: the one that the user has named.
  package var placeOrigin: String { namedOrigin ?? confidentialOrigin }

  /// The maximum number of redirects; with 0 the receiver gets a redirect as the final response.
  package var maximumRedirects: Int

  /// Whether a 301 or 302 keeps method and body, as RFC 9110 §15.4 says; most clients continue with
  /// `GET`.
  ///
  /// 307 and 308 always keep them, 303 never does.
  package var keepsMethodOnRedirect = false

  /// Whether a redirect to another origin fails the exchange instead of being followed.
  package var staysInOrigin = false

  /// The body to send after the head; nil for none.
  package var body: (any ExchangeBody)?

  /// Whether credentials are sent only after a 401 has requested them.
  package var authenticatesOnChallenge = false

  /// The time limit for establishing a connection, including TLS.
  package var connectTimeout: Duration

  /// Decides for each server whether the exchange may connect to it; nil for no restriction.
  package var gate: (any HopGate)?

  /// How long no byte may move in either direction before the exchange fails, in whole seconds; nil
  /// for no limit.
  package var stallTimeout: Duration?

  /// The time limit for the complete response head after the request was sent, even if bytes keep
  /// arriving; nil for no limit.
  ///
  /// For requests without a body, because the head of an upload's response follows the body.
  package var headTimeout: Duration?

  /// The maximum time for which a `Retry-After` of the response (429, 503) defers requests of all
  /// exchanges to its origin.
  package var retryAfterCeiling = RetryPolicy().retryAfterCeiling

  /// Limits the body's bytes per second, together with all other exchanges that share it; nil if
  /// only the client's own limit applies.
  package var rateLimit: RateLimit?

  /// Determines which exchange comes first if an origin has more exchanges than slots.
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

  /// Uses the credentials in ``url`` if a command of the user made the URL; those of the listed URL
  /// are for its own origin.
  package mutating func useOwnCredentials() {
    guard let own = url.userInfo else { return }
    if url.origin != confidentialOrigin { confidentialFields = HTTPFields() }
    confidentialOrigin = url.origin
    userInfo = own
  }
}

/// How urgent an exchange is; the most urgent first.
package enum ExchangePriority: Sendable, CaseIterable {
  /// A read waits for it.
  case demand
  /// A read will probably need it.
  case readAhead
}

/// Identifies one exchange of one client.
package struct ExchangeID: Hashable, Sendable {
  package let rawValue: UInt64

  package init(rawValue: UInt64) { self.rawValue = rawValue }
}
