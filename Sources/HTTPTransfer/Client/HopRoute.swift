internal import CCurl
internal import HTTPTransferCore

/// The route of the current hop of an exchange, and the routes that have failed for its URL.
struct HopRoute {
  private(set) var way = ProxySettings.Choice()
  /// The proxies that could not be reached for the current URL.
  private(set) var failed: Set<ProxyList.Route> = []

  /// A hop takes `way`.
  mutating func begin(_ way: ProxySettings.Choice) { self.way = way }

  /// A hop goes to another URL.
  mutating func forgetFailures() { failed = [] }

  mutating func recordFailure(of route: ProxyList.Route) { failed.insert(route) }

  /// The route of the hop if the failure `code` is its own: the proxy is missing or is not a proxy.
  ///
  /// A response of the proxy, even a refusal, is a response and not a failure of the route.
  func failure(_ code: CURLcode, of easy: EasyHandle) -> ProxyList.Route? {
    let route = way.route
    switch code {
    case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY: return route
    case CURLE_COULDNT_RESOLVE_HOST: return route.isDirect ? route : nil
    case CURLE_PROXY: return isServersFailure(easy) ? nil : route
    case CURLE_OPERATION_TIMEDOUT:
      if easy.offset(of: CURLINFO_CONNECT_TIME_T) == 0 { return route }
      // The proxy accepts connections but does not answer a request for a tunnel.
      let isSilent =
        easy.offset(of: CURLINFO_PRETRANSFER_TIME_T) == 0
        && easy.number(of: CURLINFO_HTTP_CONNECTCODE) == 0
      return !route.isDirect && isSilent ? route : nil
    default: return nil
    }
  }

  /// Whether a SOCKS proxy reports that the server cannot be reached.
  private func isServersFailure(_ easy: EasyHandle) -> Bool {
    let number = easy.number(of: CURLINFO_PROXY_ERROR)
    let ofServers = [
      CURLPX_REPLY_CONNECTION_REFUSED, CURLPX_REPLY_HOST_UNREACHABLE,
      CURLPX_REPLY_NETWORK_UNREACHABLE, CURLPX_REPLY_TTL_EXPIRED, CURLPX_RESOLVE_HOST,
    ]
    return ofServers.contains { Int($0.rawValue) == number }
  }

  /// How long a proxy may stay silent before we suspect that it hangs; some servers are slow.
  private static let proxyTimeout = Duration.seconds(1)

  /// The http proxy that has not answered the request for `url` within `time`.
  ///
  /// Nil for a tunnel, because the server behind it may be the silent one.
  func silentProxy(for url: RemoteURL, after time: Duration) -> ProxyList.Route? {
    guard time >= Self.proxyTimeout, url.scheme == "http", case .proxy(let proxy) = way.route,
      proxy.hasPrefix("http")
    else { return nil }
    return way.route
  }
}
