import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTransferFoundation
import Testing

extension TransferTests {
  /// `Foundation.Progress` for transfers and queues.
  ///
  /// The progress object is updated a moment later: a test waits until it shows the expected state,
  /// and the suite's time limit ends a test that waits forever.
  @Suite struct FoundationProgresses {
    private static let half = [UInt8](repeating: 7, count: 1 << 20)
    private let client = TransferClient()

    private func until(_ condition: () -> Bool) async throws {
      while !condition() { try await Task.sleep(for: .milliseconds(2)) }
    }

    /// A server that sends a body of two halves, the second slowly until the gate is open.
    private func halvingServer(_ gate: Gate, declaresLength: Bool = true) throws -> ScriptedServer {
      try ScriptedServer { _ in
        let length = declaresLength ? ["Content-Length: \(2 * Self.half.count)"] : []
        let head = (["HTTP/1.1 200 OK", "Connection: close"] + length + ["", ""])
        return [
          .text(head.joined(separator: "\r\n")), .send(Self.half),
          .trickle(Self.half, until: gate), .close,
        ]
      }
    }

    private func request(
      _ server: ScriptedServer, _ path: String = "/a", checksum: Checksum? = nil
    ) throws -> Request {
      var request = Request(url: try RemoteURL(server.url(path)), destination: .memory())
      request.retries = 0
      // Servers wait for tests, which may be slow beside hundreds of others.
      request.stallTimeout = .seconds(300)
      request.checksum = checksum
      return request
    }

    // MARK: A transfer

    @Test("It counts bytes, knows speed and time left, and is 1 at the end")
    func bytes() async throws {
      let gate = Gate()
      let server = try halvingServer(gate)
      defer { server.stop() }
      let transfer = client.transfer(try request(server))
      let progress = transfer.makeProgress()
      let parent = Progress(totalUnitCount: 10)
      parent.addChild(progress, withPendingUnitCount: 10)
      #expect(progress.isIndeterminate && progress.kind == .file)
      transfer.start()
      try await until { progress.completedUnitCount >= Self.half.count / 2 }
      #expect(progress.totalUnitCount == Int64(2 * Self.half.count))
      #expect(progress.fractionCompleted > 0 && progress.fractionCompleted < 1)
      #expect(parent.fractionCompleted > 0 && parent.fractionCompleted < 1)
      try await until {
        (progress.userInfo[.throughputKey] as? Int ?? 0) > 0
          && (progress.userInfo[.estimatedTimeRemainingKey] as? Double ?? 0) > 0
      }
      gate.open()
      _ = try await transfer.result()
      try await until { progress.isFinished }
      #expect(progress.completedUnitCount == Int64(2 * Self.half.count))
      #expect(progress.fractionCompleted == 1 && parent.fractionCompleted == 1)
      #expect(progress.userInfo[.throughputKey] as? Int == 0)
    }

    @Test("Without a length it is indeterminate while its bytes are counted, then it is 1")
    func unknownLength() async throws {
      let gate = Gate()
      let server = try halvingServer(gate, declaresLength: false)
      defer { server.stop() }
      let transfer = client.transfer(try request(server))
      let progress = transfer.makeProgress()
      transfer.start()
      try await until { progress.completedUnitCount >= Self.half.count / 2 }
      #expect(progress.isIndeterminate && progress.totalUnitCount == -1)
      gate.open()
      _ = try await transfer.result()
      try await until { progress.isFinished }
      #expect(progress.totalUnitCount == Int64(2 * Self.half.count))
      #expect(progress.completedUnitCount == progress.totalUnitCount)
    }

    @Test("A body whose bytes are all there and wrong never makes it 1")
    func wrongChecksum() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("all of it") }
      defer { server.stop() }
      let wrong = try Checksum("md5=00000000000000000000000000000000")
      let transfer = client.transfer(try request(server, checksum: wrong))
      let progress = transfer.makeProgress()
      await #expect(throws: TransferError.self) { _ = try await transfer.result() }
      try await until { progress.completedUnitCount == 8 }
      #expect(progress.totalUnitCount == 9)
      #expect(!progress.isFinished && progress.fractionCompleted < 1)
    }

    @Test("An empty body ends as 1 of 1")
    func empty() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("") }
      defer { server.stop() }
      let transfer = client.transfer(try request(server))
      let progress = transfer.makeProgress()
      _ = try await transfer.result()
      try await until { progress.isFinished }
      #expect(progress.fractionCompleted == 1)
    }

    @Test("A progress made after the end shows the end")
    func late() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("abc") }
      defer { server.stop() }
      let transfer = client.transfer(try request(server))
      _ = try await transfer.result()
      let progress = transfer.makeProgress()
      #expect(progress.isFinished && progress.completedUnitCount == 3)
    }

    @Test("Its verbs are the transfer's")
    func verbs() async throws {
      let gate = Gate()
      let server = try halvingServer(gate)
      defer { server.stop() }
      defer { gate.open() }
      let transfer = client.transfer(try request(server))
      let progress = transfer.makeProgress()
      transfer.start()
      try await until { progress.completedUnitCount > 0 }
      progress.pause()
      try await until { transfer.state == .paused }
      progress.resume()
      try await until { transfer.state != .paused }
      progress.cancel()
      try await until { transfer.state == .cancelled }
      #expect(!progress.isFinished)
    }

    @Test("It keeps no transfer alive that has ended, and none that nobody starts")
    func ownership() async throws {
      let server = try ScriptedServer { _ in ScriptedServer.ok("abc") }
      defer { server.stop() }
      weak var ended: Transfer?
      weak var idle: Transfer?
      let progress: Progress
      do {
        let transfer = client.transfer(try request(server))
        ended = transfer
        progress = transfer.makeProgress()
        _ = try await transfer.result()
      }
      do {
        let transfer = client.transfer(try request(server))
        idle = transfer
        _ = transfer.makeProgress()
      }
      try await until { ended == nil && idle == nil }
      #expect(progress.isFinished)
    }

    // MARK: A queue

    @Test("The simple progress of a queue moves once for each transfer, failures included")
    func simpleQueue() async throws {
      let gates = (0..<5).map { _ in Gate() }
      let server = try ScriptedServer { request in
        let index = Int(request.target.dropFirst()) ?? 0
        let answer =
          index == 2
          ? [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")] : ScriptedServer.ok("abc")
        return [.wait(for: gates[index])] + answer
      }
      defer { server.stop() }
      let queue = TransferQueue(client: client)
      for index in gates.indices { queue.add(try request(server, "/\(index)")) }
      let progress = queue.makeProgress()
      #expect(progress.totalUnitCount == 5 && progress.fractionCompleted == 0)
      queue.start()
      for (index, gate) in gates.enumerated() {
        #expect(progress.completedUnitCount == Int64(index))
        gate.open()
        try await until { progress.completedUnitCount > Int64(index) }
      }
      #expect(progress.fractionCompleted == 1)
      #expect(progress.userInfo[.fileTotalCountKey] as? Int == 5)
      #expect(progress.userInfo[.fileCompletedCountKey] as? Int == 5)
    }

    @Test("The accurate progress of a queue moves with bytes, and goes on when something is added")
    func accurateQueue() async throws {
      let gate = Gate()
      let server = try halvingServer(gate)
      defer { server.stop() }
      let queue = TransferQueue(client: client)
      let progress = queue.makeProgress(style: .accurate)
      #expect(progress.isIndeterminate)
      queue.add(try request(server))
      queue.add(try request(server))
      queue.start()
      // Bytes of the first may arrive before the length of the second.
      try await until {
        progress.completedUnitCount >= Self.half.count
          && progress.totalUnitCount == Int64(4 * Self.half.count)
      }
      #expect(progress.fractionCompleted < 1)
      gate.open()
      await queue.finished()
      try await until { progress.isFinished }
      #expect(progress.completedUnitCount == Int64(4 * Self.half.count))
      queue.add(try request(server))
      await queue.finished()
      try await until { progress.completedUnitCount == Int64(6 * Self.half.count) }
      #expect(progress.totalUnitCount == Int64(6 * Self.half.count))
    }

    @Test("The verbs of a queue's progress are the queue's, and it keeps no queue alive")
    func queueVerbs() async throws {
      let gate = Gate()
      let server = try halvingServer(gate)
      defer { server.stop() }
      defer { gate.open() }
      weak var abandoned: TransferQueue?
      do {
        let queue = TransferQueue(client: client)
        abandoned = queue
        let transfer = queue.add(try request(server))
        let progress = queue.makeProgress()
        progress.resume()
        try await until { transfer.state == .running }
        progress.pause()
        try await until { transfer.state == .paused }
        progress.resume()
        try await until { transfer.state == .running }
        progress.cancel()
        try await until { transfer.state == .cancelled && progress.fractionCompleted == 1 }
        queue.removeEnded()
      }
      try await until { abandoned == nil }
    }
  }
}
