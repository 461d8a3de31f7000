import Foundation
import HTTPTransfer
import HTTPTransferCore
import Testing

extension TransferTests {
  /// The thread that carries transfers out, and the count of those.
  @Suite struct NetworkThreads {
    /// How many threads of this process are network threads.
    private static var threadCount: Int {
      let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
      return tasks.count { task in
        (try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8))
          == "httpfs-net\n"
      }
    }

    @Test("The thread comes with the first transfer, serves all, and goes when there is none")
    func threadLife() async {
      // In a process of its own, because other tests have network threads, too.
      await #expect(processExitsWith: .success) {
        let server = try ScriptedServer { _ in ScriptedServer.ok("end") }
        let client = HTTPClient()
        let queue = TransferQueue(client: client)
        for _ in 0..<20 { queue.add(try .quick(server.url("/"))) }
        guard NetworkThreads.threadCount == 0 else { exit(2) }
        queue.start()
        await queue.finished()
        guard queue.progress.finishedCount == 20 else { exit(3) }
        guard NetworkThreads.threadCount == 1 else { exit(4) }
        // It stays for a while, for a program that fetches one thing after another.
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
      let client = HTTPClient()
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
  }
}
