import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The events of a transfer, for listeners that are immediate, late or slow.
  @Suite struct Events {
    private let client = TransferClient()

    @Test(
      "A download tells its beginning, its head, its total, its bytes and its end, in this order")
    func order() async throws {
      let server = try ScriptedServer { request in
        request.target == "/a"
          ? ScriptedServer.redirect(to: "/b") : ServedFile(byteCount: 1000).answer(request)
      }
      defer { server.stop() }
      let run = await client.run(try .quick(server.url("/a")))
      let words = run.log.events.map { event in
        switch event.kind {
        case .started(let total): "started \(total ?? -1)"
        case .redirected(let url, let status): "redirected \(status) \(url.path)"
        case .responded(let head, let url): "responded \(head.status.code) \(url.path)"
        case .resumed(let count): "resumed \(count)"
        case .received(let count): "received \(count)"
        case .sent(let count): "sent \(count)"
        case .totalChanged(let difference): "total \(difference)"
        case .retrying: "retrying"
        case .mirrorExcluded: "mirror excluded"
        case .restarted: "restarted"
        case .finished(let result): "finished \(result.byteCount)"
        case .failed: "failed"
        }
      }
      #expect(
        words == [
          "started -1", "redirected 302 /b", "responded 206 /b", "total 1000", "received 1000",
          "finished 1000",
        ])
    }

    @Test("A listener that joins late finds the same sums")
    func lateListener() async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 2 << 20)
      let server = try ScriptedServer { request in
        let steps = file.answer(request)
        return [
          steps[0], .send(Array(file.bytes[..<(1 << 20)])), .wait(for: gate),
          .send(Array(file.bytes[(1 << 20)...])),
        ]
      }
      defer { server.stop() }
      defer { gate.open() }
      let transfer = client.transfer(try .quick(server.url("/")))
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= 512 << 10 }
      let events = transfer.events
      async let late = EventLog(events)
      gate.open()
      let run = await TransferRun(transfer)
      let log = await late
      log.checkOrder(#_sourceLocation)
      #expect(log.received == 2 << 20)
      #expect(log.total == 2 << 20)
      #expect(log.hasFinished)
      #expect(run.log.received == 2 << 20)
    }

    @Test(
      "The sums hold when a server answers a range with the whole, and when it is another total")
    func wholeForRange() async throws {
      var file = ServedFile(byteCount: 300_000)
      file.servesRanges = false
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.range = 100_000..<500_000
      let run = await client.run(request)
      #expect(run.result?.body.fingerprint == file.bytes[100_000...].fingerprint)
      #expect(run.log.startedTotal == 400_000)
      #expect(run.log.total == 200_000)
    }

    @Test("A slow listener neither slows a transfer nor gathers its events")
    func slowListener() async throws {
      let mebibyte = [UInt8](repeating: 7, count: 1 << 20)
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Content-Length: \(64 << 20)")]
          + Array(repeating: .send(mebibyte), count: 64)
      }
      defer { server.stop() }
      var request = try Request.quick(server.url("/"))
      request.destination = .memory(limit: 64 << 20)
      let clock = ContinuousClock()
      let alone = client.transfer(request)
      let time = try await clock.measure { _ = try await alone.result() }
      let listened = client.transfer(request)
      let events = listened.events
      async let log = EventLog(events, pause: .milliseconds(100))
      let slowTime = try await clock.measure { _ = try await listened.result() }
      // Other tests run at the same time; a listener that delayed the transfer would cost 6 s.
      #expect(slowTime < time * 4 + .seconds(1))
      await log.checkOrder(#_sourceLocation)
      #expect(await log.received == 64 << 20)
      // 64 MiB are 128 pieces or more; events that were not received were added up.
      #expect(await log.events.count < 60)
    }

    @Test("A listener whose task is cancelled ends, and the transfer goes on")
    func cancelledListener() async throws {
      let gate = Gate()
      let server = try ScriptedServer { _ in [.wait(for: gate)] + ScriptedServer.ok("end") }
      defer { server.stop() }
      defer { gate.open() }
      let transfer = client.transfer(try .quick(server.url("/")))
      let events = transfer.events
      let listener = Task { await EventLog(events).events.count }
      transfer.start()
      try await server.waitForRequests(1)
      listener.cancel()
      _ = await listener.value
      gate.open()
      #expect(await TransferRun(transfer).result?.body == Array("end".utf8))
    }

    // MARK: Progress sinks

    private actor Sink: ProgressSink {
      private(set) var values: [TransferProgress] = []

      func progressChanged(_ progress: TransferProgress) { values.append(progress) }

      var last: TransferProgress? { values.last }
    }

    @Test("A progress sink is called in order, and at last with the end", arguments: [true, false])
    func sink(isGood: Bool) async throws {
      let server = try ScriptedServer { _ in
        isGood
          ? ScriptedServer.ok(String(repeating: "x", count: 300_000))
          : [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")]
      }
      defer { server.stop() }
      let transfer = client.transfer(try .quick(server.url("/")))
      let sink = Sink()
      transfer.report(to: sink, every: .milliseconds(1))
      _ = await TransferRun(transfer)
      while await sink.last?.state.isFinal != true { try await Task.sleep(for: .milliseconds(2)) }
      let values = await sink.values
      #expect(values.last?.state == (isGood ? .finished : .failed))
      #expect(values.last?.fractionCompleted == (isGood ? 1 : nil))
      let counts = values.map(\.receivedByteCount)
      #expect(counts == counts.sorted())
    }

    @Test("Speed, average and time left are given while bytes flow")
    func speed() async throws {
      let gate = Gate()
      let file = ServedFile(byteCount: 2 << 20)
      let server = try ScriptedServer { request in
        [
          file.answer(request)[0], .pause(milliseconds: 20), .send(Array(file.bytes[..<(1 << 20)])),
          .trickle(Array(file.bytes[(1 << 20)...]), until: gate),
        ]
      }
      defer { server.stop() }
      defer { gate.open() }
      var request = try Request.quick(server.url("/"))
      request.connections = .exactly(1)
      let transfer = client.transfer(request)
      transfer.start()
      var flowing = transfer.progress
      try await eventually {
        flowing = transfer.progress
        return flowing.receivedByteCount >= 512 << 10 && flowing.bytesPerSecond > 0
      }
      #expect(flowing.averageBytesPerSecond > 0)
      #expect(flowing.estimatedTimeLeft != nil)
      #expect(flowing.connections == 1)
      gate.open()
      let ended = await TransferRun(transfer).transfer.progress
      #expect(ended.estimatedTimeLeft == nil)
      #expect(ended.bytesPerSecond == 0)
      let moved = ended.averageBytesPerSecond * (ended.elapsed / .seconds(1))
      #expect(abs(moved - Double(2 << 20)) < 10)
    }

    // MARK: Pausing

    /// A server of `file` whose first answer stalls after 1 MiB.
    private func standing(_ file: ServedFile) throws -> ScriptedServer {
      let tries = Counter()
      var held = file
      held.heldAfter = 1 << 20
      let heldFile = held
      return try ScriptedServer { request in
        tries.next() == 1 ? heldFile.answer(request) : file.answer(request)
      }
    }

    @Test("A download that is paused fetches nothing, and goes on with the missing bytes")
    func pause() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let server = try standing(file)
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      let transfer = client.transfer(
        try .quick(server.url("/"), to: .file(directory.file("a"))))
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= 512 << 10 }
      transfer.pause()
      try await eventually { transfer.state == .paused && server.openCount == 0 }
      try await Task.sleep(for: .milliseconds(50))
      #expect(transfer.progress.connections == 0)
      #expect(server.requests.count == 1)
      transfer.resume()
      let run = await TransferRun(transfer)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
      // The bytes that had arrived before the pause are stored, and are not requested again.
      #expect(run.result?.rawByteCount == 4 << 20)
      let first = try #require(server.requests.last?.range?.first)
      #expect(first >= 512 << 10)
    }

    @Test("A download that is cancelled while it is paused keeps what it has")
    func cancelPaused() async throws {
      let file = ServedFile(byteCount: 4 << 20)
      let server = try standing(file)
      defer { server.stop() }
      let directory = try TemporaryDirectory()
      let request = try Request.quick(server.url("/"), to: .file(directory.file("a")))
      let transfer = client.transfer(request)
      transfer.start()
      try await eventually { transfer.progress.receivedByteCount >= 512 << 10 }
      transfer.pause()
      transfer.cancel()
      #expect(await TransferRun(transfer).error?.code == .cancelled)
      let run = await client.run(request)
      #expect(run.result?.resumedByteCount == transfer.progress.receivedByteCount)
      #expect(directory.contents("a")?.fingerprint == file.bytes.fingerprint)
    }
  }
}
