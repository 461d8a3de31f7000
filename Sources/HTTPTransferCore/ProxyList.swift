/// Proxies in the order of their use: `http://p1:3128|http://p2:3128;DIRECT`.
///
/// Requests are spread over the proxies of a group (`|`). The next group (`;`) is used when all
/// proxies of a group fail. `DIRECT` means no proxy.
public struct ProxyList: Sendable, Hashable {
  /// One route to a server.
  public enum Route: Sendable, Hashable {
    case direct
    /// The URL of a proxy, including its credentials, which must not be displayed.
    case proxy(String)

    /// Whether the connection to the proxy uses TLS.
    package var isEncrypted: Bool {
      if case .proxy(let url) = self { url.hasPrefix("https://") } else { false }
    }

    package var isDirect: Bool { self == .direct }
  }

  /// Why a text is not a proxy list; names the position, never the text.
  public struct ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
  }

  /// The groups: at least one, none of them empty.
  public let groups: [[Route]]

  public init(_ text: String) throws(ParseError) {
    var groups: [[Route]] = []
    var number = 0
    for group in text.split(separator: ";", omittingEmptySubsequences: false) {
      var routes: [Route] = []
      for member in group.split(separator: "|", omittingEmptySubsequences: false) {
        number += 1
        routes.append(try Route(member, named: "proxy \(number)"))
      }
      groups.append(routes)
    }
    self.groups = groups
  }

  package var routeCount: Int { Set(groups.joined()).count }
}

extension ProxyList.Route {
  private static let schemes: Set<String> = [
    "http", "https", "socks4", "socks4a", "socks5", "socks5h",
  ]

  /// Reads one route.
  ///
  /// - Parameters:
  ///   - text: `DIRECT`, or a proxy with or without its scheme.
  ///   - label: the name of the entry in error messages.
  /// - Throws: what is wrong with the entry; never shows the text.
  package init(_ text: Substring, named label: String) throws(ProxyList.ParseError) {
    typealias ParseError = ProxyList.ParseError
    var name = String(text)
    while name.first == " " { name.removeFirst() }
    while name.last == " " { name.removeLast() }
    if name.lowercased() == "direct" {
      self = .direct
      return
    }
    guard !name.isEmpty else { throw ParseError(description: "\(label) is empty") }
    var scheme = "http"
    var rest = Substring(name)
    // By its bytes: a scheme is ASCII.
    if let mark = name.firstRange(of: "://") {
      scheme = name[..<mark.lowerBound].lowercased()
      rest = name[mark.upperBound...]
      guard Self.schemes.contains(scheme) else {
        throw ParseError(
          description:
            "\(label): its scheme must be http, https, socks4, socks4a, socks5 or socks5h")
      }
    }
    let url: RemoteURL
    do {
      url = try RemoteURL("http://" + rest)
    } catch {
      throw ParseError(description: "\(label): \(error)")
    }
    guard url.path.isEmpty || url.path == "/", url.query == nil else {
      throw ParseError(description: "\(label): nothing may follow its host and port")
    }
    let userInfo = url.userInfo.map { Self.encoded($0) + "@" } ?? ""
    // libcurl bypasses a proxy whose credentials it cannot decode.
    guard !Self.encodesControl(userInfo) else {
      throw ParseError(description: "\(label): its credentials hold a control character")
    }
    self = .proxy("\(scheme)://\(userInfo)\(url.authority)")
  }

  /// Encodes credentials in a form that libcurl always accepts.
  ///
  /// The message with which libcurl refuses others, such as a password with an `@`, shows them.
  private static func encoded(_ userInfo: String) -> String {
    var bytes: [UInt8] = []
    for byte in userInfo.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        bytes.append(byte)
      case _ where "-._~!$&'()*+,;=:%".utf8.contains(byte): bytes.append(byte)
      default:
        let digits = Array("0123456789ABCDEF".utf8)
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Whether a text holds a percent-encoded control character.
  private static func encodesControl(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return bytes.indices.dropLast(2).contains { index in
      guard bytes[index] == UInt8(ascii: "%"), let high = hexadecimalValue(bytes[index + 1]),
        let low = hexadecimalValue(bytes[index + 2])
      else { return false }
      let value = high << 4 | low
      return value < 0x20 || value == 0x7F
    }
  }
}

/// Selects the route for each request from a list; a pure value that gets the time from its owner.
package struct ProxyRotation: Sendable {
  package typealias Instant = ContinuousClock.Instant

  private let list: ProxyList
  /// When each route last failed.
  private var failures: [ProxyList.Route: Instant] = [:]
  private var turn = 0

  /// How long a proxy that was unreachable is used only if all others fail too.
  ///
  /// Long enough that few requests wait for its timeout, short enough that a restarted proxy is
  /// soon used again.
  package static let rest = Duration.seconds(30)

  package init(_ list: ProxyList) { self.list = list }

  /// Selects the route of a request.
  ///
  /// - Parameters:
  ///   - tried: the routes that have already failed for this request.
  ///   - now: the time.
  /// - Returns: the next route of the first group that has one; nil if all have been tried.
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
    // All rest: select the route that failed longest ago.
    return list.groups.joined().filter { !tried.contains($0) }
      .min { (failures[$0] ?? now) < (failures[$1] ?? now) }
  }

  /// Records that a proxy could not be reached, or is not a proxy.
  package mutating func recordFailure(of route: ProxyList.Route, now: Instant) {
    if !route.isDirect { failures[route] = now }
  }
}
