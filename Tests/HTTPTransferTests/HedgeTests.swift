import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Requests that deliver no bytes, for which a second request is sent.
  @Suite struct Hedges {
    private let client = TransferClient()

    /// A server of `file` whose first answer stalls after `byteCount` bytes.
    private func stallingServer(_ file: ServedFile, after byteCount: Int) throws -> ScriptedServer {
      var held = file
      held.heldAfter = byteCount
      let stalling = held
      let counter = Counter()
      return try ScriptedServer { request in
        counter.next() == 1 ? stalling.answer(request) : file.answer(request)
      }
    }

    @Test("What a stalled request does not bring comes over another connection")
    func stalled() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let server = try stallingServer(file, after: 1 << 20)
      defer { server.stop() }
      let run = await hedgedRun(try Request.quick(server.url("/a")), of: file)
      #expect(run.log.restarts.isEmpty)
    }

    /// Runs a request that brings `file` long before its stall timeout.
    private func hedgedRun(_ request: Request, of file: ServedFile) async -> TransferRun {
      var request = request
      request.isHedged = true
      request.connections = .exactly(4)
      request.stallTimeout = .seconds(100)
      let start = ContinuousClock.now
      let run = await client.run(request)
      let duration = ContinuousClock.now - start
      #expect(run.result?.body == file.bytes, "\(String(describing: run.error))")
      #expect(duration < .seconds(50), "\(duration)")
      return run
    }

    @Test("A stalled request is hedged on its own server while the mirror is busy")
    func stalledBesideBusyMirror() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let server = try stallingServer(file, after: 1 << 20)
      defer { server.stop() }
      let busy = try ScriptedServer { _ in
        [.head("HTTP/1.1 503 Busy", "Content-Length: 0", "Retry-After: 90")]
      }
      defer { busy.stop() }
      var request = try Request.quick(server.url("/a"))
      request.mirrors = [try RemoteURL(busy.url("/a"))]
      _ = await hedgedRun(request, of: file)
      #expect(!busy.requests.isEmpty)
    }

    @Test("A hedge that is refused where redirects begin leaves the way to be found by others")
    func refusedAtItsListedURL() async throws {
      // More than its slow bytes; the server copies all of it for each answer.
      let file = ServedFile(byteCount: 24 << 20)
      let expiry = (Date.now.timeIntervalSince1970 + 6).rounded(.down)
      let counter = Counter()
      let server = try ScriptedServer { request in
        let now = Date.now.timeIntervalSince1970
        guard request.target.hasPrefix("/target") else {
          switch counter.next() {
          case 1: return ScriptedServer.redirect(to: "/target?expires=\(Int(expiry))&signature=0x1")
          case 2: return [.head("HTTP/1.1 503 Busy", "Content-Length: 0")]
          default:
            return ScriptedServer.redirect(
              to: "/target?expires=\(Int(expiry) + 900)&signature=0x2")
          }
        }
        guard request.target.hasSuffix("0x1") else { return file.answer(request) }
        guard now < expiry else { return [.head("HTTP/1.1 403 Expired", "Content-Length: 0")] }
        // Slow bytes, then none from the time of the URL's renewal until it has expired.
        let count = max(0, Int((expiry - 1.3 - now) / 0.01))
        let (head, body) = (file.answer(request)[0], file.bytes[(request.range?.first ?? 0)...])
        let chunks = (0..<count).flatMap { index -> [ScriptedServer.Step] in
          let bytes = body.dropFirst(index << 12).prefix(1 << 12)
          return [.send(Array(bytes)), .pause(milliseconds: 10)]
        }
        let rest = max(0, expiry + 0.5 - max(now, expiry - 1.3))
        return [head] + chunks + [.pause(milliseconds: UInt32(rest * 1000)), .reset]
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/a"))
      request.isHedged = true
      request.connections = .exactly(4)
      request.stallTimeout = .seconds(20)
      let run = await client.run(request)
      #expect(
        run.result?.body.fingerprint == file.bytes.fingerprint, "\(String(describing: run.error))")
      #expect(counter.next() > 3)
    }

    @Test(
      "A server that takes long to refuse a request and its hedge is asked again",
      .timeLimit(.minutes(1)))
    func slowlyRefused() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let counter = Counter()
      let server = try ScriptedServer { request in
        switch counter.next() {
        case 1: [file.answer(request)[0], .send(Array(file.bytes[..<(1 << 20)])), .reset]
        case 2, 3: [.pause(milliseconds: 1500), .head("HTTP/1.1 503 Busy", "Content-Length: 0")]
        default: file.answer(request)
        }
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/a"))
      request.isHedged = true
      request.connections = .exactly(4)
      request.stallTimeout = .seconds(20)
      let run = await client.run(request)
      #expect(run.result?.body == file.bytes, "\(String(describing: run.error))")
    }

    @Test("A request that a rate limit holds back is not hedged")
    func limited() async throws {
      let file = ServedFile(byteCount: 1 << 20)
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      let transfers = try (0..<4).map { number in
        var request = try Request.quick(server.url("/\(number)"))
        request.isHedged = true
        request.connections = .exactly(4)
        // A piece of 16 KiB takes four seconds.
        request.rateLimit = RateLimit(bytesPerSecond: 4096)
        return client.transfer(request)
      }
      for transfer in transfers { transfer.start() }
      try await Task.sleep(for: .seconds(6))
      for transfer in transfers { transfer.cancel() }
      // A hedge would request the following bytes. Other requests begin much later in the file.
      let near = server.requests.filter { ($0.range?.first ?? 0) < 100_000 }
      #expect(near.count == 4, "\(near.map { $0.range?.first ?? 0 })")
    }

    @Test("A stalled request of a download over one connection is not hedged")
    func single() async throws {
      let file = ServedFile(byteCount: 1 << 20)
      let server = try stallingServer(file, after: 1 << 19)
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
