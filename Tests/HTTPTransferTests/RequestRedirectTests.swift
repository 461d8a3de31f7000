import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Redirects from the view of a ``Request``'s user.
  @Suite struct RequestRedirects {
    private let client = TransferClient()

    /// The request that arrives at a redirect's target.
    struct Case: Sendable, CustomTestStringConvertible {
      let status: Int
      let method: HTTPRequest.Method
      let keepsMethod: Bool
      let targetMethod: HTTPRequest.Method

      /// Whether the body is sent to the target.
      var keepsBody: Bool { targetMethod == .post || targetMethod == .put }

      init(
        _ status: Int, _ method: HTTPRequest.Method, keeps: Bool,
        becomes target: HTTPRequest.Method
      ) {
        self.status = status
        self.method = method
        keepsMethod = keeps
        targetMethod = target
      }

      var testDescription: String {
        "\(status) \(method)\(keepsMethod ? ", method kept" : "") → \(targetMethod)"
      }
    }

    static let cases: [Case] = [
      Case(301, .get, keeps: false, becomes: .get), Case(301, .get, keeps: true, becomes: .get),
      Case(302, .get, keeps: false, becomes: .get), Case(302, .get, keeps: true, becomes: .get),
      Case(303, .get, keeps: false, becomes: .get), Case(303, .get, keeps: true, becomes: .get),
      Case(307, .get, keeps: false, becomes: .get), Case(307, .get, keeps: true, becomes: .get),
      Case(308, .get, keeps: false, becomes: .get), Case(308, .get, keeps: true, becomes: .get),
      Case(301, .post, keeps: false, becomes: .get), Case(301, .post, keeps: true, becomes: .post),
      Case(302, .post, keeps: false, becomes: .get), Case(302, .post, keeps: true, becomes: .post),
      Case(303, .post, keeps: false, becomes: .get), Case(303, .post, keeps: true, becomes: .get),
      Case(307, .post, keeps: false, becomes: .post),
      Case(307, .post, keeps: true, becomes: .post),
      Case(308, .post, keeps: false, becomes: .post),
      Case(308, .post, keeps: true, becomes: .post),
      Case(303, .put, keeps: true, becomes: .get), Case(307, .put, keeps: false, becomes: .put),
      Case(301, .head, keeps: false, becomes: .head), Case(303, .head, keeps: true, becomes: .head),
    ]

    @Test("Method and body at the target are those of the table", arguments: cases)
    func table(_ row: Case) async throws {
      let server = try ScriptedServer { request in
        if request.target == "/a" { return ScriptedServer.redirect(row.status, to: "/b") }
        return request.method == "HEAD"
          ? [.head("HTTP/1.1 200 OK", "Content-Length: 3")] : ScriptedServer.ok("end")
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/a"))
      request.method = row.method
      request.redirects.keepsMethod = row.keepsMethod
      let body = Array("the body".utf8)
      if row.method == .post || row.method == .put {
        request.body = .bytes(body, contentType: "text/x-canary")
      }
      let run = await client.run(request)
      #expect(run.result?.response.status.code == 200)
      #expect(run.result?.url.text == server.url("/b"))
      #expect(run.result?.body == (row.method == .head ? [] : Array("end".utf8)))
      #expect(run.log.redirects == [row.status])
      #expect(run.log.responses.map(\.status.code) == [200])
      #expect(server.requests.map(\.target) == ["/a", "/b"])
      let target = try #require(server.requests.last)
      #expect(target.method == row.targetMethod.rawValue)
      #expect(target.body == (row.keepsBody ? body : []))
      #expect(target["content-type"] == (row.keepsBody ? ["text/x-canary"] : []))
      if !row.keepsBody {
        #expect(target.contentLength == 0)
        #expect(target["transfer-encoding"] == [])
        #expect(target["expect"] == [])
      }
    }

    // MARK: Limits

    @Test("A loop fails after as many redirects as are allowed", arguments: [1, 4])
    func loop(limit: Int) async throws {
      let server = try ScriptedServer { request in
        ScriptedServer.redirect(to: request.target == "/a" ? "/b" : "/a")
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/a"), to: .file(directory.file("f")))
      request.redirects.maximum = limit
      let run = await client.run(request)
      #expect(run.error?.code == .redirect)
      #expect(server.requests.count == limit + 1)
      #expect(directory.names == [])
    }

    @Test("As many redirects as are allowed are followed, and not one more")
    func limit() async throws {
      let server = try ScriptedServer { request in
        let number = Int(request.target.dropFirst()) ?? 0
        return number == 3
          ? ScriptedServer.ok("end") : ScriptedServer.redirect(to: "/\(number + 1)")
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/0"))
      request.redirects.maximum = 3
      #expect(await client.run(request).result?.body == Array("end".utf8))
      request.redirects.maximum = 2
      #expect(await client.run(request).error?.code == .redirect)
    }

    @Test(
      "Without redirects the answer is the failure, and can be read", arguments: [301, 303, 308])
    func off(status: Int) async throws {
      let server = try ScriptedServer { _ in ScriptedServer.redirect(status, to: "/b") }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/a"), to: .file(directory.file("f")))
      request.redirects = .none
      let run = await client.run(request)
      #expect(run.error?.code == .redirect)
      #expect(run.error?.status == status)
      #expect(run.error?.response?.headerFields[.location] == "/b")
      #expect(run.log.responses.map(\.status.code) == [status])
      #expect(run.log.redirects == [])
      #expect(server.requests.count == 1)
      #expect(directory.names == [])
    }

    // MARK: Secrets

    @Test("No credentials reach another origin, on any of a download's connections")
    func crossOrigin() async throws {
      var file = ServedFile(byteCount: 8 << 20)
      file.isPaced = true
      let other = try ScriptedServer(answer: file.answer)
      defer { other.stop() }
      let location = other.url("/f")
      let home = try ScriptedServer { _ in ScriptedServer.redirect(to: location) }
      defer { home.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(
        home.url("/a", userInfo: "CANARY-user:CANARY-password@"),
        to: .file(directory.file("f")))
      request.confidentialFields[.cookie] = "id=CANARY"
      request.confidentialFields[try #require(HTTPField.Name("X-Key"))] = "CANARY"
      request.fields[.accept] = "public/yes"
      request.connections = .exactly(4)
      let run = await client.run(request)
      #expect(directory.contents("f")?.fingerprint == file.bytes.fingerprint)
      #expect(home.requests.first?.headText.contains("CANARY") == true)
      #expect(home.requests.first?["authorization"].count == 1)
      #expect(other.requests.count > 1)
      for request in other.requests {
        #expect(!request.headText.contains("CANARY"))
        #expect(request["authorization"] == [])
        #expect(request["accept"] == ["public/yes"])
      }
      #expect(run.result?.url.userInfo == nil)
    }

    @Test("Confidential fields that stand in for userinfo do not cross either")
    func crossOriginAuthorization() async throws {
      let other = try ScriptedServer { _ in ScriptedServer.ok("other") }
      defer { other.stop() }
      let location = other.url("/f")
      let home = try ScriptedServer { request in
        request.target == "/b"
          ? ScriptedServer.redirect(307, to: location) : ScriptedServer.redirect(307, to: "/b")
      }
      defer { home.stop() }
      var request = try Request.quick(home.url("/a"))
      request.method = .put
      request.body = .bytes([1, 2, 3])
      request.confidentialFields[.authorization] = "Bearer CANARY"
      let run = await client.run(request)
      #expect(run.result?.body == Array("other".utf8))
      #expect(home.requests.map { $0["authorization"] } == [["Bearer CANARY"], ["Bearer CANARY"]])
      #expect(other.requests.map { $0.headText.contains("CANARY") } == [false])
      #expect(other.requests.map(\.body) == [[1, 2, 3]])
    }

    // MARK: Cookies

    @Test("Cookies set on the way are sent to the target, and kept in that client's jar alone")
    func cookies() async throws {
      let server = try ScriptedServer { request in
        request.target == "/login"
          ? [
            .head(
              "HTTP/1.1 302 Found", "Location: /f", "Set-Cookie: sid=CANARY; Path=/",
              "Content-Length: 0")
          ] : ScriptedServer.ok("end")
      }
      defer { server.stop() }
      _ = await client.run(try .quick(server.url("/login")))
      #expect(server.requests.map { $0["cookie"] } == [[], ["sid=CANARY"]])
      // It stays for later transfers of this client …
      _ = await client.run(try .quick(server.url("/f")))
      #expect(server.requests.last?["cookie"] == ["sid=CANARY"])
      // … but not for another client, nor for another host.
      _ = await TransferClient().run(try .quick(server.url("/f")))
      #expect(server.requests.last?["cookie"] == [])
      _ = await client.run(try .quick("http://localhost:\(server.port)/f"))
      #expect(server.requests.last?["cookie"] == [])
      #expect(server.requests.count == 5)
    }

    @Test("A client that keeps no cookies sends none back")
    func noCookies() async throws {
      let server = try ScriptedServer { request in
        [
          .head(
            "HTTP/1.1 302 Found", "Location: /\(request.target.count)",
            "Set-Cookie: sid=CANARY; Path=/", "Content-Length: 0")
        ]
      }
      defer { server.stop() }
      var configuration = TransferClient.Configuration()
      configuration.keepsCookies = false
      var request = try Request.quick(server.url("/a"))
      request.redirects.maximum = 2
      _ = await TransferClient(configuration: configuration).run(request)
      #expect(server.requests.map { $0["cookie"] } == [[], [], []])
    }

    @Test("A cookie reaches no other port of its host, and comes back to its own")
    func cookiesOfAPort() async throws {
      let other = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { other.stop() }
      let server = try ScriptedServer { request in
        request.target == "/own"
          ? ScriptedServer.ok("own")
          : [
            .head(
              "HTTP/1.1 302 Found", "Location: \(other.url("/f"))",
              "Set-Cookie: sid=CANARY; Path=/; Domain=127.0.0.1", "Content-Length: 0")
          ]
      }
      defer { server.stop() }
      let client = TransferClient()
      _ = await client.run(try .quick(server.url("/login")))
      _ = await client.run(try .quick(other.url("/g")))
      #expect(other.requests.map { $0["cookie"] } == [[], []])
      _ = await client.run(try .quick(server.url("/own")))
      #expect(server.requests.last?["cookie"] == ["sid=CANARY"])
    }

    @Test("Of 20,000 cookies of a file for one host, a thousand are taken, in a moment")
    func manyOwnCookies() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { server.stop() }
      var configuration = TransferClient.Configuration()
      configuration.cookies = (0..<20_000).map { "127.0.0.1\tFALSE\t/\tFALSE\t0\tc\($0)\tv" }
      let client = TransferClient(configuration: configuration)
      let start = ContinuousClock.now
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result != nil)
      let cookies = server.requests.first?["cookie"].joined().split(separator: "; ") ?? []
      #expect((100...150).contains(cookies.count), "\(cookies.count)")
      // A busy machine takes some seconds; quadratic work on 20,000 would take many times that.
      let duration = ContinuousClock.now - start
      #expect(duration < .seconds(30), "\(duration)")
    }

    @Test("A server that sets cookies without end loses its own, and those of others stay")
    func cookieFlood() async throws {
      let number = Counter()
      let flood = try ScriptedServer { request in
        let (count, byteCount) = request.target == "/many" ? (40, 2) : (20, 4000)
        let lines = (0..<count).map { _ in
          "Set-Cookie: c\(number.next())=\(String(repeating: "x", count: byteCount)); Path=/\r\n"
        }
        return [
          .text("HTTP/1.1 200 OK\r\n\(lines.joined())Content-Length: 2\r\n\r\n"), .text("hi"),
        ]
      }
      defer { flood.stop() }
      let server = try ScriptedServer { request in
        [
          .head(
            "HTTP/1.1 200 OK", "Set-Cookie: sid=CANARY; Path=/", "Content-Length: 2"), .text("hi"),
        ]
      }
      defer { server.stop() }
      var configuration = TransferClient.Configuration()
      configuration.cookies = ["127.0.0.1\tFALSE\t/\tFALSE\t0\town\tmine"]
      let client = TransferClient(configuration: configuration)
      _ = await client.run(try .quick(server.url("/")))
      // libcurl would send 150 of the many cookies, and of the large ones as many bytes as it ever
      // sends.
      for _ in 0..<10 { _ = await client.run(try .quick(flood.url("/many"))) }
      let counts = flood.requests.map { $0["cookie"].joined().split(separator: ";").count }
      #expect(counts.max() ?? 0 > 40)
      #expect(counts.max() ?? 0 <= 101, "\(counts)")
      for _ in 0..<3 { _ = await client.run(try .quick(flood.url("/large"))) }
      #expect(flood.requests.suffix(2).map { $0["cookie"] } == [["own=mine"], ["own=mine"]])
      _ = await client.run(try .quick(server.url("/")))
      let cookies = server.requests.last?["cookie"].first?.split(separator: "; ").sorted()
      #expect(cookies == ["own=mine", "sid=CANARY"])
    }
  }
}
