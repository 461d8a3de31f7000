import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Pauses at the end of the answer or of the transfer.
  @Suite struct Pauses {
    private let client = TransferClient()

    /// An answer that arrives while the transfer is paused.
    struct Answer: Sendable, CustomTestStringConvertible {
      let status: Int
      let text: String
      let body: String

      var testDescription: String { text.split(separator: "\r\n").joined(separator: ", ") }

      init(_ status: Int, _ fields: String = "", body: String = "") {
        self.status = status
        self.body = body
        text = "HTTP/1.1 \(status) Done\r\n\(fields.isEmpty ? "" : fields + "\r\n")\r\n\(body)"
      }
    }

    static let answers = [
      Answer(201, "Content-Length: 0"), Answer(204), Answer(201), Answer(200, "Connection: close"),
      Answer(200, "Content-Length: 5", body: "taken"), Answer(200, body: "taken"),
    ]

    @Test("An upload whose answer comes while it is paused has finished", arguments: answers)
    func answerDuringPause(_ answer: Answer) async throws {
      let gate = Gate()
      let body = ServedFile.randomBytes(100_000)
      let server = try ScriptedServer { _ in [.wait(for: gate), .text(answer.text), .close] }
      defer { server.stop() }
      defer { gate.open() }
      var request = try Request.quick(server.url("/up"))
      request.method = .put
      request.body = .bytes(body)
      let transfer = client.transfer(request)
      transfer.start()
      try await eventually {
        server.requests.first?.body.count == body.count
          && transfer.progress.sentByteCount == Int64(body.count)
      }
      transfer.pause()
      try await eventually { transfer.state == .paused }
      gate.open()
      // Long after the answer and the connection's end have arrived.
      try await Task.sleep(for: .milliseconds(200))
      #expect(transfer.state == .paused)
      #expect(transfer.outcome == nil)
      transfer.resume()
      let run = await TransferRun(transfer)
      #expect(run.result?.response.status.code == answer.status)
      #expect(run.result?.body == Array(answer.body.utf8))
      #expect(server.requests.count == 1)
      #expect(run.log.retries.isEmpty)
      #expect(run.log.restarts.isEmpty)
    }

    @Test("A transfer that has ended is as it ended, paused or not", arguments: [true, false])
    func pauseAfterEnd(isInQueue: Bool) async throws {
      let server = try ScriptedServer { request in
        request.target == "/good"
          ? ScriptedServer.ok("body")
          : [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")]
      }
      defer { server.stop() }
      for (path, state) in [("/good", TransferProgress.State.finished), ("/bad", .failed)] {
        let queue = TransferQueue(client: client)
        queue.start()
        let request = try Request.quick(server.url(path))
        let transfer = isInQueue ? queue.add(request) : client.transfer(request)
        _ = await TransferRun(transfer)
        let ended = transfer.progress
        for verb in [transfer.pause, { queue.pause(transfer) }, queue.suspend] {
          verb()
          await client.settle()
          #expect(transfer.state == state)
        }
        for verb in [transfer.resume, { queue.resume(transfer) }, queue.start, transfer.start] {
          verb()
          await client.settle()
          #expect(transfer.state == state)
        }
        #expect(transfer.progress == ended)
        if isInQueue { await queue.finished() }
      }
      #expect(server.requests.map(\.target) == ["/good", "/bad"])
    }

    @Test("A pause at the moment of the end leaves what has finished finished")
    func pauseAtTheEnd() async throws {
      // In one piece: a separate head and body would wait 40 ms for each other (Nagle, delayed
      // ACK).
      let server = try ScriptedServer { _ in
        [.text("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")]
      }
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      let queue = TransferQueue(client: client)
      queue.start()
      for number in 0..<100 {
        let transfer = queue.add(
          try .quick(server.url("/"), to: .file(directory.file("\(number)"))))
        try await eventually { transfer.state == .finishing || transfer.outcome != nil }
        // A transfer cannot be paused while its file gets its name; one of these calls meets the
        // end.
        while transfer.outcome == nil {
          queue.pause(transfer)
          try Task.checkCancellation()
        }
        #expect(transfer.state == .finished)
      }
      await queue.finished()
      #expect(queue.progress.finishedCount == 100)
      #expect(directory.names.count == 100)
    }
  }
}
