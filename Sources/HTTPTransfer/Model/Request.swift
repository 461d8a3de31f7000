public import HTTPTransferCore
public import HTTPTypes

/// A description of a transfer: its source, its settings and its destination.
///
/// A request is copied when a ``Transfer`` is made of it; later changes have no effect.
///
/// ```swift
/// var request = Request(url: try RemoteURL("https://example.org/big.iso"))
/// request.destination = .file("big.iso")
/// let result = try await client.transfer(request).result()
/// ```
public struct Request: Sendable {
  /// `GET` (the only method that is accelerated and resumed), `HEAD`, `PUT`, `POST` or another one.
  public var method: HTTPRequest.Method

  /// The URL; its userinfo is sent as basic authentication, never in the request line.
  public var url: RemoteURL

  /// Further URLs of the same bytes (`GET` only), the preferred ones first.
  ///
  /// A transfer uses them if ``url`` fails, and also in parallel with it if they prove to have the
  /// same bytes: by the length and an equal strong validator, or, with a ``checksum`` or
  /// ``pieces``, by the length alone. A mirror that differs gets no more requests;
  /// ``TransferEvent/Kind/mirrorExcluded(_:reason:)`` reports it.
  public var mirrors: [RemoteURL] = []

  /// Header fields that any server on the route may see (`Accept`, conditions).
  public var fields = HTTPFields()

  /// Header fields for the hosts of ``url`` and ``mirrors`` alone (`Authorization`, `Cookie`,
  /// keys).
  ///
  /// They are dropped when a redirect leads to another host, scheme or port.
  public var confidentialFields = HTTPFields()

  /// The bytes of the representation to fetch, half open; nil for all of it.
  ///
  /// `GET` only; an empty range, or one that begins before 0, fails the transfer.
  public var range: ByteRange?

  /// The body to send after the head.
  public var body: RequestBody?

  /// The destination of the response's body.
  public var destination: Destination

  /// Whether a download to a file resumes an earlier one.
  ///
  /// It resumes if the record beside the partial file belongs to the same URL, and the server still
  /// has the same version. Otherwise it restarts.
  public var resumes = true

  /// How many connections a `GET` may use; to a stream, or to ``Destination/discard`` with a
  /// ``checksum``, it uses one.
  public var connections = Connections.adaptive(upTo: 6)

  /// How many transient failures in a row each segment may have before the transfer fails; nil for
  /// half of ``Connections/maximum``.
  ///
  /// A failure is the first in a row after 64 KiB of its segment were stored, or 1 % of the
  /// download if that is less.
  ///
  /// A `POST` is sent again only if it certainly has not reached the server.
  public var retries: Int?

  /// The delays between retries.
  public var retryPolicy = RetryPolicy()

  /// Whether redirects are followed, and how.
  public var redirects = RedirectPolicy()

  /// The expected hash of the requested bytes, for any destination; a file with another hash never
  /// gets its final name.
  public var checksum: Checksum?

  /// The expected hashes of the whole file's pieces.
  ///
  /// Pieces are verified before the destination is complete, if it is a file or memory. A wrong
  /// piece is fetched again, from another mirror if there is one.
  public var pieces: PieceHashes?

  /// The complete length in bytes that every server must confirm; nil for any length.
  public var completeLength: Int64?

  /// Whether a finished file gets the time of the response's `Last-Modified`, if there is one.
  public var setsModificationTime = false

  /// Whether to accept gzip, deflate, br and zstd, at most two for one body, and to decode them.
  ///
  /// The body then arrives over one connection, from the start, with an unknown total.
  public var decodesContent = false

  /// Whether credentials are sent only after the server has asked for them.
  public var authenticatesOnChallenge = false

  /// Makes the URL to request instead of ``url``; for `GET`.
  public var signer: (any URLSigner)?

  /// The file name to pass to ``signer``.
  public var name = ""

  /// The time limit for setting up a connection, including TLS.
  public var connectTimeout = Duration.seconds(10)

  /// How long an exchange may stall (move no byte) before it fails; whole seconds.
  public var stallTimeout = Duration.seconds(30)

  /// Whether stalled requests are hedged over another connection; tests that delay responses turn
  /// this off.
  package var isHedged = true

  /// Whether a partial file of another request stays and fails the transfer, with
  /// ``TransferError/Code/destinationExists``; for a name that a server has chosen.
  package var keepsOtherDownloads = false

  /// A limit on the body's bytes per second, over all connections; nil for the client's own limit
  /// alone.
  ///
  /// Several requests may share one; ``TransferClient/setRateLimit(_:of:)`` changes it.
  public var rateLimit: RateLimit?

  /// A number for the caller's own use.
  public var tag = 0

  /// The priority in a queue: higher priorities start first.
  public var priority = 0

  /// Creates a request for `url`.
  ///
  /// - Parameters:
  ///   - url: the URL.
  ///   - method: the method, `GET` by default.
  ///   - destination: the destination of the response's body.
  public init(
    url: RemoteURL, method: HTTPRequest.Method = .get, destination: Destination = .memory()
  ) {
    self.url = url
    self.method = method
    self.destination = destination
  }

  /// Creates a request with the method, URL and fields of a swift-http-types request.
  ///
  /// The fields become ``confidentialFields``: they stay with the request's own host.
  ///
  /// - Parameters:
  ///   - head: the request; its scheme defaults to https.
  ///   - destination: the destination of the response's body.
  /// - Throws: if scheme, authority and path form no valid URL.
  public init(
    _ head: HTTPRequest, destination: Destination = .memory()
  ) throws(RemoteURL.ParseError) {
    let text = "\(head.scheme ?? "https")://\(head.authority ?? "")\(head.path ?? "/")"
    self.init(url: try RemoteURL(text), method: head.method, destination: destination)
    confidentialFields = head.headerFields
  }

  /// Why the request cannot be sent; nil if it can.
  var flaw: String? {
    guard let range, range.isEmpty || range.lowerBound < 0 else { return nil }
    return "the range \(range) is none of a file: it must begin at 0 or later, and not be empty"
  }

  /// How many failures in a row a segment survives.
  var retryCount: Int { max(0, retries ?? connections.maximum / 2) }
}

/// How many connections one transfer may use.
public enum Connections: Sendable, Hashable {
  /// Begins with the number that paid for an earlier download of the client from the same origin,
  /// otherwise with one, and adds connections while they increase the speed, up to this many.
  case adaptive(upTo: Int)
  /// Uses this many from the start, as far as the file can be split.
  case exactly(Int)

  /// The maximum number of concurrent connections, at least 1.
  public var maximum: Int {
    switch self {
    case .adaptive(let count), .exactly(let count): max(1, count)
    }
  }
}

/// How to handle a response with the status 301, 302, 303, 307 or 308 and a `Location`.
public struct RedirectPolicy: Sendable, Hashable {
  /// The maximum number of redirects; with 0, a redirect fails the transfer with
  /// ``TransferError/Code/redirect``.
  public var maximum: Int

  /// Whether 301 and 302 keep method and body (RFC 9110 §15.4); most clients continue with `GET`.
  ///
  /// 307 and 308 always keep them, 303 never does.
  public var keepsMethod: Bool

  /// Whether a redirect to another origin fails the transfer, as it does for a directory listing.
  package var staysInOrigin = false

  public init(maximum: Int = 10, keepsMethod: Bool = false) {
    self.maximum = maximum
    self.keepsMethod = keepsMethod
  }

  /// Follows no redirect.
  public static let none = RedirectPolicy(maximum: 0)
}

/// The destination of a response's body.
public enum Destination: Sendable, Hashable {
  /// A file, which appears under this path when it is complete.
  ///
  /// Until then its bytes are in `PATH.httpfs-part`, described by `PATH.httpfs-part.record`.
  /// Missing directories are created.
  ///
  /// - `inside`: the directory that the path is relative to; below it, symbolic links are not
  ///   followed and `..` is refused. Use it for paths from other people. Without it, the path is
  ///   the user's own: it may be absolute, and the target of a link is replaced.
  /// - `existing`: what to do with an existing file.
  case file(String, inside: String? = nil, existing: ExistingFile = .replaceResult)
  /// No destination: the body is read, compared with ``Request/checksum``, and dropped.
  case discard
  /// Memory, up to a limit in bytes: ``TransferResult/body``.
  case memory(limit: Int = 256 << 20)
  /// An asynchronous sequence of chunks, in order: ``Transfer/body``.
  ///
  /// While `bufferByteCount` bytes wait to be consumed, the transfer reads no more from the
  /// network.
  case stream(bufferByteCount: Int = 1 << 20)
}
