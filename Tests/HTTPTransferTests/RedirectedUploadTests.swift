import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Uploads whose answer is at another URL: an accepted body is not sent there.
  @Suite struct RedirectedUploads {
    private let client = TransferClient()
    private let body = ServedFile.randomBytes(50_000)

    private func request(_ method: HTTPRequest.Method, _ url: String) throws -> Request {
      var request = try Request.quick(url)
      request.method = method
      request.body = .bytes(body, contentType: "text/x-canary")
      return request
    }

    @Test("A PUT that 303 turned into a GET stays one when the target's answer is cut")
    func cutBehindSeeOther() async throws {
      let tries = Counter()
      let server = try ScriptedServer { request in
        if request.target == "/a" { return ScriptedServer.redirect(303, to: "/b") }
        return tries.next() < 3
          ? [.head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("01234"), .close]
          : ScriptedServer.ok("0123456789")
      }
      defer { server.stop() }
      let run = await client.run(try request(.put, server.url("/a")))
      #expect(run.result?.body == Array("0123456789".utf8))
      let targets = server.requests.filter { $0.target == "/b" }
      #expect(targets.map(\.method) == ["GET", "GET", "GET"])
      for target in targets {
        #expect(target.contentLength == 0)
        #expect(target.body.isEmpty)
        #expect(target["content-type"] == [])
        #expect(target["transfer-encoding"] == [])
        #expect(target["expect"] == [])
      }
      // Each time the whole body, to the right URL.
      let sources = server.requests.filter { $0.target == "/a" }
      #expect(sources.allSatisfy { $0.method == "PUT" && $0.body == body })
      #expect(sources.count == 3)
    }

    @Test("A PUT that 303 turned into a GET stays one when the target is overloaded or refuses")
    func refusedBehindSeeOther() async throws {
      let tries = Counter()
      let server = try ScriptedServer { request in
        if request.target == "/a" { return ScriptedServer.redirect(303, to: "/b") }
        return tries.next() == 1
          ? [.head("HTTP/1.1 503 Busy", "Content-Length: 0")]
          : [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")]
      }
      defer { server.stop() }
      let run = await client.run(try request(.put, server.url("/a")))
      #expect(run.error?.status == 404)
      #expect(server.requests.map(\.method) == ["PUT", "GET", "PUT", "GET"])
      #expect(server.requests.map(\.target) == ["/a", "/b", "/a", "/b"])
    }

    @Test("A POST that led to a host which refuses is sent once", arguments: [302, 303, 307, 308])
    func refusedNextHost(status: Int) async throws {
      let refusing = try RefusingPort()
      defer { refusing.close() }
      let server = try ScriptedServer { _ in
        ScriptedServer.redirect(status, to: "http://127.0.0.1:\(refusing.number)/b")
      }
      defer { server.stop() }
      let run = await client.run(try request(.post, server.url("/a")))
      #expect(run.error?.code == .connectionRefused)
      #expect(server.requests.map(\.method) == ["POST"])
      #expect(server.requests.first?.body.fingerprint == body.fingerprint)
      #expect(run.log.retries.isEmpty)
    }

    @Test("A POST whose answer behind 303 is cut is sent once")
    func postCutBehindSeeOther() async throws {
      let server = try ScriptedServer { request in
        request.target == "/a"
          ? ScriptedServer.redirect(303, to: "/b")
          : [.head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("01234"), .close]
      }
      defer { server.stop() }
      let run = await client.run(try request(.post, server.url("/a")))
      #expect(run.error?.code == .connectionLost)
      #expect(server.requests.map(\.method) == ["POST", "GET"])
    }

    // MARK: Connections that are used again

    /// Methods, and whether their requests may be sent more than once.
    static let methods: [(HTTPRequest.Method, isRepeatable: Bool)] = [
      (.post, false), (.patch, false), (.put, true),
    ]

    @Test(
      "A POST over a connection that was used before is sent once, though the server dies",
      arguments: methods)
    func keptConnection(method: HTTPRequest.Method, isRepeatable: Bool) async throws {
      let tries = Counter()
      let server = try ScriptedServer { request in
        if request.target == "/warm" { return ScriptedServer.ok("warm") }
        return tries.next() == 1 ? [.close] : ScriptedServer.ok("done")
      }
      defer { server.stop() }
      let client = TransferClient()
      _ = await client.run(try .quick(server.url("/warm")))
      let run = await client.run(try request(method, server.url("/a")))
      let sent = Array(repeating: method.rawValue, count: isRepeatable ? 2 : 1)
      #expect(server.requests.map(\.method) == ["GET"] + sent)
      if isRepeatable {
        #expect(run.result?.body == Array("done".utf8))
      } else {
        #expect(run.error?.code == .connectionLost)
        #expect(run.log.retries.isEmpty)
      }
    }

    @Test("A POST behind a redirect is sent once, though the server dies", arguments: [307, 308])
    func keptConnectionBehindRedirect(status: Int) async throws {
      let server = try ScriptedServer { request in
        request.target == "/a" ? ScriptedServer.redirect(status, to: "/b") : [.close]
      }
      defer { server.stop() }
      let run = await client.run(try request(.post, server.url("/a")))
      #expect(run.error?.code == .connectionLost)
      #expect(server.requests.map(\.target) == ["/a", "/b"])
    }

    @Test("A POST that answers a challenge is sent once, though the server dies")
    func keptConnectionBehindChallenge() async throws {
      let server = try ScriptedServer { request in
        request["authorization"].isEmpty
          ? [.head("HTTP/1.1 401 U", "WWW-Authenticate: Basic realm=\"x\"", "Content-Length: 0")]
          : [.close]
      }
      defer { server.stop() }
      var challenged = try request(.post, server.url("/a", userInfo: "u:p@"))
      challenged.authenticatesOnChallenge = true
      let run = await client.run(challenged)
      #expect(run.error?.code == .connectionLost)
      #expect(server.requests.map { $0["authorization"].count } == [0, 1])
    }

    @Test("A POST that a 417 has refused is sent once more, though the server dies")
    func keptConnectionBehindExpectation() async throws {
      let large = ServedFile.randomBytes(3 << 20)
      let server = try ScriptedServer(bodyLimit: 0) { request in
        request["expect"] == []
          ? [.receiveBody, .close]
          : [.head("HTTP/1.1 417 Expectation Failed", "Content-Length: 0")]
      }
      defer { server.stop() }
      var expecting = try request(.post, server.url("/a"))
      expecting.body = .bytes(large)
      let run = await client.run(expecting)
      #expect(run.error != nil)
      #expect(server.requests.map { $0["expect"].count } == [1, 0])
    }

    @Test("A POST without a body is sent once, too")
    func keptConnectionWithoutBody() async throws {
      let server = try ScriptedServer { request in
        request.target == "/warm" ? ScriptedServer.ok("warm") : [.close]
      }
      defer { server.stop() }
      let client = TransferClient()
      _ = await client.run(try .quick(server.url("/warm")))
      var bare = try Request.quick(server.url("/a"))
      bare.method = .post
      let run = await client.run(bare)
      #expect(run.error?.code == .connectionLost)
      #expect(server.requests.map(\.target) == ["/warm", "/a"])
      #expect(server.connectionCount == 2)
    }
  }
}
