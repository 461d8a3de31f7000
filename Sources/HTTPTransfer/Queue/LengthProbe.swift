internal import HTTPTransferCore
internal import HTTPTypes

/// Requests the first byte of a file to learn the file's length.
///
/// It uses a ranged `GET`, because many servers answer `HEAD` differently from `GET`.
///
/// `@unchecked Sendable`: used on the network thread only.
final class LengthProbe: ExchangeReceiver, @unchecked Sendable {
  private let report: @Sendable (Int64?) -> Void
  private var length: Int64?

  private init(report: @escaping @Sendable (Int64?) -> Void) { self.report = report }

  /// Learns the length of the file that `request` would fetch; nil if the server does not report
  /// it.
  static func run(
    _ request: Request, client: ExchangeClient, report: @escaping @Sendable (Int64?) -> Void
  ) {
    // A length is not worth another signed URL.
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
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
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
