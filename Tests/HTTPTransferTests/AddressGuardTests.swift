import HTTPTransfer
import HTTPTransferCore
import Testing

extension TransferTests {
  /// The targets to which redirects may lead.
  @Suite struct AddressGuards {
    private static func address(_ text: String) throws -> IPAddress {
      try #require(AddressGuard.address(text), "\(text)")
    }

    /// Whether a request that visits these addresses in order is permitted at each of them.
    private func isPermitted(_ addresses: String..., isProxied: Bool = false) throws -> Bool {
      var guardian = AddressGuard(isRedirected: false, cameFromPublicAddress: false)
      for (hop, text) in addresses.enumerated() {
        let address = try Self.address(text)
        guardian.begin(hop: hop, isProxied: isProxied, host: "h.example")
        guard guardian.permits(address) else { return false }
        _ = guardian.recordRequest(to: address)
      }
      return true
    }

    @Test("A redirect from a public address leads to no private one, however many lie between")
    func redirects() throws {
      #expect(try !isPermitted("203.0.113.1", "10.0.0.1"))
      #expect(try !isPermitted("203.0.113.1", "127.0.0.1"))
      #expect(try !isPermitted("2001:db8::1", "::1"))
      #expect(try !isPermitted("203.0.113.1", "198.51.100.1", "192.168.1.1"))
      #expect(try !isPermitted("10.0.0.1", "203.0.113.1", "10.0.0.1"))
      #expect(try !isPermitted("203.0.113.1", "fe80::1%eth0"))
    }

    @Test("All others are followed, and what the user names is asked")
    func permitted() throws {
      #expect(try isPermitted("127.0.0.1"))
      #expect(try isPermitted("127.0.0.1", "10.0.0.1", "::1"))
      #expect(try isPermitted("10.0.0.1", "203.0.113.1", "2001:db8::1"))
      #expect(try isPermitted("203.0.113.1", "198.51.100.1"))
    }

    @Test("A proxy's address says nothing of the server's")
    func proxies() throws {
      #expect(try isPermitted("203.0.113.1", "10.0.0.1", isProxied: true))
    }

    @Test(
      "Behind a proxy a redirect leads to no private address that its URL or a direct way names")
    func proxiedRedirects() throws {
      let proxy = try Self.address("10.0.0.1")
      for (from, to, isPermitted) in [
        ("h.example", "127.0.0.1", false), ("h.example", "localhost", false),
        ("h.example", "127.1", false), ("h.example", "0x7f000001", false),
        ("h.example", "::1", false), ("h.example", "192.168.1.1", false),
        ("h.example", "localhost.", false), ("h.example", "a.localhost.", false),
        ("h.example", "127.0.0.1.", false), ("h.example", "127.1.", false),
        ("h.example", "0x7f000001.", false), ("h.example", "a.example.", true),
        ("h.example", "a.example", true), ("h.example", "198.51.100.7", true),
        ("10.1.1.1", "10.1.1.2", true), ("localhost", "127.0.0.1", true),
      ] {
        var guardian = AddressGuard(isRedirected: false, cameFromPublicAddress: false)
        guardian.begin(hop: 0, isProxied: true, host: from)
        #expect(guardian.permitsHost() == true)
        #expect(guardian.permits(proxy) == true)
        #expect(guardian.recordRequest(to: proxy) == (from == "h.example"))
        guardian.begin(hop: 1, isProxied: true, host: to)
        #expect(guardian.permitsHost() == isPermitted, "\(from) to \(to)")
      }
      // The redirect's target is reached without the proxy (no_proxy).
      var guardian = AddressGuard(isRedirected: false, cameFromPublicAddress: false)
      guardian.begin(hop: 0, isProxied: true, host: "h.example")
      _ = guardian.recordRequest(to: proxy)
      guardian.begin(hop: 1, isProxied: false, host: "intranet.example")
      let (inner, outer) = (try Self.address("10.0.0.2"), try Self.address("203.0.113.1"))
      #expect(guardian.permits(inner) == false)
      #expect(guardian.permits(outer) == true)
    }

    @Test("What an earlier redirect has named is refused like the redirect itself")
    func remembered() throws {
      let target = try Self.address("10.0.0.1")
      for (isRedirected, isFromPublic, expected) in [
        (true, true, false), (true, false, true), (false, true, true),
      ] {
        var guardian = AddressGuard(
          isRedirected: isRedirected, cameFromPublicAddress: isFromPublic)
        guardian.begin(hop: 0, isProxied: false, host: "h.example")
        #expect(guardian.permits(target) == expected)
        #expect(guardian.refused == (expected ? nil : "10.0.0.1"))
      }
    }

    // MARK: Proxies

    /// Variables, and whether they send a request through a proxy.
    struct ProxyCase: Sendable {
      let url: String
      let variables: [String: String]
      let isProxied: Bool

      init(_ url: String, _ isProxied: Bool, _ variables: [String: String]) {
        self.url = url
        self.variables = variables
        self.isProxied = isProxied
      }
    }

    @Test(
      "The environment is read as libcurl reads it",
      arguments: [
        ProxyCase("http://h/", false, [:]),
        ProxyCase("http://h/", true, ["http_proxy": "p"]),
        ProxyCase("http://h/", false, ["http_proxy": ""]),
        ProxyCase("http://h/", false, ["HTTP_PROXY": "p", "https_proxy": "p"]),
        ProxyCase("https://h/", true, ["HTTPS_PROXY": "p"]),
        ProxyCase("https://h/", false, ["http_proxy": "p"]),
        ProxyCase("https://h/", true, ["all_proxy": "p"]),
        ProxyCase("http://h/", true, ["ALL_PROXY": "p"]),
        ProxyCase("http://h/", false, ["ALL_PROXY": "p", "no_proxy": "*"]),
        ProxyCase("http://a.h.org:8080/", false, ["http_proxy": "p", "no_proxy": "x, h.org"]),
        ProxyCase("http://a.h.org/", false, ["http_proxy": "p", "NO_PROXY": ".H.org"]),
        ProxyCase("http://ah.org/", true, ["http_proxy": "p", "no_proxy": "h.org"]),
        ProxyCase("http://h.org./", false, ["http_proxy": "p", "no_proxy": "h.org"]),
        ProxyCase("http://10.1.2.3/", false, ["http_proxy": "p", "no_proxy": "10.0.0.0/8"]),
        ProxyCase("http://11.1.2.3/", true, ["http_proxy": "p", "no_proxy": "10.0.0.0/8"]),
        ProxyCase("http://10.1.2.3/", false, ["http_proxy": "p", "no_proxy": "10.1.2.3"]),
        ProxyCase("http://10.1.2.3/", true, ["http_proxy": "p", "no_proxy": "2.3,10.0.0.0/x"]),
        ProxyCase("http://[fd00::1]:81/", false, ["http_proxy": "p", "no_proxy": "fd00::/8"]),
      ])
    func environment(row: ProxyCase) throws {
      let url = try RemoteURL(row.url)
      #expect(
        try ProxyEnvironment(row.variables).route(to: url).isDirect != row.isProxied,
        "\(row.url) \(row.variables)")
    }

    @Test(
      "A proxy of the environment that is none is told of by its variable, and never shown",
      arguments: [
        "http://user:CANARY@127.0.0.1:99999", "htttp://user:CANARY@127.0.0.1:9",
        "http://user:CANARY P@127.0.0.1:9", "http://user:CANARY@[::1", "socks9://user:CANARY@h:1",
        "user:CANARY@@h:x", "http://CANARY:3128/CANARY", "http://user:CANARY%0a@127.0.0.1:9",
        "http://user%7f:CANARY@127.0.0.1:9",
      ])
    func brokenProxies(value: String) throws {
      let url = try RemoteURL("http://h/")
      let environment = ProxyEnvironment(["http_proxy": value, "no_proxy": "direct.example"])
      let error = #expect(throws: ProxyList.ParseError.self) { try environment.route(to: url) }
      let text = try #require(error).description
      #expect(text.contains("the environment's http_proxy"))
      #expect(!text.contains("CANARY"))
      #expect(try environment.route(to: RemoteURL("http://direct.example/")) == .direct)
    }

    @Test("The environment's proxy is taken with its scheme and credentials")
    func environmentRoutes() throws {
      let environment = ProxyEnvironment([
        "http_proxy": "u:p%40w@Proxy:3128/", "all_proxy": "socks5h://127.0.0.1:1080",
      ])
      #expect(
        try environment.route(to: RemoteURL("http://h/")) == .proxy("http://u:p%40w@proxy:3128"))
      #expect(
        try environment.route(to: RemoteURL("https://h/")) == .proxy("socks5h://127.0.0.1:1080"))
    }
  }
}
