import Foundation
import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Synchronization
import Testing

extension TransferTests {
  /// The thread that executes transfers, and the number of such threads.
  @Suite struct NetworkThreads {
    /// The number of network threads of this process.
    private static var threadCount: Int {
      let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
      return tasks.count { task in
        (try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8))
          == "httpfs-net\n"
      }
    }

    @Test("The thread comes with the first transfer, serves all, and goes when there is none")
    func threadLife() async {
      // Use a separate process, because other tests have network threads, too.
      await #expect(processExitsWith: .success) {
        let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
        let client = TransferClient()
        let queue = TransferQueue(client: client)
        for _ in 0..<20 { queue.add(try .quick(server.url("/"))) }
        guard NetworkThreads.threadCount == 0 else { exit(2) }
        queue.start()
        await queue.finished()
        guard queue.progress.finishedCount == 20 else { exit(3) }
        guard NetworkThreads.threadCount == 1 else { exit(4) }
        // The thread stays for a while, for programs that fetch one file after another.
        for _ in 0..<300 where NetworkThreads.threadCount > 0 {
          try await Task.sleep(for: .milliseconds(50))
        }
        guard NetworkThreads.threadCount == 0 else { exit(5) }
        guard try await client.get(RemoteURL(server.url("/"))).byteCount == 3 else { exit(6) }
        guard NetworkThreads.threadCount == 1 else { exit(7) }
      }
    }

    @Test("The count of active transfers rises and falls with them")
    func activeCount() async throws {
      let gate = Gate()
      let server = try ScriptedServer { _ in [.wait(for: gate)] + ScriptedServer.ok("end") }
      defer { server.stop() }
      defer { gate.open() }
      let client = TransferClient()
      #expect(client.activeTransferCount == 0)
      let transfers = try (0..<3).map { _ in client.transfer(try .quick(server.url("/"))) }
      for transfer in transfers { transfer.start() }
      try await server.waitForRequests(3)
      #expect(client.activeTransferCount == 3)
      transfers[0].cancel()
      _ = await TransferRun(transfers[0])
      #expect(client.activeTransferCount == 2)
      gate.open()
      for transfer in transfers[1...] { _ = await TransferRun(transfer) }
      #expect(client.activeTransferCount == 0)
    }

    /// The bytes of `count` chunks, each with one digit.
    private static func digits(inChunks count: Int) -> [UInt8] {
      (0..<count).flatMap { Array("1\r\n\($0 % 10)\r\n".utf8) }
    }

    @Test("A body in chunks of a byte, as fast as the line brings it, holds up no other exchange")
    func tinyChunks() async throws {
      let chunks = Self.digits(inChunks: 100_000)
      let hostile = try ScriptedServer { _ in
        [.head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")]
          + Array(repeating: .send(chunks), count: 1000)
      }
      defer { hostile.stop() }
      let other = try ScriptedServer { _ in ScriptedServer.ok("end") }
      defer { other.stop() }
      let client = TransferClient()
      let receivers = (0..<3).map { _ in CountingReceiver() }
      for receiver in receivers {
        client.exchanges.start(
          ExchangeRequest(url: try RemoteURL(hostile.url("/"))), receiver: receiver)
      }
      while receivers.contains(where: { $0.byteCount == 0 }) {
        try await Task.sleep(for: .milliseconds(2))
      }
      var worst = Duration.zero
      for _ in 0..<10 {
        let start = ContinuousClock.now
        let record = try await client.record(other.url("/"))
        worst = max(worst, ContinuousClock.now - start)
        #expect(record.text == "end")
      }
      // If libcurl read as long as bytes are available, each turn would take seconds.
      #expect(worst < .seconds(2), "\(worst)")
      client.exchanges.cancelAll()
    }

    @Test("A body in chunks of a byte arrives whole and in order")
    func tinyChunksInOrder() async throws {
      let count = 300_000
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"),
          .send(Self.digits(inChunks: count)),
          .text("0\r\n\r\n"),
        ]
      }
      defer { server.stop() }
      let record = try await TransferClient().record(server.url("/"))
      #expect(record.outcome == "finished")
      let digits = (0..<count).map { UInt8(ascii: "0") + UInt8($0 % 10) }
      #expect(record.body == digits)
    }

    @Test("Of a stream that is taken slowly, chunks of a byte become few large ones")
    func tinyChunksOfStream() async throws {
      let count = 300_000
      let server = try ScriptedServer { _ in
        [
          .head("HTTP/1.1 200 OK", "Transfer-Encoding: chunked"),
          .send(Self.digits(inChunks: count)), .text("0\r\n\r\n"),
        ]
      }
      defer { server.stop() }
      let transfer = TransferClient().transfer(
        try .quick(server.url("/"), to: .stream()))
      var chunks = transfer.body.makeAsyncIterator()
      var body = Array(try #require(try await chunks.next()))
      // The whole body arrives meanwhile.
      try await eventually { transfer.progress.receivedByteCount == Int64(count) }
      var chunkCount = 0
      while let chunk = try await chunks.next() {
        body += chunk
        chunkCount += 1
      }
      #expect(chunkCount < 20, "\(chunkCount)")
      let digits = (0..<count).map { UInt8(ascii: "0") + UInt8($0 % 10) }
      #expect(body == digits)
    }

    /// Counts the bytes of a body.
    private final class CountingReceiver: ExchangeReceiver {
      private let count = Atomic<Int>(0)

      var byteCount: Int { count.load(ordering: .relaxed) }

      func receive(
        head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
      ) -> ExchangeDisposition { .proceed }

      func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition {
        count.add(body.count, ordering: .relaxed)
        return .proceed
      }

      func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {}
    }
  }
}
