public import HTTPTransferCore
public import HTTPTypes

/// What to transfer, as a value: from where, how, and to which destination.
///
/// A request is copied when a ``Transfer`` is made of it; changes after that have no effect.
///
/// ```swift
/// var request = Request(url: try RemoteURL("https://example.org/big.iso"))
/// request.destination = .file("big.iso")
/// let result = try await client.transfer(request).result()
/// ```
public struct Request: Sendable {
  /// `GET` (which alone is accelerated and resumed), `HEAD`, `PUT`, `POST` or another method.
  public var method: HTTPRequest.Method

  /// Where to; userinfo in it is sent as basic authentication, never in the request line.
  public var url: RemoteURL

  /// Further URLs of the same bytes (`GET` only), the preferred ones first.
  ///
  /// They are asked where ``url`` fails and, where each proves that it has the same bytes, beside it:
  /// by its length and an equal strong validator, or with a ``checksum`` or ``pieces`` by its length
  /// alone. What differs is not asked again; ``TransferEvent/Kind/mirrorExcluded(_:reason:)`` names it.
  public var mirrors: [RemoteURL] = []

  /// Header fields that any server on the way may see (`Accept`, conditions).
  public var fields = HTTPFields()

  /// Header fields for the hosts of ``url`` and ``mirrors`` alone (`Authorization`, `Cookie`, keys): they
  /// are dropped when a redirect leads from one of these to another host, scheme or port.
  public var confidentialFields = HTTPFields()

  /// The bytes of the representation to fetch, half open; nil for all of it.
  ///
  /// `GET` only; of an empty one, or one that begins before 0, the transfer fails.
  public var range: ByteRange?

  /// What is sent after the head.
  public var body: RequestBody?

  /// Where the response's body goes.
  public var destination: Destination

  /// Whether a download to a file goes on where an earlier one has ended.
  ///
  /// It does if the record beside the partial file is of the same URL, and the server still has the
  /// same version. Without, it begins anew.
  public var resumes = true

  /// How many connections a `GET` may use; to a stream, or to nowhere with a ``checksum``, it uses one.
  public var connections = Connections.adaptive(upTo: 6)

  /// How often in a row each segment may fail in a way that may pass, before the transfer fails;
  /// nil for half of ``Connections/maximum``.
  ///
  /// A `POST` is sent again only where it certainly has not reached the server.
  public var retries: Int?

  /// The delays between retries.
  public var retryPolicy = RetryPolicy()

  /// Whether redirects are followed, and how.
  public var redirects = RedirectPolicy()

  /// What the bytes wanted must hash to, wherever they go; a file that does not never gets its name.
  public var checksum: Checksum?

  /// What each piece of the whole file must hash to; compared before the destination is complete, as far as
  /// that is a file or memory.
  ///
  /// A piece that does not is fetched again, from another mirror where there is one.
  public var pieces: PieceHashes?

  /// The complete length in bytes that every server must agree to; nil for any.
  public var completeLength: Int64?

  /// Whether gzip, deflate, br and zstd are asked for and undone, up to two for one body.
  ///
  /// The body then arrives over one connection, from the start, with an unknown total.
  public var decodesContent = false

  /// Whether credentials are sent only when the server has asked for them.
  public var authenticatesOnChallenge = false

  /// What makes the URL that is asked instead of ``url``; for `GET`.
  public var signer: (any URLSigner)?

  /// What ``signer`` is told that the file is called.
  public var name = ""

  /// How long a connection may take to come up, TLS included.
  public var connectTimeout = Duration.seconds(10)

  /// How long no byte may move before an exchange counts as failed; whole seconds.
  public var stallTimeout = Duration.seconds(30)

  /// Whether what a request does not bring for a while is asked for a second time, over another
  /// connection; for tests that hold a response back.
  package var isHedged = true

  /// What bounds the body's bytes per second, over all its connections; nil for nothing but the
  /// client's own limit.
  ///
  /// Several requests may share one; ``HTTPClient/setRateLimit(_:of:)`` changes it.
  public var rateLimit: RateLimit?

  /// A number of the caller's own.
  public var tag = 0

  /// Of two queued requests the one with the higher priority starts first.
  public var priority = 0

  /// A request for `url`.
  ///
  /// - Parameters:
  ///   - url: where to.
  ///   - method: `GET` unless said otherwise.
  ///   - destination: where the response's body goes.
  public init(
    url: RemoteURL, method: HTTPRequest.Method = .get, destination: Destination = .memory()
  ) {
    self.url = url
    self.method = method
    self.destination = destination
  }

  /// A request with the method, URL and fields of a swift-http-types request.
  ///
  /// The fields become ``confidentialFields``: they stay with the request's own host.
  ///
  /// - Parameters:
  ///   - head: the request; without a scheme it means https.
  ///   - destination: where the response's body goes.
  /// - Throws: where scheme, authority and path make no URL.
  public init(
    _ head: HTTPRequest, destination: Destination = .memory()
  ) throws(RemoteURL.ParseError) {
    let text = "\(head.scheme ?? "https")://\(head.authority ?? "")\(head.path ?? "/")"
    self.init(url: try RemoteURL(text), method: head.method, destination: destination)
    confidentialFields = head.headerFields
  }

  /// Why it cannot be sent; nil where it can.
  var flaw: String? {
    guard let range, range.isEmpty || range.lowerBound < 0 else { return nil }
    return "the range \(range) is none of a file: it must begin at 0 or later, and not be empty"
  }

  /// How many failures in a row a segment survives.
  var retryCount: Int { max(0, retries ?? connections.maximum / 2) }
}

/// How many connections one transfer may use.
public enum Connections: Sendable, Hashable {
  /// Begins with the number that has paid for an earlier download of the client from the same
  /// origin, else with one, and takes more while they bring more, at most this many.
  case adaptive(upTo: Int)
  /// Uses this many from the start, as far as the file can be split.
  case exactly(Int)

  /// The most that may be open at a time, at least 1.
  public var maximum: Int {
    switch self {
    case .adaptive(let count), .exactly(let count): max(1, count)
    }
  }
}

/// What becomes of a response with the status 301, 302, 303, 307 or 308 and a `Location`.
public struct RedirectPolicy: Sendable, Hashable {
  /// How many are followed; with 0 a redirect is the final response.
  public var maximum: Int

  /// Whether 301 and 302 keep method and body (RFC 9110 §15.4), where most clients go on with
  /// `GET`.
  ///
  /// 307 and 308 always keep them, 303 never does.
  public var keepsMethod: Bool

  public init(maximum: Int = 10, keepsMethod: Bool = false) {
    self.maximum = maximum
    self.keepsMethod = keepsMethod
  }

  /// No redirect is followed.
  public static let none = RedirectPolicy(maximum: 0)
}

/// Where a response's body goes.
public enum Destination: Sendable, Hashable {
  /// A file, which appears under this path when it is whole.
  ///
  /// Until then the bytes are in `PATH.httpfs-part`, described by `PATH.httpfs-part.record`.
  /// Directories on the way are created.
  ///
  /// - `inside`: the directory that the path is relative to; below it no symbolic link is followed, and
  ///   `..` is refused. For paths that come from somebody else. Without, the path is the user's own:
  ///   it may be absolute, and what a link leads to is replaced.
  /// - `existing`: what becomes of a file that is there already.
  case file(String, inside: String? = nil, existing: ExistingFile = .replaceResult)
  /// Nowhere: the body is read, compared with ``Request/checksum``, and thrown away.
  case discard
  /// Memory, up to so many bytes: ``TransferResult/body``.
  case memory(limit: Int = 256 << 20)
  /// An asynchronous sequence of chunks, in order: ``Transfer/body``.
  ///
  /// Nothing more is read from the network while `bufferByteCount` bytes wait to be taken.
  case stream(bufferByteCount: Int = 1 << 20)
}
