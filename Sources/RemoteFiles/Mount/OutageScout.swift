internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes

/// Looks for the return of a server that takes longer to connect than a read may wait.
///
/// A connection ends the outage; the answer does not matter.
final class OutageScout: ExchangeReceiver {
  private let outages: HostOutages
  private let origin: String

  private init(outages: HostOutages, origin: String) {
    self.outages = outages
    self.origin = origin
  }

  /// Sends a scout if the server of a failed request is gone and did not accept its connection in
  /// time.
  ///
  /// - Parameters:
  ///   - error: why the request failed.
  ///   - listed: the URL with which the request began; its address decides which others may be
  ///     asked.
  ///   - context: the mount.
  static func send(after error: ExchangeError, from listed: RemoteURL, context: MountContext) {
    guard context.outages.beginScout(after: error) else { return }
    var request = ExchangeRequest(
      url: error.url, range: 0..<1, confidentialOrigin: listed.origin, maximumRedirects: 0,
      connectTimeout: context.settings.connectTimeout)
    request.userInfo = nil
    request.headTimeout = context.settings.responseTimeout
    _ = context.client.start(
      request, receiver: OutageScout(outages: context.outages, origin: error.url.origin))
  }

  func requestSent() { outages.recordContact(with: origin, isListed: false) }

  func receive(
    head: HTTPResponse, from url: RemoteURL, transfer: ExchangeID
  ) -> ExchangeDisposition { .stop }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition { .stop }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    outages.endScout(of: origin)
  }
}
