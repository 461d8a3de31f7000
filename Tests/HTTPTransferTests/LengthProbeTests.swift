import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The lengths of waiting transfers, which are requested in advance.
  @Suite struct LengthProbes {
    private func queue() -> TransferQueue {
      var configuration = TransferQueue.Configuration()
      configuration.maximumConcurrent = 1
      configuration.learnsLengths = true
      return TransferQueue(configuration: configuration)
    }

    private static let chunks: [ScriptedServer.Step] = [
      .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"), .text("1\r\nx\r\n0\r\n\r\n"),
    ]

    @Test("Files of unknown length do not keep the lengths of the others from being learned")
    func manyUnknown() async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 1000)
      let server = try ScriptedServer { request in
        if request.target == "/first" {
          return [
            .head("HTTP/1.1 200 OK", "Content-Length: 1000"), .wait(for: gate),
            .send(file.bytes),
          ]
        }
        return request.target.hasPrefix("/unknown") ? Self.chunks : file.answer(request)
      }
      defer { server.stop() }
      defer { gate.open() }
      let queue = queue()
      queue.add(try .quick(server.url("/first")))
      let unknown = try (0..<9).map { queue.add(try .quick(server.url("/unknown\($0)"))) }
      for number in 0..<5 { queue.add(try .quick(server.url("/known\(number)"))) }
      queue.start()
      let waiting = queue.transfers.dropFirst().map(\.request.url.path)
      try await eventually { Set(server.requests.map(\.target)).isSuperset(of: waiting) }
      // Transfers of unknown length have a known total once they have ended.
      #expect(queue.progress.totalByteCount == nil)
      for transfer in unknown { transfer.cancel() }
      try await eventually { queue.progress.totalByteCount == 6000 }
      #expect(queue.progress.finishedCount == 0)
      // No length is requested twice, even if the server does not provide it.
      #expect(server.requests.map(\.target).filter { $0 != "/first" }.sorted() == waiting.sorted())
      gate.open()
      await queue.finished()
      #expect(queue.progress.finishedCount == 6)
      #expect(queue.progress.accurateFraction == 1)
    }

    @Test("Refusals do not keep the lengths of the others from being learned")
    func manyRefused() async throws {
      let gate = Gate()
      let server = try ScriptedServer { request in
        if request.target == "/first" {
          return [.wait(for: gate)] + ScriptedServer.ok("first")
        }
        return request.target.hasPrefix("/reset")
          ? [.reset] : [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")]
      }
      defer { server.stop() }
      defer { gate.open() }
      let queue = queue()
      queue.add(try .quick(server.url("/first")))
      let paths = (0..<6).flatMap { ["/reset\($0)", "/none\($0)"] }
      for path in paths { queue.add(try .quick(server.url(path))) }
      queue.start()
      try await eventually { Set(server.requests.map(\.target)).isSuperset(of: paths) }
      queue.cancelAll()
      await queue.finished()
    }

    @Test("A probe sends credentials when they are asked for, and not before, where that is wanted")
    func credentials() async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 1000)
      let server = try ScriptedServer { request in
        if request.target == "/first" {
          return [
            .head("HTTP/1.1 200 OK", "Content-Length: 1000"), .wait(for: gate),
            .send(file.bytes),
          ]
        }
        if request.target == "/locked", request["authorization"] == [] {
          return [
            .head(
              "HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"",
              "Content-Length: 0")
          ]
        }
        return file.answer(request)
      }
      defer { server.stop() }
      defer { gate.open() }
      let queue = queue()
      queue.add(try .quick(server.url("/first")))
      for path in ["/open", "/locked", "/eager"] {
        var request = try Request.quick(server.url(path, userInfo: "user:pw@"))
        request.authenticatesOnChallenge = path != "/eager"
        queue.add(request)
      }
      queue.start()
      try await eventually { queue.progress.totalByteCount == 4000 }
      func authorizations(_ path: String) -> [[String]] {
        server.requests.filter { $0.target == path }.map { $0["authorization"] }
      }
      #expect(authorizations("/open") == [[]])
      #expect(authorizations("/locked") == [[], ["Basic dXNlcjpwdw=="]])
      #expect(authorizations("/eager") == [["Basic dXNlcjpwdw=="]])
      gate.open()
      await queue.finished()
      #expect(queue.progress.finishedCount == 4)
      #expect(authorizations("/open").allSatisfy { $0.isEmpty })
    }
  }
}
