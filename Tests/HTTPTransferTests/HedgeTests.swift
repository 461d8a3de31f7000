import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Requests that bring nothing, beside which another one is sent.
  @Suite struct Hedges {
    private let client = HTTPClient()

    @Test("What a stalled request does not bring comes over another connection")
    func stalled() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      var held = file
      held.heldAfter = 1 << 20
      let stalling = held
      let counter = Counter()
      let server = try ScriptedServer { request in
        counter.next() == 1 ? stalling.answer(request) : file.answer(request)
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/a"))
      request.isHedged = true
      request.connections = .exactly(4)
      request.stallTimeout = .seconds(100)
      let start = ContinuousClock.now
      let run = await client.run(request)
      let duration = ContinuousClock.now - start
      #expect(run.result?.body == file.bytes, "\(String(describing: run.error))")
      #expect(duration < .seconds(50), "\(duration)")
      #expect(run.log.restarts.isEmpty)
    }

    @Test("A stalled request of a download over one connection is not hedged")
    func single() async throws {
      let file = ServedFile(byteCount: 1 << 20)
      var held = file
      held.heldAfter = 1 << 19
      let stalling = held
      let counter = Counter()
      let server = try ScriptedServer { request in
        counter.next() == 1 ? stalling.answer(request) : file.answer(request)
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/a"))
      request.isHedged = true
      request.connections = .exactly(1)
      request.stallTimeout = .seconds(3)
      request.retries = 2
      let start = ContinuousClock.now
      let run = await client.run(request)
      #expect(run.result?.body == file.bytes, "\(String(describing: run.error))")
      #expect(ContinuousClock.now - start >= .seconds(3))
      #expect(server.requests.count == 2)
    }
  }
}
