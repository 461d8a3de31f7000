import HTTPTransfer
import HTTPTransferCore
import HTTPTypes

/// Creates identifiers of transfers, which only a client can provide.
func transferIDs(_ count: Int) throws -> [ExchangeID] {
  final class Deaf: ExchangeReceiver {
    func receive(head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID)
      -> ExchangeDisposition
    { .stop }
    func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition { .stop }
    func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {}
  }
  let client = ExchangeClient()
  let request = ExchangeRequest(url: try RemoteURL("http://127.0.0.1:1/"))
  return (0..<count).map { _ in client.start(request, receiver: Deaf()) }
}
