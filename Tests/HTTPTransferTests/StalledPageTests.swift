import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Unneeded bodies of redirects, challenges and refusals, for which a request does not wait.
  @Suite struct StalledPages {
    private let client = TransferClient()

    /// The maximum delay that such a body may cause.
    ///
    /// The implementation waits 0.5 s for the body. Without that limit, the wait would last for the
    /// stall timeout of 600 s, which a trickling body does not even reach; the suite's limit of 3
    /// minutes ends the test before that. This limit is far above the 20 s for which hundreds of
    /// other tests may keep this one from running.
    static let limit = Duration.seconds(120)

    /// The form in which the rest of a body is missing.
    enum Stall: CaseIterable, Sendable {
      /// No byte of it arrives.
      case silent
      /// A part arrives, then no further bytes.
      case cut
      /// A byte now and then, so the exchange does not stall.
      case trickling

      var steps: [ScriptedServer.Step] {
        switch self {
        case .silent: [.hold]
        case .cut: [.text("0123"), .hold]
        case .trickling:
          // Fewer bytes than the page has, so it never ends.
          (0..<300).flatMap { _ in
            [ScriptedServer.Step.text("."), .pause(milliseconds: 1000)]
          }
        }
      }
    }

    @Test("A redirect is followed though its page stalls", arguments: Stall.allCases)
    func redirect(_ stall: Stall) async throws {
      let server = try ScriptedServer { request in
        request.target == "/b"
          ? ScriptedServer.ok("end")
          : [.head("HTTP/1.1 302 Found", "Location: /b", "Content-Length: 1000")] + stall.steps
      }
      defer { server.stop() }
      let began = ContinuousClock.now
      let run = await client.run(try .quick(server.url("/a")))
      #expect(run.result?.body == Array("end".utf8))
      #expect(run.log.retries.isEmpty)
      #expect(ContinuousClock.now - began < Self.limit)
    }

    @Test("A challenge is answered though its page stalls", arguments: Stall.allCases)
    func challenge(_ stall: Stall) async throws {
      let server = try ScriptedServer { request in
        request["authorization"] != []
          ? ScriptedServer.ok("end")
          : [
            .head(
              "HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"",
              "Content-Length: 1000")
          ] + stall.steps
      }
      defer { server.stop() }
      for method in [HTTPRequest.Method.get, .put] {
        var request = try Request.quick(server.url("/", userInfo: "user:pw@"))
        request.method = method
        request.authenticatesOnChallenge = true
        if method == .put { request.body = .bytes([1, 2, 3]) }
        let began = ContinuousClock.now
        let run = await client.run(request)
        #expect(run.result?.body == Array("end".utf8))
        #expect(run.log.retries.isEmpty)
        #expect(ContinuousClock.now - began < Self.limit)
      }
    }

    @Test("A refusal is told though its page stalls", arguments: Stall.allCases)
    func refusal(_ stall: Stall) async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 404 Not Found", "Content-Length: 1000")] + stall.steps
      }
      defer { server.stop() }
      let began = ContinuousClock.now
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.error?.status == 404)
      #expect(server.requests.count == 1)
      #expect(ContinuousClock.now - began < Self.limit)
    }

    @Test("A body behind a stalled redirect is not cut when the redirect's time is up")
    func slowTarget() async throws {
      let server = try ScriptedServer { request in
        request.target == "/b"
          ? [
            .head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("01234"),
            .pause(milliseconds: 1500), .text("56789"),
          ] : [.head("HTTP/1.1 302 Found", "Location: /b", "Content-Length: 0")]
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/a")))
      #expect(run.result?.body == Array("0123456789".utf8))
      #expect(server.requests.map(\.target) == ["/a", "/b"])
      #expect(run.log.retries.isEmpty)
    }
  }
}
