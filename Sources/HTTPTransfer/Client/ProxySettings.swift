internal import HTTPTransferCore

/// Which proxy each request goes through.
///
/// Used by the network thread alone, but kept by the client, which outlives that thread.
struct ProxySettings {
  /// The way of one request.
  struct Choice {
    var route = ProxyList.Route.direct
    /// Why the environment's proxy cannot be used; nil where it can, or is not.
    var flaw: String?
    /// Whether that leads through a proxy.
    var isProxied: Bool { !route.isDirect }
  }

  private let environment: ProxyEnvironment
  private let routeCount: Int
  private var rotation: ProxyRotation?
  /// When each proxy of the list last brought a head.
  private var answers: [ProxyList.Route: ContinuousClock.Instant] = [:]

  init(configuration: HTTPClient.Configuration, environment: ProxyEnvironment = .current) {
    self.environment =
      configuration.proxyExceptions.map(environment.replacingExceptions) ?? environment
    rotation = configuration.proxies.map { ProxyRotation($0) }
    routeCount = configuration.proxies?.routeCount ?? 1
  }

  /// The way of the next request to `url`.
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

  /// Whether a request whose routes `tried` have failed has another one.
  func hasRoute(besides tried: Set<ProxyList.Route>, for url: RemoteURL) -> Bool {
    rotation != nil && !environment.isException(url) && tried.count < routeCount
  }

  mutating func noteAnswer(of route: ProxyList.Route, now: ContinuousClock.Instant) {
    if rotation != nil { answers[route] = now }
  }

  /// A request was given up that a proxy has had since `since`: unless it has answered another one
  /// meanwhile, it hangs.
  mutating func noteSilence(
    of route: ProxyList.Route, since: ContinuousClock.Instant, now: ContinuousClock.Instant
  ) {
    if let answered = answers[route], answered >= since { return }
    noteFailure(of: route, now: now)
  }

  mutating func noteFailure(of route: ProxyList.Route, now: ContinuousClock.Instant) {
    rotation?.noteFailure(of: route, now: now)
  }
}
