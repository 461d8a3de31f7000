import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The progress of a queue, by transfers and by bytes.
  @Suite struct QueueProgresses {
    private func queue(
      _ change: (inout TransferQueue.Configuration) -> Void
    ) -> TransferQueue {
      var configuration = TransferQueue.Configuration()
      change(&configuration)
      return TransferQueue(configuration: configuration)
    }

    @Test("Five requests: 0, 20, 40, 60, 80, 100 percent, while bytes move the accurate fraction")
    func simpleAndAccurate() async throws {
      // Half of each body arrives when its first gate opens, the rest at the second one.
      let gates = (0..<5).map { _ in (half: Gate(), end: Gate()) }
      let server = try ScriptedServer { request in
        let number = Int(request.target.dropFirst()) ?? 0
        return [
          .head("HTTP/1.1 200 OK", "Content-Length: 2000"), .wait(for: gates[number].half),
          .send([UInt8](repeating: 1, count: 1000)), .wait(for: gates[number].end),
          .send([UInt8](repeating: 2, count: 1000)),
        ]
      }
      defer { server.stop() }
      defer {
        for gate in gates {
          gate.half.open()
          gate.end.open()
        }
      }
      let queue = queue {
        $0.maximumConcurrent = 5
        $0.learnsLengths = false
      }
      let transfers = try (0..<5).map { number in
        // Streams report bytes as they arrive.
        queue.add(try .quick(server.url("/\(number)"), to: .stream()))
      }
      queue.start()
      try await eventually { queue.progress.totalByteCount == 10_000 }
      var fractions = [queue.progress.simpleFraction]
      #expect(queue.progress.accurateFraction == 0)
      for number in 0..<5 {
        gates[number].half.open()
        try await eventually { transfers[number].progress.receivedByteCount == 1000 }
        #expect(transfers[number].progress.fractionCompleted == 0.5)
        #expect(queue.progress.completedByteCount == Int64(number) * 2000 + 1000)
        let fraction = try #require(queue.progress.accurateFraction)
        #expect(abs(fraction - (Double(number) * 0.2 + 0.1)) < 1e-9)
        // Not before the request has ended.
        #expect(queue.progress.simpleFraction == fractions.last)
        gates[number].end.open()
        _ = try await transfers[number].result()
        fractions.append(queue.progress.simpleFraction)
      }
      #expect(fractions == [0, 0.2, 0.4, 0.6, 0.8, 1])
      await queue.finished()
      #expect(queue.progress.accurateFraction == 1)
    }

    @Test("The lengths of those that wait are learned by a first byte, not by HEAD")
    func learnsLengths() async throws {
      let gate = Gate()
      let server = try ScriptedServer { request in
        let file = ServedFile(byteCount: 1000 * (Int(request.target.dropFirst()) ?? 0))
        return request.range?.last == 0
          ? file.answer(request) : [.wait(for: gate)] + file.answer(request)
      }
      defer { server.stop() }
      defer { gate.open() }
      let queue = queue {
        $0.maximumConcurrent = 1
        $0.learnsLengths = true
      }
      for number in 1...7 { queue.add(try .quick(server.url("/\(number)"))) }
      queue.start()
      // The first transfer runs, and its length is known when it is answered.
      try await eventually {
        server.requests.count { $0.range?.last == 0 } >= 6
      }
      gate.open()
      try await eventually { queue.progress.totalByteCount == 28_000 }
      await queue.finished()
      #expect(!server.requests.contains { $0.method != "GET" })
      #expect(queue.progress.completedByteCount == 28_000)
    }

    @Test("The length of a request that is added late is learned as well")
    func learnsLateLengths() async throws {
      let gate = Gate()
      let server = try ScriptedServer { request in
        let file = ServedFile(byteCount: 1000)
        return request.range?.last == 0
          ? file.answer(request)
          : [file.answer(request)[0], .wait(for: gate)] + file.answer(request)[1...]
      }
      defer { server.stop() }
      defer { gate.open() }
      let queue = queue {
        $0.maximumConcurrent = 1
        $0.learnsLengths = true
      }
      queue.add(try .quick(server.url("/1")))
      queue.start()
      try await eventually { queue.progress.totalByteCount == 1000 }
      queue.add(try .quick(server.url("/2")))
      for _ in 0..<500 where queue.progress.totalByteCount != 2000 {
        try await Task.sleep(for: .milliseconds(2))
      }
      #expect(queue.progress.totalByteCount == 2000)
      gate.open()
      await queue.finished()
    }

    @Test("The length of a protected file is learned with its credentials")
    func learnsProtectedLengths() async throws {
      let gate = Gate()
      let server = try ScriptedServer { request in
        guard request["authorization"] == ["Basic dXNlcjpwdw=="] else {
          return [.head("HTTP/1.1 401 Unauthorized", "Content-Length: 0")]
        }
        let file = ServedFile(byteCount: 1000)
        return request.range?.last == 0
          ? file.answer(request)
          : [file.answer(request)[0], .wait(for: gate)] + file.answer(request)[1...]
      }
      defer { server.stop() }
      defer { gate.open() }
      let queue = queue {
        $0.maximumConcurrent = 1
        $0.learnsLengths = true
      }
      for number in 1...2 {
        queue.add(try .quick(server.url("/\(number)", userInfo: "user:pw@")))
      }
      queue.start()
      for _ in 0..<500 where queue.progress.totalByteCount != 2000 {
        try await Task.sleep(for: .milliseconds(2))
      }
      #expect(queue.progress.totalByteCount == 2000)
      gate.open()
      await queue.finished()
    }

    @Test("A server that tells no length is asked for it once")
    func unknownLengths() async throws {
      let server = try ScriptedServer { request in
        [.head("HTTP/1.1 200 OK"), .text("some"), .pause(milliseconds: 30), .close]
      }
      defer { server.stop() }
      let queue = queue {
        $0.maximumConcurrent = 1
        $0.learnsLengths = true
      }
      for number in 1...3 { queue.add(try .quick(server.url("/\(number)"))) }
      queue.start()
      await queue.finished()
      #expect(queue.progress.finishedCount == 3)
      for number in 1...3 {
        let probes = server.requests.filter { $0.target == "/\(number)" && $0.range?.last == 0 }
        #expect(probes.count <= 1)
      }
    }

    @Test("The total never moves backwards while requests are added late")
    func lateAdditions() async throws {
      var served = ServedFile(byteCount: 400_000)
      served.isPaced = true
      let file = served
      let server = try ScriptedServer(answer: file.answer)
      defer { server.stop() }
      let queue = queue {
        $0.maximumConcurrent = 2
        $0.learnsLengths = true
      }
      let watcher = Task {
        var totals: [Int64] = []
        var completed: [Int64] = []
        while !Task.isCancelled {
          let progress = queue.progress
          if let total = progress.totalByteCount { totals.append(total) }
          completed.append(progress.completedByteCount)
          if let fraction = progress.accurateFraction { #expect((0...1).contains(fraction)) }
          try? await Task.sleep(for: .milliseconds(1))
        }
        return (totals, completed)
      }
      queue.start()
      for number in 1...12 {
        queue.add(try .quick(server.url("/\(number)")))
        try await Task.sleep(for: .milliseconds(15))
      }
      await queue.finished()
      watcher.cancel()
      let (totals, completed) = await watcher.value
      #expect(totals == totals.sorted())
      #expect(completed == completed.sorted())
      #expect(queue.progress.totalByteCount == 4_800_000)
      #expect(queue.progress.simpleFraction == 1)
    }

    @Test("Uploads and downloads count in the direction that matters")
    func bothDirections() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("seven b") }
      defer { server.stop() }
      let queue = queue { $0.maximumConcurrent = 2 }
      queue.add(try .quick(server.url("/down")))
      var upload = try Request.quick(server.url("/up"))
      upload.method = .put
      upload.body = .bytes([UInt8](repeating: 1, count: 1000))
      queue.add(upload)
      queue.start()
      await queue.finished()
      #expect(queue.progress.completedByteCount == 1007)
      #expect(queue.progress.totalByteCount == 1007)
    }

    @Test("Lengths whose sum no number can hold make the greatest one, and no crash")
    func overflowingLengths() async throws {
      let server = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Content-Length: \(Int64(1) << 60)"), .text("x"), .hold]
      }
      defer { server.stop() }
      let queue = queue {
        $0.maximumConcurrent = 9
        $0.learnsLengths = false
      }
      let transfers = try (0..<9).map { queue.add(try .quick(server.url("/\($0)"), to: .stream())) }
      queue.start()
      try await eventually { transfers.allSatisfy { $0.progress.totalByteCount == 1 << 60 } }
      #expect(queue.progress.totalByteCount == .max)
      for transfer in transfers { transfer.cancel() }
      await queue.finished()
    }
  }
}
