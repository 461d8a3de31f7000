internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes

/// Lets scouts through, and tells what they find.
private struct ScoutGate: HopGate {
  let outages: HostOutages

  func permit(to url: RemoteURL, isRedirected: Bool) -> HopPermit { .granted }

  func refusal(of url: RemoteURL) -> ExchangeError? { nil }

  func accepted(_ url: RemoteURL) { outages.accepted(url) }

  func answered(_ url: RemoteURL) { outages.answered(url) }
}

/// Looks for the return of a server that takes longer to connect than a read may wait.
///
/// The connection matters, not the answer.
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
    request.gate = ScoutGate(outages: context.outages)
    request.headTimeout = context.settings.responseTimeout
    _ = context.client.start(
      request, receiver: OutageScout(outages: context.outages, origin: error.url.origin))
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition { .stop }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition { .stop }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    outages.endScout(of: origin)
  }
}
