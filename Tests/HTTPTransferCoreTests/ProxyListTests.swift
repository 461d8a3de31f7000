import HTTPTransferCore
import Testing

@Suite struct ProxyListTests {
  private let now = ContinuousClock.now

  @Test("Bars separate the members of a group, semicolons the groups")
  func grammar() throws {
    let list = try ProxyList("p1:3128|https://u:p@P2:443/ ; socks5h://[::1]:1080 ;DIRECT")
    #expect(
      list.groups == [
        [.proxy("http://p1:3128"), .proxy("https://u:p@p2:443")],
        [.proxy("socks5h://[::1]:1080")], [.direct],
      ])
  }

  @Test(
    "What is no proxy is named by its number, without its credentials",
    arguments: [
      "", "p1;", "p1||p2", "ftp://canary@p", "http://canary@p/path", "http://canary@:80",
      "http://canary@p:0", "p1|http://can ary@p", "http://canary@p?q",
    ])
  func malformed(text: String) {
    let error = #expect(throws: ProxyList.ParseError.self) { try ProxyList(text) }
    #expect(error.map { !"\($0)".contains("canary") && "\($0)".hasPrefix("proxy ") } == true)
  }

  @Test func `Credentials that libcurl would refuse, and show, are encoded`() throws {
    let list = try ProxyList("http://u:p@ss:\u{E9}%41@p1:3128")
    #expect(list.groups == [[.proxy("http://u:p%40ss:%C3%A9%41@p1:3128")]])
  }

  @Test("The load is spread over a group; the next one is for when all of it has failed")
  func rotation() throws {
    var rotation = ProxyRotation(try ProxyList("a|b;c;DIRECT"))
    let (a, b, c) = (
      ProxyList.Route.proxy("http://a"), ProxyList.Route.proxy("http://b"),
      ProxyList.Route.proxy("http://c")
    )
    let first = (0..<10).compactMap { _ in rotation.next(avoiding: [], now: now) }
    #expect(first.count { $0 == a } == 5)
    #expect(first.count { $0 == b } == 5)
    #expect(rotation.next(avoiding: [a], now: now) == b)
    rotation.recordFailure(of: a, now: now)
    #expect(rotation.next(avoiding: [], now: now) == b)
    rotation.recordFailure(of: b, now: now)
    #expect(rotation.next(avoiding: [], now: now) == c)
    #expect(rotation.next(avoiding: [c], now: now) == .direct)
    // All but one, which rests, have failed this request.
    #expect(rotation.next(avoiding: [c, .direct, b], now: now) == a)
    #expect(rotation.next(avoiding: [a, b, c, .direct], now: now) == nil)
    // After a while, they are used again.
    let later = now + ProxyRotation.rest + .seconds(1)
    let again = rotation.next(avoiding: [], now: later)
    #expect(again == a || again == b)
  }

  @Test("DIRECT never rests, and a single proxy is asked again though it has failed")
  func alone() throws {
    var direct = ProxyRotation(try ProxyList("direct;p"))
    direct.recordFailure(of: .direct, now: now)
    #expect(direct.next(avoiding: [], now: now) == .direct)
    var single = ProxyRotation(try ProxyList("p"))
    single.recordFailure(of: .proxy("http://p"), now: now)
    #expect(single.next(avoiding: [], now: now) == .proxy("http://p"))
  }
}
