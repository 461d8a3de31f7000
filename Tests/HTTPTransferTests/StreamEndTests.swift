import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Streams that end before the body does, and the remains of ended streams.
  @Suite struct StreamEnds {
    private let client = TransferClient()

    /// Ten bytes of a hundred, then silence.
    private static func heldServer() throws -> ScriptedServer {
      try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Content-Length: 100"), .text("0123456789"), .hold]
      }
    }

    private func stream(_ server: ScriptedServer) throws -> Transfer {
      client.transfer(try .quick(server.url("/"), to: .stream()))
    }

    // MARK: Cancelling

    @Test(
      "A stream that is cancelled does not end as a whole one does", arguments: [true, false])
    func cancelled(clears: Bool) async throws {
      let server = try Self.heldServer()
      defer { server.stop() }
      let transfer = try stream(server)
      var chunks = transfer.body.makeAsyncIterator()
      #expect(try await chunks.next() == Array("0123456789".utf8)[...])
      if clears { transfer.cancelAndClear() } else { transfer.cancel() }
      do throws(TransferError) {
        let chunk = try await chunks.next()
        Issue.record("the stream went on with \(String(describing: chunk))")
      } catch {
        #expect(error.code == .cancelled)
      }
      // The stream ends a moment before the transfer does.
      try await eventually { transfer.state == .cancelled }
      try await eventually { client.activeTransferCount == 0 }
    }

    @Test("A stream that is cancelled before anybody takes from it throws, too")
    func cancelledBefore() async throws {
      let server = try Self.heldServer()
      defer { server.stop() }
      let transfer = try stream(server)
      let body = transfer.body
      try await server.waitForRequests(1)
      transfer.cancelAndClear()
      try await eventually { transfer.state == .cancelled }
      var bytes: [UInt8] = []
      let error = await #expect(throws: TransferError.self) {
        for try await chunk in body { bytes += chunk }
      }
      #expect(error?.code == .cancelled)
      #expect(bytes.count < 100)
    }

    // MARK: Breaking off

    @Test("Who breaks out of a body ends the transfer")
    func breakOut() async throws {
      let server = try Self.heldServer()
      defer { server.stop() }
      let transfer = try stream(server)
      for try await chunk in transfer.body {
        #expect(chunk == Array("0123456789".utf8)[...])
        #expect(client.activeTransferCount == 1)
        break
      }
      try await eventually { client.activeTransferCount == 0 }
      #expect(await TransferRun(transfer).error?.code == .cancelled)
      try await eventually { server.openCount == 0 }
    }

    @Test("Who breaks out of a body that nobody takes from any more frees a full buffer")
    func breakOutOfFull() async throws {
      let file = ServedFile(byteCount: 8 << 20)
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      let transfer = client.transfer(
        try .quick(server.url("/"), to: .stream(bufferByteCount: 64 << 10)))
      for try await _ in transfer.body {
        // By now, the network waits for the consumer.
        try await Task.sleep(for: .milliseconds(50))
        break
      }
      try await eventually { transfer.state == .cancelled }
      try await eventually { client.activeTransferCount == 0 }
    }

    @Test("Who lets go of a body after its last chunk has not cancelled it")
    func letGoAfterEnd() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("whole") }
      defer { server.stop() }
      for _ in 0..<50 {
        let transfer = try stream(server)
        var bytes: [UInt8] = []
        for try await chunk in transfer.body { bytes += chunk }
        #expect(bytes == Array("whole".utf8))
        #expect(try await transfer.result().byteCount == 5)
      }
    }

    @Test("A sequence that its iterator outlives is not cancelled")
    func iteratorAlone() async throws {
      let gate = Gate()
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Content-Length: 5"), .text("wh"), .wait(for: gate),
          .text("ole"),
        ]
      }
      defer { server.stop() }
      defer { gate.open() }
      let transfer = try stream(server)
      var chunks = transfer.body.makeAsyncIterator()
      var bytes: [UInt8] = []
      while let chunk = try await chunks.next() {
        bytes += chunk
        gate.open()
      }
      #expect(bytes == Array("whole".utf8))
    }

    // MARK: What is left

    /// Reads a stream to its end and releases everything.
    private func takeAll(_ server: ScriptedServer) async throws -> WeakClient {
      let client = TransferClient()
      let transfer = client.transfer(try .quick(server.url("/"), to: .stream()))
      var bytes: [UInt8] = []
      for try await chunk in transfer.body { bytes += chunk }
      #expect(bytes == Array("whole".utf8))
      #expect(try await transfer.result().byteCount == 5)
      return WeakClient(client)
    }

    /// Stops a stream early and releases everything.
    private func takeFirst(_ server: ScriptedServer) async throws -> WeakClient {
      let client = TransferClient()
      for try await _ in client.transfer(try .quick(server.url("/"), to: .stream())).body { break }
      return WeakClient(client)
    }

    @Test("A stream that has ended does not keep its client", arguments: [true, false])
    func letsGoOfClient(isWhole: Bool) async throws {
      let server =
        try isWhole ? ScriptedServer { _ in ScriptedServer.ok("whole") } : Self.heldServer()
      defer { server.stop() }
      let held = try await isWhole ? takeAll(server) : takeFirst(server)
      // The network thread, which stays for a while, keeps it until the thread ends.
      try await eventually { held.client == nil }
    }

    /// Observes a client without keeping it.
    private struct WeakClient {
      private(set) weak var client: TransferClient?

      init(_ client: TransferClient) { self.client = client }
    }
  }
}
