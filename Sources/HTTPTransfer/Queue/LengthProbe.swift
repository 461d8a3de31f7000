internal import HTTPTransferCore
internal import HTTPTypes

/// Asks for the first byte of a file, to learn how long it is.
///
/// A ranged `GET`, because many servers answer `HEAD` with something else than `GET`.
///
/// `@unchecked Sendable`: used on the network thread only.
final class LengthProbe: ExchangeReceiver, @unchecked Sendable {
  private let report: @Sendable (Int64?) -> Void
  private var length: Int64?

  private init(report: @escaping @Sendable (Int64?) -> Void) { self.report = report }

  /// Asks for the length of what `request` would fetch; nil where the server does not tell.
  static func run(
    _ request: Request, client: HTTPClient, report: @escaping @Sendable (Int64?) -> Void
  ) {
    // Another URL is not made for a figure.
    guard request.signer == nil else { return client.perform { report(nil) } }
    var exchange = ExchangeRequest(
      url: request.url, range: 0..<1, fields: request.fields,
      confidentialFields: request.confidentialFields,
      maximumRedirects: request.redirects.maximum, connectTimeout: request.connectTimeout)
    exchange.stallTimeout = request.stallTimeout
    exchange.authenticatesOnChallenge = request.authenticatesOnChallenge
    client.start(exchange, receiver: LengthProbe(report: report))
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, transfer: ExchangeID
  ) -> ExchangeDisposition {
    switch ResponseVerdict(head, asked: 0..<1) {
    case .part(let content, _), .whole(let content): length = content.completeLength
    case .unsatisfiable(let complete): length = complete
    default: break
    }
    return .discard
  }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition { .discard }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) { report(length) }
}
