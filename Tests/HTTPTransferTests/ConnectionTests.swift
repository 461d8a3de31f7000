import Foundation
import HTTPTransfer
import HTTPTransferCore
import Synchronization
import Testing

extension TransferTests {
  /// Connections, timers and the network thread.
  @Suite struct Connections {
    private let client = TransferClient()

    @Test("Requests in a row use one connection")
    func keepAlive() async throws {
      let server = try ScriptedServer { ScriptedServer.ok($0.target) }
      defer { server.stop() }
      for index in 0..<10 {
        let record = try await client.record(server.url("/\(index)"))
        #expect(record.text == "/\(index)")
        #expect(record.metrics.newConnections == (index == 0 ? 1 : 0))
        #expect(record.metrics.requests == 1)
        #expect(record.metrics.timeToFirstByte > .zero)
      }
      #expect(server.connectionCount == 1)
    }

    @Test("How many exchanges use an origin is known, and for how long it has sent nothing to them")
    func originUse() async throws {
      let gate = Gate()
      let server = try ScriptedServer { [.wait(for: gate)] + ScriptedServer.ok($0.target) }
      defer {
        gate.open()
        server.stop()
      }
      let client = client
      let origin = "http://127.0.0.1:\(server.port)"
      #expect(client.exchanges.use(of: origin) == nil)
      let exchanges = ["/a", "/b"].map { path in
        Task { try await client.record(server.url(path)) }
      }
      try await eventually { client.exchanges.use(of: origin)?.exchangeCount == 2 }
      try await eventually {
        client.exchanges.use(of: origin).map { $0.silence(now: .now) > .milliseconds(100) } == true
      }
      gate.open()
      for exchange in exchanges { _ = try await exchange.value }
      try await eventually { client.exchanges.use(of: origin) == nil }
    }

    @Test("A later download of a host begins with the connections that have paid for earlier ones")
    func learnedConnections() async throws {
      var file = ServedFile(byteCount: 16 << 20)
      file.isPaced = true
      let paced = file
      let gates = ["/first": Gate(), "/second": Gate(), "/exact": Gate()]
      let server = try ScriptedServer { request in
        var steps = paced.answer(request)
        if let gate = gates[request.target] { steps.insert(.wait(for: gate), at: 1) }
        return steps
      }
      defer {
        for gate in gates.values { gate.open() }
        server.stop()
      }
      func requestCount(_ path: String) -> Int {
        server.requests.count { $0.target == path }
      }
      var first = try Request.quick(server.url("/first"))
      first.connections = .adaptive(upTo: 4)
      let firstRun = client.transfer(first)
      firstRun.start()
      try await eventually { firstRun.progress.totalByteCount != nil }
      try await Task.sleep(for: .milliseconds(100))
      // The host is unknown, so no other request runs until the first one receives bytes.
      #expect(requestCount("/first") == 1)
      gates["/first"]?.open()
      #expect(try await firstRun.result().body == file.bytes)
      // On a machine that stalls, a single download may be inconclusive.
      var other = try Request.quick(server.url("/other"))
      other.connections = first.connections
      while learned(at: server) < 2 { _ = try await client.transfer(other).result() }
      // No byte of the body has arrived yet.
      var second = try Request.quick(server.url("/second"))
      second.connections = first.connections
      async let secondRun = client.run(second)
      try await eventually { requestCount("/second") > 1 }
      #expect(gates["/second"]?.isOpen == false)
      gates["/second"]?.open()
      #expect(await secondRun.result?.body == file.bytes)
      var exact = try Request.quick(server.url("/exact"))
      exact.connections = .exactly(1)
      gates["/exact"]?.open()
      _ = try await client.transfer(exact).result()
      #expect(requestCount("/exact") == 1)
    }

    private func learned(at server: ScriptedServer) -> Int {
      client.exchanges.learnedConnections(at: "http://127.0.0.1:\(server.port)") ?? 1
    }

    @Test("A kept connection that the server has closed costs a new one, not the transfer")
    func closedKeepAlive() async throws {
      let server = try ScriptedServer { ScriptedServer.ok($0.target) + [.close] }
      defer { server.stop() }
      for index in 0..<5 {
        let record = try await client.record(server.url("/\(index)"))
        #expect(record.outcome == "finished")
        #expect(record.text == "/\(index)")
      }
      #expect(server.connectionCount == 5)
    }

    @Test("Connections to a host stay within the limit; what comes later waits")
    func connectionLimit() async throws {
      let server = try ScriptedServer { _ in [.pause(milliseconds: 20)] + ScriptedServer.ok("a") }
      defer { server.stop() }
      let client = TransferClient(configuration: .init(maximumConnectionsPerHost: 3))
      let receivers = (0..<12).map { _ in RecordingReceiver() }
      for receiver in receivers {
        client.exchanges.start(
          ExchangeRequest(url: try RemoteURL(server.url("/"))), receiver: receiver)
      }
      for receiver in receivers { #expect(await receiver.finished().outcome == "finished") }
      #expect(server.maximumOpenCount == 3)
    }

    @Test("Bytes on a kept connection are no answer, also after the network thread has ended")
    func strayBytesWhileIdle() async throws {
      let sendsStray = Gate()
      let server = try ScriptedServer { request in
        guard request.connection == 1 else { return ScriptedServer.ok("right") }
        return ScriptedServer.ok("first") + [
          .wait(for: sendsStray), .head("HTTP/1.1 200 OK", "Content-Length: 5"), .text("wrong"),
        ]
      }
      defer { server.stop() }
      #expect(try await client.record(server.url("/1")).text == "first")
      // The thread stays for 10 s, and checks once a second.
      try await Task.sleep(for: .seconds(12))
      sendsStray.open()
      try await Task.sleep(for: .milliseconds(200))
      #expect(try await client.record(server.url("/2")).text == "right")
    }

    @Test("Work that is posted runs in order")
    func performOrder() async {
      let order = Mutex<[Int]>([])
      for index in 0..<100 {
        client.exchanges.perform { order.withLock { $0.append(index) } }
      }
      await client.settle()
      #expect(order.withLock { $0 } == Array(0..<100))
    }

    @Test("Timers run in the order in which they are due, and not before")
    func timers() async {
      let start = ContinuousClock.now
      let runs = Mutex<[(delay: Int, after: Duration)]>([])
      let delays = [60, 20, 100, 40, 80, 0, 20]
      await withCheckedContinuation { continuation in
        let remaining = Mutex(delays.count)
        for delay in delays {
          client.exchanges.schedule(after: .milliseconds(delay)) {
            runs.withLock { $0.append((delay, ContinuousClock.now - start)) }
            let isLast = remaining.withLock { remaining in
              remaining -= 1
              return remaining == 0
            }
            if isLast { continuation.resume() }
          }
        }
      }
      let result = runs.withLock { $0 }
      #expect(result.map(\.delay) == delays.sorted())
      #expect(result.allSatisfy { $0.after >= .milliseconds($0.delay) })
    }

    @Test("The network thread ends when nothing is left to do, and another one takes over")
    func threadEnds() async throws {
      let server = try ScriptedServer { ScriptedServer.ok($0.target) }
      defer { server.stop() }
      #expect(try await client.record(server.url("/first")).text == "/first")
      let (thread, name) = await networkThread()
      #expect(name == "httpfs-net\n")
      let deadline = ContinuousClock.now + .seconds(40)
      while FileManager.default.fileExists(atPath: thread), ContinuousClock.now < deadline {
        try await Task.sleep(for: .milliseconds(100))
      }
      #expect(!FileManager.default.fileExists(atPath: thread))
      // The connection has outlived the thread.
      let record = try await client.record(server.url("/second"))
      #expect(record.text == "/second")
      #expect(record.metrics.newConnections == 0)
    }

    /// The directory of the client's thread in the kernel's process table, and the thread's name.
    ///
    /// The thread itself reads its name: it may end at any later moment.
    private func networkThread() async -> (directory: String, name: String?) {
      await withCheckedContinuation { continuation in
        client.exchanges.perform {
          let link = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
          let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
          continuation.resume(returning: ("/proc/" + (link ?? ""), name))
        }
      }
    }
  }
}
