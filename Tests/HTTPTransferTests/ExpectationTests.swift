import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// `Expect: 100-continue`, which libcurl sends before a large body, and servers that refuse it.
  @Suite struct Expectations {
    private let client = TransferClient()

    /// Larger than the size from which libcurl sends the expectation.
    private static let largeBody = ServedFile.randomBytes(3 << 20)

    private func request(
      _ server: ScriptedServer, _ body: [UInt8] = largeBody, _ method: HTTPRequest.Method = .put
    ) throws -> Request {
      var request = try Request.quick(server.url("/up"))
      request.method = method
      request.body = .bytes(body)
      return request
    }

    @Test(
      "After a 417 the body is sent without asking first",
      arguments: [HTTPRequest.Method.put, .post])
    func sentWithout(method: HTTPRequest.Method) async throws {
      let server = try ScriptedServer(bodyLimit: 0) { request in
        request["expect"] == []
          ? [.receiveBody, .head("HTTP/1.1 201 Created", "Content-Length: 0")]
          : [.head("HTTP/1.1 417 Expectation Failed", "Content-Length: 0")]
      }
      defer { server.stop() }
      let run = await client.run(try request(server, Self.largeBody, method))
      #expect(run.result?.response.status.code == 201)
      #expect(run.log.responses.map(\.status.code) == [201])
      #expect(server.requests.map { $0["expect"] } == [["100-continue"], []])
      #expect(server.requests.last?.body.fingerprint == Self.largeBody.fingerprint)
      #expect(run.log.sent == 3 << 20)
      #expect(run.log.retries.isEmpty)
    }

    @Test("A page that comes with the 417 is no answer", arguments: [10, 60_000, 200_000])
    func page(byteCount: Int) async throws {
      let server = try ScriptedServer(bodyLimit: 0) { request in
        request["expect"] == []
          ? [.receiveBody] + ScriptedServer.ok("taken")
          : [
            .head("HTTP/1.1 417 Expectation Failed", "Content-Length: \(byteCount)"),
            .text(String(repeating: "x", count: byteCount)),
          ]
      }
      defer { server.stop() }
      let run = await client.run(try request(server))
      #expect(run.result?.body == Array("taken".utf8))
      #expect(server.requests.last?.body.fingerprint == Self.largeBody.fingerprint)
      #expect(run.log.sent == 3 << 20)
    }

    @Test("A server that answers 417 for ever is told of as that", arguments: [0, 10, 200_000])
    func forever(pageByteCount: Int) async throws {
      let server = try ScriptedServer(bodyLimit: 0) { _ in
        [
          .head("HTTP/1.1 417 Expectation Failed", "Content-Length: \(pageByteCount)"),
          .text(String(repeating: "x", count: pageByteCount)), .finish,
        ]
      }
      defer { server.stop() }
      let run = await client.run(try request(server))
      #expect(run.error?.code == .status)
      #expect(run.error?.status == 417)
      #expect(server.requests.count <= 2)
    }

    @Test(
      "A 417 to a body that was sent whole is the answer", arguments: [0, 10, 200_000])
    func afterBody(pageByteCount: Int) async throws {
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 417 Expectation Failed", "Content-Length: \(pageByteCount)"),
          .text(String(repeating: "x", count: pageByteCount)), .close,
        ]
      }
      defer { server.stop() }
      let run = await client.run(try request(server, [1, 2, 3]))
      #expect(run.error?.code == .status)
      #expect(run.error?.status == 417)
      #expect(server.requests.count <= 2)
    }

    // MARK: More than one hop

    /// The 417 of a server, with a page that may stall.
    private static func refusal(stalls: Bool = false) -> [ScriptedServer.Step] {
      let head = ScriptedServer.Step.head(
        "HTTP/1.1 417 Expectation Failed", "Content-Length: \(stalls ? 10 : 0)")
      return stalls ? [head, .text("0123"), .hold] : [head]
    }

    /// A server that accepts a body only without an expectation and then leads to `/b`.
    ///
    /// It does so by a redirect, or by a challenge to the same URL; there it answers with `second`.
    private func leading(
      by status: Int, second: @escaping @Sendable (ReceivedRequest) -> [ScriptedServer.Step]
    ) throws -> ScriptedServer {
      try ScriptedServer(bodyLimit: 0) { request in
        if request.target == "/b" || !request["authorization"].isEmpty { return second(request) }
        if !request["expect"].isEmpty { return Self.refusal() }
        return [.receiveBody]
          + (status == 401
            ? [.head("HTTP/1.1 401 U", "WWW-Authenticate: Basic realm=\"x\"", "Content-Length: 0")]
            : ScriptedServer.redirect(status, to: "/b"))
      }
    }

    private func leadingRequest(
      _ server: ScriptedServer, _ method: HTTPRequest.Method
    ) throws -> Request {
      var request = try Request.quick(server.url("/up", userInfo: "u:p@"))
      request.method = method
      request.body = .bytes(Self.largeBody)
      request.authenticatesOnChallenge = true
      return request
    }

    static let steps = [(HTTPRequest.Method.put, 307), (.post, 308), (.put, 401), (.post, 401)]

    @Test("The next hop may refuse the expectation, too", arguments: steps)
    func refusedByEachHop(method: HTTPRequest.Method, status: Int) async throws {
      let server = try leading(by: status) { request in
        request["expect"].isEmpty
          ? [.receiveBody, .head("HTTP/1.1 201 Created", "Content-Length: 0")] : Self.refusal()
      }
      defer { server.stop() }
      let run = await client.run(try leadingRequest(server, method))
      #expect(run.result?.response.status.code == 201, "\(String(describing: run.error))")
      #expect(server.requests.map { $0["expect"].count } == [1, 0, 1, 0])
      #expect(server.requests.allSatisfy { $0.method == method.rawValue })
      #expect(server.requests.last?.body.fingerprint == Self.largeBody.fingerprint)
    }

    @Test("A 417 of one hop is not the answer of the next one, which closes", arguments: steps)
    func closedBehind(method: HTTPRequest.Method, status: Int) async throws {
      let server = try leading(by: status) { _ in [.close] }
      defer { server.stop() }
      let run = await client.run(try leadingRequest(server, method))
      #expect(run.error?.code == .connectionLost, "\(String(describing: run.error))")
      // Only a PUT may be repeated.
      if method == .post { #expect(server.requests.map { $0["expect"].count } == [1, 0, 1]) }
    }

    @Test(
      "A body that is sent again and not answered is a lost connection, and a POST is not repeated")
    func closedAfterResending() async throws {
      let server = try leading(by: 307) { request in
        request["expect"].isEmpty ? [.receiveBody, .close] : Self.refusal()
      }
      defer { server.stop() }
      let run = await client.run(try leadingRequest(server, .post))
      #expect(run.error?.code == .connectionLost, "\(String(describing: run.error))")
      #expect(server.requests.map { $0["expect"].count } == [1, 0, 1, 0])
      #expect(run.log.retries.isEmpty)
    }

    @Test("A 417 of the next hop whose page stalls is not waited for", arguments: steps)
    func stalledBehind(method: HTTPRequest.Method, status: Int) async throws {
      let server = try leading(by: status) { _ in Self.refusal(stalls: true) }
      defer { server.stop() }
      let began = ContinuousClock.now
      let run = await client.run(try leadingRequest(server, method))
      #expect(run.error?.status == 417)
      #expect(ContinuousClock.now - began < StalledPages.limit)
    }

    @Test("A 417 whose page stalls is not waited for", arguments: [true, false])
    func stalledPage(readsBody: Bool) async throws {
      let refusal: [ScriptedServer.Step] = [
        .head("HTTP/1.1 417 Expectation Failed", "Content-Length: 10"), .text("0123"), .hold,
      ]
      let server = try ScriptedServer(bodyLimit: readsBody ? .max : 0) { _ in refusal }
      defer { server.stop() }
      let began = ContinuousClock.now
      let run = await client.run(try request(server))
      #expect(run.error?.status == 417)
      #expect(ContinuousClock.now - began < StalledPages.limit)
    }
  }
}
