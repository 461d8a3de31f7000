/// Proxies in the order of their use: `http://p1:3128|http://p2:3128;DIRECT`.
///
/// Within a group (`|`) the load is spread; the next group (`;`) is for when all of one fail. `DIRECT`
/// stands for no proxy.
public struct ProxyList: Sendable, Hashable {
  /// One way to a server.
  public enum Route: Sendable, Hashable {
    case direct
    /// An URL of a proxy, with its credentials, which are shown nowhere.
    case proxy(String)

    /// Whether the way to the proxy is itself within TLS.
    package var isEncrypted: Bool {
      if case .proxy(let url) = self { url.hasPrefix("https://") } else { false }
    }

    package var isDirect: Bool { self == .direct }
  }

  /// Why a text is no list; it names the place, never what stands there.
  public struct ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
  }

  /// At least one, none of them empty.
  public let groups: [[Route]]

  public init(_ text: String) throws(ParseError) {
    var groups: [[Route]] = []
    var number = 0
    for group in text.split(separator: ";", omittingEmptySubsequences: false) {
      var routes: [Route] = []
      for member in group.split(separator: "|", omittingEmptySubsequences: false) {
        number += 1
        routes.append(try Self.route(member, number: number))
      }
      groups.append(routes)
    }
    self.groups = groups
  }

  package var routeCount: Int { Set(groups.joined()).count }

  private static let schemes: Set<String> = [
    "http", "https", "socks4", "socks4a", "socks5", "socks5h",
  ]

  private static func route(_ member: Substring, number: Int) throws(ParseError) -> Route {
    var name = String(member)
    while name.first == " " { name.removeFirst() }
    while name.last == " " { name.removeLast() }
    if name.lowercased() == "direct" { return .direct }
    guard !name.isEmpty else { throw ParseError(description: "proxy \(number) is empty") }
    var scheme = "http"
    var rest = Substring(name)
    // By its bytes: a scheme is ASCII.
    if let mark = name.firstRange(of: "://") {
      scheme = name[..<mark.lowerBound].lowercased()
      rest = name[mark.upperBound...]
      guard schemes.contains(scheme) else {
        throw ParseError(
          description:
            "proxy \(number): its scheme must be http, https, socks4, socks4a, socks5 or socks5h")
      }
    }
    let url: RemoteURL
    do {
      url = try RemoteURL("http://" + rest)
    } catch {
      throw ParseError(description: "proxy \(number): \(error)")
    }
    guard url.path.isEmpty || url.path == "/", url.query == nil else {
      throw ParseError(description: "proxy \(number): nothing may follow its host and port")
    }
    let userInfo = url.userInfo.map { $0 + "@" } ?? ""
    return .proxy("\(scheme)://\(userInfo)\(url.authority)")
  }
}

/// Which of a list's routes the next request takes: a pure value, to which its owner says the time.
package struct ProxyRotation: Sendable {
  package typealias Instant = ContinuousClock.Instant

  private let list: ProxyList
  /// Since when each failed.
  private var failures: [ProxyList.Route: Instant] = [:]
  private var turn = 0

  /// How long a proxy that could not be reached is asked only where all others fail, too: long enough
  /// that few requests wait for its timeout, short enough that one that restarts is soon back.
  package static let rest = Duration.seconds(30)

  package init(_ list: ProxyList) { self.list = list }

  /// The route of a request.
  ///
  /// - Parameters:
  ///   - tried: those that have failed this very request.
  ///   - now: the time.
  /// - Returns: the next one of the first group that has one; nil where all have been tried.
  package mutating func next(
    avoiding tried: Set<ProxyList.Route>, now: Instant
  ) -> ProxyList.Route? {
    failures = failures.filter { now - $0.value < Self.rest }
    for group in list.groups {
      let able = group.filter { !tried.contains($0) && failures[$0] == nil }
      guard !able.isEmpty else { continue }
      turn &+= 1
      return able[turn % able.count]
    }
    // All rest: the one that has for longest.
    return list.groups.joined().filter { !tried.contains($0) }
      .min { (failures[$0] ?? now) < (failures[$1] ?? now) }
  }

  /// A proxy could not be reached, or is none.
  package mutating func noteFailure(of route: ProxyList.Route, now: Instant) {
    if !route.isDirect { failures[route] = now }
  }
}
