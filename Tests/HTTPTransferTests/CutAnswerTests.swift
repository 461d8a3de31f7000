import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Answers that are cut off, and differ at the second attempt: the result is one whole answer, or
  /// none.
  @Suite struct CutAnswers {
    private let client = TransferClient()
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private static func text(_ letter: Character, _ count: Int) -> String {
      String(repeating: letter, count: count)
    }

    /// A 200 whose declared length is `length`, with only `count` bytes.
    private static func cut(
      _ letter: Character, _ count: Int, of length: Int, _ field: String = "X-Canary: 1"
    ) -> [ScriptedServer.Step] {
      [
        .head("HTTP/1.1 200 OK", field, "Content-Length: \(length)"),
        .text(text(letter, count)), .close,
      ]
    }

    /// The destination of a GET's body.
    enum Place: CaseIterable { case memory, file, stream }

    private func destination(_ place: Place) -> Destination {
      switch place {
      case .memory: .memory()
      case .file: .file(directory.file("f"))
      case .stream: .stream()
      }
    }

    // MARK: Answers that nothing proves alike

    @Test("Two answers to a PUT are never mixed", arguments: [5, 10, 15, 20, 30])
    func putAnswers(secondByteCount: Int) async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1
          ? Self.cut("a", 10, of: 20) : ScriptedServer.ok(Self.text("b", secondByteCount))
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.method = .put
      request.body = .bytes([1, 2, 3])
      let run = await client.run(request)
      #expect(run.result?.body == Array(Self.text("b", secondByteCount).utf8))
      #expect(server.requests.map(\.method) == ["PUT", "PUT"])
    }

    @Test(
      "Two decoded answers without validators are never mixed",
      arguments: [5, 10, 15, 20, 30], [true, false])
    func decodedAnswers(secondByteCount: Int, isFile: Bool) async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1
          ? Self.cut("a", 10, of: 20) : ScriptedServer.ok(Self.text("b", secondByteCount))
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: destination(isFile ? .file : .memory))
      request.decodesContent = true
      let run = await client.run(request)
      let bytes = isFile ? directory.contents("f") : run.result?.body
      #expect(bytes == Array(Self.text("b", secondByteCount).utf8))
    }

    @Test("A stream that has handed on a part of one answer never goes on with another")
    func streamedAnswers() async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1 ? Self.cut("a", 10, of: 20) : ScriptedServer.ok(Self.text("b", 20))
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: .stream())
      request.decodesContent = true
      let transfer = client.transfer(request)
      var bytes: [UInt8] = []
      await #expect(throws: TransferError.self) {
        for try await chunk in transfer.body { bytes += chunk }
      }
      #expect(!bytes.contains(UInt8(ascii: "b")))
    }

    // MARK: Lengths that are known

    @Test(
      "A body of a known length does not end early where its second answer tells none",
      arguments: Place.allCases)
    func shorterThanKnown(_ place: Place) async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1
          ? Self.cut("a", 5, of: 20, "ETag: \"v\"")
          : [.head("HTTP/1.1 200 OK", "ETag: \"v\""), .text(Self.text("a", 12)), .close]
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"), to: destination(place))
      request.retries = 2
      let run = await client.run(request)
      #expect(run.result == nil)
      #expect(run.error?.code == .connectionLost)
      #expect(directory.contents("f") == nil)
      #expect(server.requests.count >= 3)
    }

    @Test(
      "A body of a known length goes on where its second answer tells none, and is whole",
      arguments: [Place.memory, .file])
    func asLongAsKnown(_ place: Place) async throws {
      let tries = Counter()
      let server = try ScriptedServer { _ in
        switch tries.next() {
        case 1: Self.cut("a", 5, of: 20, "ETag: \"v\"")
        case 2: [.head("HTTP/1.1 200 OK", "ETag: \"v\""), .text(Self.text("a", 12)), .close]
        default: [.head("HTTP/1.1 200 OK", "ETag: \"v\""), .text(Self.text("a", 20)), .close]
        }
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/"), to: destination(place)))
      #expect(run.result?.byteCount == 20)
      let bytes = place == .file ? directory.contents("f") : run.result?.body
      #expect(bytes == Array(Self.text("a", 20).utf8))
    }

    // MARK: Another version

    @Test(
      "After a new beginning with a version of unknown length there is no total until its end",
      arguments: [true, false])
    func unknownAfterRestart(isFile: Bool) async throws {
      let gate = Gate()
      let tries = Counter()
      let server = try ScriptedServer { _ in
        tries.next() == 1
          ? Self.cut("a", 5, of: 20, "ETag: \"v1\"")
          : [
            .head("HTTP/1.1 200 OK", "ETag: \"v2\"", "Transfer-Encoding: chunked"),
            .text("7\r\n\(Self.text("b", 7))\r\n"), .wait(for: gate),
            .text("6\r\n\(Self.text("b", 6))\r\n0\r\n\r\n"),
          ]
      }
      defer { server.stop() }
      defer { gate.open() }
      var request = try Request.quick(
        server.url("/"), to: isFile ? .file(directory.file("f")) : .memory())
      request.retries = 1
      let transfer = client.transfer(request)
      let events = transfer.events
      async let whole = EventLog(events)
      transfer.start()
      var hasRestarted = false
      search: for await event in transfer.events {
        switch event.kind {
        case .restarted: hasRestarted = true
        case .responded where hasRestarted: break search
        default: break
        }
      }
      #expect(transfer.progress.totalByteCount == nil)
      #expect(transfer.progress.fractionCompleted == nil)
      #expect(transfer.progress.estimatedTimeLeft == nil)
      gate.open()
      let run = await TransferRun(transfer)
      #expect(run.result?.byteCount == 13)
      let bytes = isFile ? directory.contents("f") : run.result?.body
      #expect(bytes == Array(Self.text("b", 13).utf8))
      let log = await whole
      log.checkOrder(#_sourceLocation)
      #expect(log.restarts.count == 1)
      #expect(log.received == 13)
      #expect(log.total == 13)
      #expect(log.negativeDifferences == [-5])
    }
  }
}
