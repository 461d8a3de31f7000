import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// `Expect: 100-continue`, which libcurl sends before a large body.
  ///
  /// Some of the servers reject it.
  @Suite struct Expectations {
    private let client = HTTPClient()

    /// Above the size from which libcurl waits for permission.
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
          .text(String(repeating: "x", count: pageByteCount)), .close,
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
