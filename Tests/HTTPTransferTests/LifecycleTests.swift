import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import SeededRandom
import Synchronization
import Testing

extension TransferTests {
  /// The ends of transfers: complete, stopped, cancelled, failed; each exactly once.
  @Suite struct Lifecycle {
    private let client = TransferClient()
    private static let mebibyte = String(repeating: "x", count: 1 << 20)

    private static func longResponse(_: ReceivedRequest) -> [ScriptedServer.Step] {
      [.head("HTTP/1.1 200 OK", "Content-Length: 67108864")]
        + Array(repeating: .text(mebibyte), count: 64)
    }

    /// Whether a further transfer to `server` needs its own connection.
    private func needsConnection(_ server: ScriptedServer) async throws -> Bool {
      try await client.record(server.url("/next")).metrics.newConnections > 0
    }

    // MARK: Dispositions

    @Test("A transfer that is stopped at its head brings no body and costs its connection")
    func stopAtHead() async throws {
      let server = try ScriptedServer { request in
        request.target == "/next" ? ScriptedServer.ok("n") : Self.longResponse(request)
      }
      defer { server.stop() }
      let receiver = RecordingReceiver(onHead: { _ in .stop })
      client.exchanges.start(
        ExchangeRequest(url: try RemoteURL(server.url("/"))), receiver: receiver)
      let record = await receiver.finished()
      #expect(record.outcome == "stopped")
      #expect(record.body.isEmpty)
      #expect(try await needsConnection(server))
    }

    @Test("A transfer that is stopped in its body brings no further piece")
    func stopInBody() async throws {
      let server = try ScriptedServer(answer: Self.longResponse)
      defer { server.stop() }
      let receiver = RecordingReceiver(onBody: { $0 >= 100_000 ? .stop : .proceed })
      client.exchanges.start(
        ExchangeRequest(url: try RemoteURL(server.url("/"))), receiver: receiver)
      let record = await receiver.finished()
      await client.settle()
      #expect(record.outcome == "stopped")
      #expect(record.body.count >= 100_000)
      #expect(record.body.count < 100_000 + record.maximumPiece)
      #expect(record.maximumPiece <= 16 << 10)
      #expect(receiver.record.body.count == record.body.count)
    }

    @Test("A short body that nobody wants is read away, and the connection kept")
    func discardShort() async throws {
      let server = try ScriptedServer { request in
        request.target == "/next"
          ? ScriptedServer.ok("n") : ScriptedServer.ok(String(repeating: "x", count: 30_000))
      }
      defer { server.stop() }
      let receiver = RecordingReceiver(onHead: { _ in .discard })
      client.exchanges.start(
        ExchangeRequest(url: try RemoteURL(server.url("/"))), receiver: receiver)
      let record = await receiver.finished()
      #expect(record.outcome == "finished")
      #expect(record.body.isEmpty)
      #expect(try await needsConnection(server) == false)
    }

    @Test("A long body that nobody wants is cut off")
    func discardLong() async throws {
      let server = try ScriptedServer { request in
        request.target == "/next" ? ScriptedServer.ok("n") : Self.longResponse(request)
      }
      defer { server.stop() }
      let receiver = RecordingReceiver(onHead: { _ in .discard })
      client.exchanges.start(
        ExchangeRequest(url: try RemoteURL(server.url("/"))), receiver: receiver)
      let record = await receiver.finished()
      #expect(record.outcome == "finished")
      #expect(record.body.isEmpty)
      #expect(try await needsConnection(server))
    }

    // MARK: Cancellation

    @Test("A transfer is cancelled while it waits for its head, and in its body")
    func cancel() async throws {
      let server = try ScriptedServer { request in
        request.target == "/silent"
          ? [.hold]
          : [.head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("half"), .hold]
      }
      defer { server.stop() }
      for path in ["/silent", "/half"] {
        let arrived = AsyncStream<Void>.makeStream()
        let receiver = RecordingReceiver(onBody: { _ in
          arrived.continuation.yield()
          return .proceed
        })
        let id = client.exchanges.start(
          ExchangeRequest(url: try RemoteURL(server.url(path))), receiver: receiver)
        if path == "/silent" {
          try await server.waitForRequests(1)
        } else {
          for await _ in arrived.stream { break }
        }
        #expect(client.exchanges.activeExchangeCount == 1)
        client.exchanges.cancel(id)
        client.exchanges.cancel(id)
        let record = await receiver.finished()
        #expect(record.outcome == "cancelled")
        client.exchanges.cancel(id)
        await client.settle()
        #expect(receiver.record.completions.count == 1)
        #expect(receiver.record.misplacedCallCount == 0)
        #expect(client.exchanges.activeExchangeCount == 0)
      }
    }

    @Test("A transfer is cancelled before it has begun")
    func cancelAtOnce() async throws {
      let server = try ScriptedServer { _ in [.hold] }
      defer { server.stop() }
      let receiver = RecordingReceiver()
      let id = client.exchanges.start(
        ExchangeRequest(url: try RemoteURL(server.url("/"))), receiver: receiver)
      client.exchanges.cancel(id)
      #expect(await receiver.finished().outcome == "cancelled")
    }

    @Test("A receiver may cancel its own transfer")
    func cancelFromReceiver() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("half"), .hold]
      }
      defer { server.stop() }
      let started = Mutex<ExchangeID?>(nil)
      let client = client
      let receiver = RecordingReceiver(onBody: { _ in
        if let id = started.withLock({ $0 }) { client.exchanges.cancel(id) }
        return .proceed
      })
      started.withLock { id in
        // The network thread cannot reach the body before the lock is free.
        id = (try? RemoteURL(server.url("/"))).map {
          client.exchanges.start(ExchangeRequest(url: $0), receiver: receiver)
        }
      }
      let record = await receiver.finished()
      #expect(record.outcome == "cancelled")
      #expect(record.transfers == [started.withLock { $0 }])
      #expect(record.text == "half")
    }

    @Test("All transfers are cancelled together, and later ones run")
    func cancelAll() async throws {
      let server = try ScriptedServer { request in
        request.target == "/next" ? ScriptedServer.ok("n") : [.hold]
      }
      defer { server.stop() }
      let receivers = (0..<20).map { _ in RecordingReceiver() }
      for receiver in receivers {
        client.exchanges.start(
          ExchangeRequest(url: try RemoteURL(server.url("/"))), receiver: receiver)
      }
      try await server.waitForRequests(20)
      client.exchanges.cancelAll()
      for receiver in receivers { #expect(await receiver.finished().outcome == "cancelled") }
      // The last exchange leaves the count after its receiver has got the end.
      try await eventually { client.exchanges.activeExchangeCount == 0 }
      #expect(try await client.record(server.url("/next")).text == "n")
    }

    // MARK: Failures

    @Test("A port on which nobody listens refuses")
    func refused() async throws {
      let refusing = try RefusingPort()
      defer { refusing.close() }
      let record = try await client.record("http://127.0.0.1:\(refusing.number)/")
      let error = try #require(record.error)
      #expect(error.code == .connectionRefused)
      #expect(error.isTransient && error.isUnreachable)
      #expect(record.heads.isEmpty)
    }

    @Test("A name without an address does not resolve")
    func unresolved() async throws {
      let record = try await client.record("http://nowhere.invalid/a")
      let error = try #require(record.error)
      #expect(error.code == .unresolvedHost)
      #expect(error.isUnreachable)
    }

    @Test(
      "A body that ends before its end is cut short, and what came is kept",
      arguments: ["Content-Length: 10", "Transfer-Encoding: chunked"])
    func truncated(framing: String) async throws {
      let server = try ScriptedServer { _ in
        let isChunked = framing.hasSuffix("chunked")
        return [
          .head("HTTP/1.1 200 OK", framing), .text(isChunked ? "5\r\nhello\r\n" : "hello"), .close,
        ]
      }
      defer { server.stop() }
      let record = try await client.record(server.url("/"))
      #expect(record.error?.code == .truncated)
      #expect(record.error?.isTransient == true)
      #expect(record.text == "hello")
    }

    @Test("A connection that is reset in a body, or ends before a head, is lost")
    func lost() async throws {
      let server = try ScriptedServer { request in
        switch request.target {
        case "/body":
          [
            .head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("hello"),
            .pause(milliseconds: 50), .reset,
          ]
        case "/head": [.text("HTTP/1.1 200 OK\r\nContent-Le"), .pause(milliseconds: 50), .reset]
        case "/reset": [.reset]
        default: [.close]
        }
      }
      defer { server.stop() }
      for path in ["/body", "/head", "/reset", "/nothing"] {
        let record = try await client.record(server.url(path))
        #expect(record.error?.code == .connectionLost, "\(path): \(record.outcome)")
        #expect(record.error?.isUnreachable == false)
        #expect(record.text == (path == "/body" ? "hello" : ""))
      }
    }

    @Test("An error names no credentials")
    func errorsKeepSecrets() async throws {
      let refusing = try RefusingPort()
      defer { refusing.close() }
      let record = try await client.record(
        "http://user:CANARY@127.0.0.1:\(refusing.number)/a?key=CANARY")
      let error = try #require(record.error)
      #expect(!"\(error) \(error.url)".contains("CANARY"))
    }

    // MARK: Many

    @Test("Two hundred transfers at a time end once each, with their own bytes")
    func parallel() async throws {
      let server = try ScriptedServer { ScriptedServer.ok("body of \($0.target)") }
      defer { server.stop() }
      let client = TransferClient(configuration: .init(maximumConnectionsPerHost: 16))
      let receivers = (0..<200).map { _ in RecordingReceiver() }
      for (index, receiver) in receivers.enumerated() {
        client.exchanges.start(
          ExchangeRequest(url: try RemoteURL(server.url("/\(index)"))), receiver: receiver)
      }
      for (index, receiver) in receivers.enumerated() {
        let record = await receiver.finished()
        #expect(record.outcome == "finished")
        #expect(record.text == "body of /\(index)")
      }
      await client.settle()
      #expect(receivers.allSatisfy { $0.record.completions.count == 1 })
      #expect(receivers.allSatisfy { $0.record.misplacedCallCount == 0 })
      #expect(client.exchanges.activeExchangeCount == 0)
      #expect(server.requests.count == 200)
      #expect(server.connectionCount <= 16)
    }

    @Test("Transfers that end in every way at random times end once each", arguments: 1...3)
    func storm(seed: UInt64) async throws {
      let server = try ScriptedServer { request in
        switch request.target {
        case "/whole": ScriptedServer.ok("whole")
        case "/cut": [.head("HTTP/1.1 200 OK", "Content-Length: 10"), .text("cut"), .close]
        case "/reset": [.reset]
        case "/again": ScriptedServer.redirect(to: "/again")
        case "/junk": [.text("junk\r\n\r\n"), .close]
        default: [.hold]
        }
      }
      defer { server.stop() }
      var random = SeededGenerator(seed: seed)
      var transfers: [(id: ExchangeID, path: String, receiver: RecordingReceiver)] = []
      for _ in 0..<200 {
        let path =
          ["/whole", "/cut", "/reset", "/again", "/junk", "/hold"].randomElement(using: &random)
          ?? "/hold"
        let receiver = RecordingReceiver()
        let id = client.exchanges.start(
          ExchangeRequest(url: try RemoteURL(server.url(path))), receiver: receiver)
        transfers.append((id, path, receiver))
        if Bool.random(using: &random), let victim = transfers.randomElement(using: &random) {
          client.exchanges.cancel(victim.id)
        }
        if random.next() % 8 == 0 { try await Task.sleep(for: .milliseconds(1)) }
      }
      for transfer in transfers where transfer.path == "/hold" {
        client.exchanges.cancel(transfer.id)
      }
      let expected: [String: Set<String>] = [
        "/whole": ["finished"], "/cut": ["response cut short"], "/reset": ["connection lost"],
        "/again": ["too many redirects"], "/junk": ["malformed response"], "/hold": [],
      ]
      for transfer in transfers {
        let outcome = await transfer.receiver.finished().outcome
        let allowed = expected[transfer.path, default: []].union(["cancelled"])
        #expect(allowed.contains(outcome), "\(transfer.path): \(outcome)")
      }
      await client.settle()
      #expect(transfers.allSatisfy { $0.receiver.record.completions.count == 1 })
      #expect(transfers.allSatisfy { $0.receiver.record.misplacedCallCount == 0 })
      #expect(client.exchanges.activeExchangeCount == 0)
    }
  }
}
