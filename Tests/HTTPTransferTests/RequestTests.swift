import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The request that a server receives.
  @Suite struct Requests {
    private let client = TransferClient(configuration: .init(userAgent: "unit-test/1"))

    /// Executes a request and returns it as the server received it.
    private func received(
      path: String = "/a", userInfo: String = "",
      _ change: (inout ExchangeRequest) -> Void = { _ in }
    ) async throws -> ReceivedRequest {
      let server = try ScriptedServer { _ in ScriptedServer.ok("") }
      defer { server.stop() }
      var request = ExchangeRequest(url: try RemoteURL(server.url(path, userInfo: userInfo)))
      change(&request)
      let record = await client.record(request)
      #expect(record.outcome == "finished")
      #expect(server.requests.count == 1)
      return try #require(server.requests.first)
    }

    @Test("A plain request asks for the identity of the whole, with the client's user agent")
    func plain() async throws {
      let request = try await received(path: "/a/b%20c?d=e&f")
      #expect(request.method == "GET")
      #expect(request.target == "/a/b%20c?d=e&f")
      #expect(request["accept-encoding"] == ["identity"])
      #expect(request["user-agent"] == ["unit-test/1"])
      #expect(request["range"].isEmpty)
      #expect(request["authorization"].isEmpty)
      #expect(request["cookie"].isEmpty)
    }

    @Test(
      "A range is asked for to the byte",
      arguments: [
        (0..<1, "bytes=0-0"), (4096..<8192, "bytes=4096-8191"),
        (5_000_000_000..<6_000_000_000, "bytes=5000000000-5999999999"),
      ] as [(ByteRange, String)])
    func range(range: ByteRange, field: String) async throws {
      #expect(try await received { $0.range = range }["range"] == [field])
    }

    @Test("The request's own fields go before the client's")
    func fields() async throws {
      let name = try #require(HTTPField.Name("X-Own"))
      let request = try await received {
        $0.fields = [
          .userAgent: "mine/2", .acceptEncoding: "gzip", .ifNoneMatch: "\"a\"", name: "",
        ]
      }
      #expect(request["user-agent"] == ["mine/2"])
      #expect(request["accept-encoding"] == ["gzip"])
      #expect(request["if-none-match"] == ["\"a\""])
      #expect(request["x-own"] == [""])
    }

    @Test(
      "Userinfo is sent decoded as basic authentication, and not in the request line",
      arguments: [
        ("user:pw@", "dXNlcjpwdw=="), ("user@", "dXNlcjo="), ("u%40h:p%3Aw%2F@", "dUBoOnA6dy8="),
        ("user:a:b@", "dXNlcjphOmI="),
      ])
    func userInfo(userInfo: String, encoded: String) async throws {
      let request = try await received(userInfo: userInfo)
      #expect(request["authorization"] == ["Basic \(encoded)"])
      #expect(request.target == "/a")
      #expect(request["host"].first?.hasPrefix("127.0.0.1:") == true)
    }

    @Test("HEAD is sent as such and has no body")
    func head() async throws {
      let server = try ScriptedServer { _ in [.head("HTTP/1.1 200 OK", "Content-Length: 1000")] }
      defer { server.stop() }
      let record = await client.record(
        ExchangeRequest(method: .head, url: try RemoteURL(server.url("/"))))
      #expect(server.requests.map(\.method) == ["HEAD"])
      #expect(record.outcome == "finished")
      #expect(record.heads.first?.headerFields[.contentLength] == "1000")
      #expect(record.body.isEmpty)
    }

    @Test("Statuses of failure are responses, with their bodies", arguments: [404, 416, 503])
    func failures(status: Int) async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 \(status) No", "Content-Length: 3"), .text("no!")]
      }
      defer { server.stop() }
      let record = try await client.record(server.url("/"))
      #expect(record.outcome == "finished")
      #expect(record.heads.map(\.status.code) == [status])
      #expect(record.text == "no!")
    }
  }
}
