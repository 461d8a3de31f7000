import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Unsuccessful answers, and which of them are retried.
  @Suite struct Statuses {
    private let client = TransferClient()
    private static let page = "<html>an error page that must not land in the file</html>"

    private static func refusal(_ status: Int, _ fields: String...) -> [ScriptedServer.Step] {
      let lines =
        ["HTTP/1.1 \(status) Refused", "X-Reason: canary", "Content-Length: \(page.utf8.count)"]
        + fields + ["", ""]
      return [.text(lines.joined(separator: "\r\n")), .text(page)]
    }

    @Test(
      "A refusal fails before byte one and is asked for once", arguments: [400, 401, 403, 404, 410])
    func refused(status: Int) async throws {
      let server = try ScriptedServer { _ in Self.refusal(status) }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      try directory.write([1, 2, 3], to: "existing")
      for name in ["new", "existing"] {
        let run = await client.run(
          try .quick(server.url("/"), to: .file(directory.file(name), existing: .replace)))
        let error = try #require(run.error)
        #expect(error.code == .status)
        #expect(error.status == status)
        #expect(error.isTransient == false)
        #expect(error.reason.contains("\(status)"))
        let field = try #require(HTTPField.Name("X-Reason"))
        #expect(error.response?.headerFields[field] == "canary")
        #expect(run.log.responses.map(\.status.code) == [status])
        #expect(run.log.received == 0)
      }
      #expect(server.requests.count == 2)
      #expect(directory.names == ["existing"])
      #expect(directory.contents("existing") == [1, 2, 3])
    }

    @Test(
      "A refusal fails memory, stream and other methods alike",
      arguments: [HTTPRequest.Method.get, .head, .post])
    func refusedElsewhere(method: HTTPRequest.Method) async throws {
      let server = try ScriptedServer { request in
        request.method == "HEAD"
          ? [.head("HTTP/1.1 404 Not Found", "Content-Length: 5")] : Self.refusal(404)
      }
      defer { server.stop() }
      for destination in [Destination.memory(), .stream()] {
        var request = try Request.quick(server.url("/"), to: destination)
        request.method = method
        let run = await client.run(request)
        #expect(run.error?.status == 404)
        #expect(run.log.received == 0)
        var chunks = run.transfer.body.makeAsyncIterator()
        if case .stream = destination {
          await #expect(throws: TransferError.self) { _ = try await chunks.next() }
        }
      }
    }

    // MARK: Retries

    @Test("A failure that may pass is tried again as often as said, with growing delays")
    func retries() async throws {
      let server = try ScriptedServer { _ in Self.refusal(500) }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.retries = 4
      request.retryPolicy = RetryPolicy(base: .milliseconds(10), ceiling: .seconds(1))
      let run = await client.run(request)
      #expect(run.error?.status == 500)
      #expect(server.requests.count == 5)
      #expect(run.log.retries.map(\.attempt) == [1, 2, 3, 4])
      let delays = run.log.retries.map(\.delay)
      for (index, delay) in delays.enumerated() {
        // Half of the delay is jitter.
        let full = Duration.milliseconds(10 * (1 << index))
        #expect(delay >= full / 2 && delay <= full)
      }
      #expect(run.transfer.progress.retryCount == 4)
      #expect(run.transfer.progress.elapsed >= delays.reduce(.zero, +))
      #expect(directory.names == [])
    }

    @Test(
      "Without a number, half of the connections are retried", arguments: [(6, 3), (2, 1), (1, 0)])
    func defaultRetries(connections: Int, retries: Int) async throws {
      let server = try ScriptedServer { _ in Self.refusal(503) }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.connections = .adaptive(upTo: connections)
      _ = await client.run(request)
      #expect(server.requests.count == 1 + retries)
    }

    @Test("A failure in the middle goes on where it was, and success resets the count")
    func middle() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let server = try ScriptedServer { request in
        // Each answer is cut after 512 KiB.
        var steps = file.answer(request)
        if case .send(let body) = steps[1], body.count > 512 << 10 {
          steps[1] = .send(Array(body.prefix(512 << 10)))
          steps.append(.close)
        }
        return steps
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.connections = .exactly(1)
      request.retries = 1
      let run = await client.run(request)
      #expect(run.result?.body.fingerprint == file.bytes.fingerprint)
      // No byte was fetched twice.
      #expect(run.result?.rawByteCount == 4 << 20)
      #expect(run.log.negativeDifferences == [])
    }

    @Test("Each segment has retries of its own")
    func segments() async throws {
      var served = ServedFile(byteCount: 12 << 20)
      served.isPaced = true
      let file = served
      let seen = SeenStarts()
      let server = try ScriptedServer { request in
        // The first request for each place except the file's start is cut without a byte.
        guard let first = request.range?.first, first > 0, seen.insert(first) else {
          return file.answer(request)
        }
        return [.reset]
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.connections = .exactly(4)
      request.retries = 1
      let run = await client.run(request)
      #expect(run.result?.body.fingerprint == file.bytes.fingerprint)
      #expect(run.log.retries.count >= 3)
    }

    @Test("A server's Retry-After is obeyed")
    func retryAfter() async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1 ? Self.refusal(503, "Retry-After: 1") : ScriptedServer.ok("ready")
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result?.body == Array("ready".utf8))
      #expect(run.log.retries.map { $0.delay >= .seconds(1) } == [true])
      #expect(run.transfer.progress.elapsed >= .seconds(1))
    }

    @Test("Retry-After is obeyed for uploads as well")
    func retryAfterUpload() async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1 ? Self.refusal(503, "Retry-After: 1") : ScriptedServer.ok("taken")
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.method = .put
      request.body = .bytes([1, 2, 3])
      let run = await client.run(request)
      #expect(run.result?.body == Array("taken".utf8))
      #expect(run.log.retries.map { $0.delay >= .seconds(1) } == [true])
    }

    @Test("A Retry-After beyond what is allowed is cut")
    func longRetryAfter() async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1 ? Self.refusal(429, "Retry-After: 86400") : ScriptedServer.ok("ready")
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.retryPolicy.retryAfterCeiling = .milliseconds(100)
      let run = await client.run(request)
      #expect(run.log.retries.map(\.delay) == [.milliseconds(100)])
      #expect(run.result?.body == Array("ready".utf8))
    }

    @Test("A server that cannot be reached is tried again, then the failure says so")
    func unreachable() async throws {
      let refusing = try RefusingPort()
      defer { refusing.close() }
      var request = try Request.quick("http://127.0.0.1:\(refusing.number)/")
      request.retries = 2
      let run = await client.run(request)
      #expect(run.error?.code == .connectionRefused)
      #expect(run.log.retries.count == 2)
    }

    // MARK: 416

    @Test("416 of an empty file is an empty file")
    func emptyFile() async throws {
      let server = try ScriptedServer { _ in
        Self.refusal(416, "Content-Range: bytes */0", "ETag: \"v\"")
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      let run = await client.run(try .quick(server.url("/"), to: .file(directory.file("a"))))
      #expect(run.result?.byteCount == 0)
      #expect(directory.contents("a") == [])
    }

    @Test("416 without a length makes the whole be asked for")
    func unexplained416() async throws {
      let server = try ScriptedServer { request in
        request["range"] == [] ? ScriptedServer.ok("whole") : Self.refusal(416)
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.result?.body == Array("whole".utf8))
      #expect(server.requests.count == 2)
    }

    @Test("416 to the whole as well is a failure")
    func only416() async throws {
      let server = try ScriptedServer { _ in Self.refusal(416) }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/")))
      #expect(run.error?.status == 416)
      #expect(server.requests.count <= 3)
    }

    @Test("A range beyond the end fails with the 416 and leaves nothing")
    func beyondTheEnd() async throws {
      let server = try ScriptedServer(answer: ServedFile(byteCount: 1000).answer)
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.range = 1000..<1100
      let run = await client.run(request)
      #expect(run.error?.status == 416)
      #expect(run.error?.response?.headerFields[.contentRange] == "bytes */1000")
      #expect(run.error?.reason.contains("1000") == true)
      #expect(directory.names == [])
    }

    @Test("A range beyond the end of what has no length fails as well, when the end has come")
    func beyondTheUnknownEnd() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK"), .send(ServedFile.randomBytes(1000)), .close]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      var request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      request.range = 1000..<1100
      let run = await client.run(request)
      #expect(run.error?.code == .status)
      #expect(run.error?.reason.contains("the file has 1000 bytes only") == true)
      #expect(directory.names == [])
      request.range = 999..<1100
      #expect(await client.run(request).result?.byteCount == 1)
    }

    @Test("A range that ends beyond the end brings what there is")
    func overTheEnd() async throws {
      let file = ServedFile(byteCount: 1000)
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.range = 900..<1100
      let run = await client.run(request)
      #expect(run.result?.body == Array(file.bytes[900...]))
      #expect(run.log.startedTotal == 200)
    }
  }
}
