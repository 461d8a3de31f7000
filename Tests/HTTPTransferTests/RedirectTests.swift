import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The targets of redirects, and the parts of the request that are sent there.
  @Suite struct Redirects {
    private let client = TransferClient()

    @Test(
      "A location is resolved against the URL that named it",
      arguments: [
        ("/b", "/b"), ("b", "/dir/b"), ("../b", "/b"), ("./b?x=1", "/dir/b?x=1"),
        ("?x=2", "/dir/a?x=2"), ("/b%20c#part", "/b%20c"), ("/b c", "/b%20c"),
      ])
    func relative(location: String, target: String) async throws {
      let server = try ScriptedServer { request in
        request.target == "/dir/a?q"
          ? ScriptedServer.redirect(to: location) : ScriptedServer.ok("end")
      }
      defer { server.stop() }
      let record = try await client.record(server.url("/dir/a?q"))
      #expect(server.requests.last?.target == target)
      #expect(record.outcome == "finished")
      #expect(record.text == "end")
      #expect(record.heads.map(\.status.code) == [200])
      #expect(record.urls.map(\.text) == [server.url(target)])
    }

    @Test(
      "All five kinds are followed with method, range and fields",
      arguments: [301, 302, 303, 307, 308])
    func kinds(status: Int) async throws {
      let server = try ScriptedServer { request in
        request.target == "/a"
          ? ScriptedServer.redirect(status, to: "/b") : ScriptedServer.ok("end")
      }
      defer { server.stop() }
      var request = ExchangeRequest(url: try RemoteURL(server.url("/a")), range: 5..<10)
      request.fields[.ifRange] = "\"v\""
      let record = await client.record(request)
      #expect(record.outcome == "finished")
      #expect(server.requests.map(\.target) == ["/a", "/b"])
      for request in server.requests {
        #expect(request.method == "GET")
        #expect(request["range"] == ["bytes=5-9"])
        #expect(request["if-range"] == ["\"v\""])
      }
      #expect(record.metrics.requests == 2)
      // The redirect's empty body leaves the connection for the next request.
      #expect(record.metrics.newConnections == 1)
    }

    @Test("A redirect's body is not shown, be it short, long, or without end")
    func bodies() async throws {
      let long = String(repeating: "x", count: 1 << 20)
      let server = try ScriptedServer { request in
        let location = "Location: /end"
        return switch request.target {
        case "/short":
          [.head("HTTP/1.1 302 Found", location, "Content-Length: 5"), .text("moved")]
        case "/long":
          [.head("HTTP/1.1 302 Found", location, "Content-Length: 1048576"), .text(long)]
        case "/endless": [.head("HTTP/1.1 302 Found", location), .text(long), .text(long), .close]
        default: ScriptedServer.ok("end")
        }
      }
      defer { server.stop() }
      for path in ["/short", "/long", "/endless"] {
        let record = try await client.record(server.url(path))
        #expect(record.outcome == "finished", "\(path)")
        #expect(record.text == "end", "\(path)")
        #expect(record.heads.count == 1, "\(path)")
      }
    }

    @Test("A redirect to a URL of more than 8 KiB is not followed, also where it is relative")
    func longLocations() async throws {
      let length = 8 << 10
      let server = try ScriptedServer { request in
        guard request.target.hasPrefix("/to/") else { return ScriptedServer.ok("end") }
        let path = String(repeating: "p", count: Int(request.target.dropFirst(4)) ?? 0)
        return ScriptedServer.redirect(to: "../" + path)
      }
      defer { server.stop() }
      let base = server.url("/").utf8.count
      let followed = try await client.record(server.url("/to/\(length - base)"))
      #expect(followed.text == "end")
      let refused = try await client.record(server.url("/to/\(length - base + 1)"))
      #expect(refused.error?.code == .forbiddenRedirect)
      #expect(refused.error?.isTransient == false)
      #expect(refused.heads.isEmpty)
      #expect(server.requests.count == 3)
    }

    @Test("A loop ends at the limit", arguments: [1, 3, 10])
    func loop(limit: Int) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.redirect(to: "/again") }
      defer { server.stop() }
      let record = await client.record(
        ExchangeRequest(url: try RemoteURL(server.url("/")), maximumRedirects: limit))
      #expect(record.error?.code == .tooManyRedirects)
      #expect(record.heads.isEmpty)
      #expect(server.requests.count == limit + 1)
    }

    @Test("Without redirects allowed, the redirect is the response")
    func unfollowed() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.redirect(to: "/b") }
      defer { server.stop() }
      let record = await client.record(
        ExchangeRequest(url: try RemoteURL(server.url("/a")), maximumRedirects: 0))
      #expect(record.outcome == "finished")
      #expect(record.heads.first?.status.code == 302)
      #expect(record.heads.first?.headerFields[.location] == "/b")
      #expect(server.requests.count == 1)
    }

    @Test(
      "A redirect status without a location is a response like others", arguments: [301, 300, 304])
    func noLocation(status: Int) async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 \(status) Odd", "Content-Length: 0")]
      }
      defer { server.stop() }
      let record = try await client.record(server.url("/a"))
      #expect(record.outcome == "finished")
      #expect(record.heads.map(\.status.code) == [status])
    }

    @Test(
      "No redirect leads out of HTTP",
      arguments: [
        "file:///etc/passwd", "ftp://127.0.0.1/a", "gopher://127.0.0.1/a", "data:text/plain,a",
        "javascript:alert(1)", "dict://127.0.0.1/", "scp://127.0.0.1/a",
      ])
    func otherSchemes(location: String) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.redirect(to: location) }
      defer { server.stop() }
      let record = try await client.record(server.url("/a"))
      let error = try #require(record.error)
      #expect([.forbiddenRedirect, .malformedResponse].contains(error.code), "\(error)")
      #expect(record.heads.isEmpty)
      #expect(server.requests.count == 1)
    }

    @Test("A location that is no URL fails the transfer", arguments: ["http://", "http://[::1/a"])
    func brokenLocation(location: String) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.redirect(to: location) }
      defer { server.stop() }
      let record = try await client.record(server.url("/a"))
      #expect(record.error != nil)
      #expect(record.completions.count == 1)
      #expect(server.requests.count == 1)
    }

    // MARK: Credentials

    private static let secrets: HTTPFields = [
      .authorization: "Bearer CANARY", .cookie: "id=CANARY",
    ]

    @Test("Confidential fields stay with their origin and return to it")
    func crossOriginFields() async throws {
      let other = try ScriptedServer { request in
        request.target == "/end"
          ? ScriptedServer.ok("other")
          : ScriptedServer.redirect(to: "http://127.0.0.1:\(request.target.dropFirst())/back")
      }
      defer { other.stop() }
      let otherPort = other.port
      let home = try ScriptedServer { request in
        request.target == "/a"
          // The target's path contains the port for the redirect back.
          ? ScriptedServer.redirect(to: "http://127.0.0.1:\(otherPort)/\(request["x-port"][0])")
          : ScriptedServer.ok("home")
      }
      defer { home.stop() }
      var request = ExchangeRequest(url: try RemoteURL(home.url("/a")))
      request.confidentialFields = Self.secrets
      request.fields[try #require(HTTPField.Name("X-Port"))] = String(home.port)
      let record = await client.record(request)
      #expect(record.text == "home")
      let stranger = try #require(other.requests.first)
      #expect(stranger["authorization"].isEmpty)
      #expect(stranger["cookie"].isEmpty)
      // Fields that are not secret are sent, too.
      #expect(stranger["x-port"] == [String(home.port)])
      #expect(home.requests.map(\.target) == ["/a", "/back"])
      for request in home.requests {
        #expect(request["authorization"] == ["Bearer CANARY"])
        #expect(request["cookie"] == ["id=CANARY"])
      }
    }

    @Test("Confidential fields follow a redirect within their origin")
    func sameOriginFields() async throws {
      let server = try ScriptedServer { request in
        request.target == "/a" ? ScriptedServer.redirect(to: "/b") : ScriptedServer.ok("end")
      }
      defer { server.stop() }
      var request = ExchangeRequest(url: try RemoteURL(server.url("/a")))
      request.confidentialFields = Self.secrets
      _ = await client.record(request)
      #expect(server.requests.map(\.target) == ["/a", "/b"])
      #expect(server.requests.allSatisfy { $0["authorization"] == ["Bearer CANARY"] })
      #expect(server.requests.allSatisfy { $0["cookie"] == ["id=CANARY"] })
    }

    @Test("Fields of another origin than the URL's are not sent to the URL")
    func foreignFields() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { server.stop() }
      var request = ExchangeRequest(url: try RemoteURL(server.url("/a")))
      request.confidentialFields = Self.secrets
      request.confidentialOrigin = "http://origin.example"
      _ = await client.record(request)
      #expect(server.requests.map { $0["authorization"] } == [[]])
      #expect(server.requests.map { $0["cookie"] } == [[]])
    }

    @Test("Userinfo does not cross to another origin, and stays within its own")
    func userInfo() async throws {
      let other = try ScriptedServer { _ in ScriptedServer.ok("other") }
      defer { other.stop() }
      let outside = other.url("/x")
      let home = try ScriptedServer { request in
        switch request.target {
        case "/inside": ScriptedServer.redirect(to: "/b")
        case "/outside": ScriptedServer.redirect(to: outside)
        default: ScriptedServer.ok("home")
        }
      }
      defer { home.stop() }
      for path in ["/inside", "/outside"] {
        let record = try await client.record(home.url(path, userInfo: "user:pw@"))
        #expect(record.outcome == "finished")
      }
      #expect(home.requests.map(\.target) == ["/inside", "/b", "/outside"])
      #expect(home.requests.allSatisfy { $0["authorization"] == ["Basic dXNlcjpwdw=="] })
      #expect(other.requests.map { $0["authorization"] } == [[]])
    }

    @Test("Userinfo given beside the URL is sent to the confidential origin only")
    func separateUserInfo() async throws {
      let other = try ScriptedServer { _ in ScriptedServer.ok("other") }
      defer { other.stop() }
      let outside = other.url("/x")
      let home = try ScriptedServer { request in
        request.target == "/a" ? ScriptedServer.redirect(to: outside) : ScriptedServer.ok("home")
      }
      defer { home.stop() }
      for path in ["/a", "/b"] {
        var request = ExchangeRequest(url: try RemoteURL(home.url(path)))
        request.userInfo = "user:pw"
        #expect(await client.record(request).outcome == "finished")
      }
      // The other origin does not get the credentials even if its URL is requested directly.
      var request = ExchangeRequest(url: try RemoteURL(outside))
      request.userInfo = "user:pw"
      request.confidentialOrigin = "http://127.0.0.1:\(home.port)"
      #expect(await client.record(request).outcome == "finished")
      #expect(
        home.requests.map { $0["authorization"] }
          == [["Basic dXNlcjpwdw=="], ["Basic dXNlcjpwdw=="]])
      #expect(other.requests.map { $0["authorization"] } == [[], []])
    }

    @Test("Userinfo that a server puts into a location is not sent to anybody")
    func foreignUserInfo() async throws {
      let other = try ScriptedServer { _ in ScriptedServer.ok("other") }
      defer { other.stop() }
      let location = other.url("/x", userInfo: "eve:trap@")
      let home = try ScriptedServer { _ in ScriptedServer.redirect(to: location) }
      defer { home.stop() }
      let record = try await client.record(home.url("/a", userInfo: "user:pw@"))
      #expect(record.text == "other")
      #expect(other.requests.map { $0["authorization"] } == [[]])
    }
  }
}
