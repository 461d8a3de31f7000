internal import HTTPTransferCore

/// Selects the proxy of each request.
///
/// Only the network thread uses it, but the client keeps it, because it outlives that thread.
struct ProxySettings {
  /// The route of one request.
  struct Choice {
    var route = ProxyList.Route.direct
    /// Why the environment's proxy cannot be used; nil if it can, or if none is used.
    var flaw: String?
    /// Whether the route uses a proxy.
    var isProxied: Bool { !route.isDirect }
  }

  private let environment: ProxyEnvironment
  private let routeCount: Int
  private var rotation: ProxyRotation?
  /// When a head last arrived through each proxy of the list.
  private var answers: [ProxyList.Route: ContinuousClock.Instant] = [:]

  init(configuration: TransferClientConfiguration, environment: ProxyEnvironment = .current) {
    self.environment =
      configuration.proxyExceptions.map(environment.replacingExceptions) ?? environment
    rotation = configuration.proxies.map { ProxyRotation($0) }
    routeCount = configuration.proxies?.routeCount ?? 1
  }

  /// The route of the next request to `url`.
  mutating func choice(
    for url: RemoteURL, avoiding tried: Set<ProxyList.Route>, now: ContinuousClock.Instant
  ) -> Choice {
    guard rotation != nil else {
      do {
        return Choice(route: try environment.route(to: url))
      } catch {
        return Choice(flaw: error.description)
      }
    }
    if environment.isException(url) { return Choice() }
    return Choice(route: rotation?.next(avoiding: tried, now: now) ?? .direct)
  }

  /// Whether a request has another route after those in `tried` have failed.
  func hasRoute(besides tried: Set<ProxyList.Route>, for url: RemoteURL) -> Bool {
    rotation != nil && !environment.isException(url) && tried.count < routeCount
  }

  mutating func recordAnswer(of route: ProxyList.Route, now: ContinuousClock.Instant) {
    if rotation != nil { answers[route] = now }
  }

  /// Records that a request was abandoned which a proxy has not answered since `since`.
  ///
  /// The proxy hangs, unless it has answered another request meanwhile.
  mutating func recordSilence(
    of route: ProxyList.Route, since: ContinuousClock.Instant, now: ContinuousClock.Instant
  ) {
    if let answered = answers[route], answered >= since { return }
    recordFailure(of: route, now: now)
  }

  mutating func recordFailure(of route: ProxyList.Route, now: ContinuousClock.Instant) {
    rotation?.recordFailure(of: route, now: now)
  }
}
