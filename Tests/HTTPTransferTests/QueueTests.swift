import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// The order of transfers and the operations of a queue, as the server sees them.
  @Suite struct Queues {
    /// A server whose answers for each path wait for the test.
    private final class GatedServer: Sendable {
      let server: ScriptedServer
      private let gates: [String: Gate]

      init(_ paths: [String]) throws {
        let gates = Dictionary(uniqueKeysWithValues: paths.map { ($0, Gate()) })
        self.gates = gates
        server = try ScriptedServer { request in
          guard let gate = gates[request.target] else {
            return [.head("HTTP/1.1 404 Not Found", "Content-Length: 0")]
          }
          return [.wait(for: gate)] + ScriptedServer.ok("body of \(request.target)")
        }
      }

      deinit {
        for gate in gates.values { gate.open() }
        server.stop()
      }

      func open(_ paths: String...) { for path in paths { gates[path]?.open() } }
      func openAll() { for gate in gates.values { gate.open() } }
      var targets: [String] { server.requests.map(\.target) }
      func request(_ path: String) throws -> Request { try .quick(server.url(path)) }
    }

    private static let paths = (1...8).map { "/\($0)" }

    private func queue(
      _ change: (inout TransferQueue.Configuration) -> Void = { _ in }
    ) -> TransferQueue {
      var configuration = TransferQueue.Configuration()
      change(&configuration)
      return TransferQueue(configuration: configuration)
    }

    /// Waits long enough for a forbidden event to occur.
    private func settle() async throws { try await Task.sleep(for: .milliseconds(60)) }

    // MARK: Running

    @Test("A queue starts suspended")
    func suspended() async throws {
      let server = try GatedServer(Self.paths)
      server.openAll()
      let queue = queue()
      let transfer = queue.add(try server.request("/1"))
      try await settle()
      #expect(server.targets == [])
      #expect(transfer.state == .queued)
      queue.start()
      await queue.finished()
      #expect(try await transfer.result().body == Array("body of /1".utf8))
      #expect(queue.progress.finishedCount == 1)
    }

    @Test("Four run at once, in the order of adding, and the next when one ends")
    func fourAtOnce() async throws {
      let server = try GatedServer(Self.paths)
      let queue = queue()
      for path in Self.paths { queue.add(try server.request(path)) }
      queue.start()
      try await server.server.waitForRequests(4)
      try await settle()
      #expect(Set(server.targets) == ["/1", "/2", "/3", "/4"])
      #expect(queue.progress.runningCount == 4)
      server.open("/2")
      try await server.server.waitForRequests(5)
      try await settle()
      #expect(server.targets.last == "/5")
      #expect(server.targets.count == 5)
      server.openAll()
      await queue.finished()
      #expect(server.targets.count == 8)
      #expect(queue.progress.finishedCount == 8)
    }

    @Test("Of those that wait, the one with the highest priority is next")
    func priorities() async throws {
      let server = try GatedServer(Self.paths)
      server.openAll()
      let queue = queue { $0.maximumConcurrent = 1 }
      for (path, priority) in [("/1", 0), ("/2", -1), ("/3", 5), ("/4", 0), ("/5", 5)] {
        var request = try server.request(path)
        request.priority = priority
        queue.add(request)
      }
      queue.start()
      await queue.finished()
      #expect(server.targets == ["/3", "/5", "/1", "/4", "/2"])
    }

    @Test("One host's limit leaves room for another host")
    func perHost() async throws {
      let one = try GatedServer(Self.paths)
      let two = try GatedServer(Self.paths)
      let queue = queue { $0.maximumPerHost = 1 }
      for path in ["/1", "/2", "/3"] { queue.add(try one.request(path)) }
      queue.add(try two.request("/1"))
      queue.start()
      try await one.server.waitForRequests(1)
      try await two.server.waitForRequests(1)
      try await settle()
      #expect(one.targets == ["/1"])
      #expect(two.targets == ["/1"])
      one.open("/1")
      try await one.server.waitForRequests(2)
      one.openAll()
      two.openAll()
      await queue.finished()
      #expect(one.targets == ["/1", "/2", "/3"])
      #expect(one.server.maximumOpenCount == 1)
    }

    // MARK: Pausing

    @Test("A queued transfer that is paused is passed over until it is resumed")
    func pauseQueued() async throws {
      let server = try GatedServer(Self.paths)
      server.openAll()
      let queue = queue { $0.maximumConcurrent = 1 }
      let paused = queue.add(try server.request("/1"))
      let other = queue.add(try server.request("/2"))
      paused.pause()
      queue.start()
      _ = try await other.result()
      try await settle()
      #expect(server.targets == ["/2"])
      #expect(paused.state == .paused)
      paused.resume()
      #expect(try await paused.result().body == Array("body of /1".utf8))
      await queue.finished()
    }

    @Test("A running transfer that is paused gives its place away, and gets one back")
    func pauseRunning() async throws {
      let server = try GatedServer(Self.paths)
      let queue = queue { $0.maximumConcurrent = 1 }
      let paused = queue.add(try server.request("/1"))
      let other = queue.add(try server.request("/2"))
      queue.start()
      try await server.server.waitForRequests(1)
      paused.pause()
      try await server.server.waitForRequests(2)
      #expect(server.targets == ["/1", "/2"])
      paused.resume()
      try await settle()
      // Its place is taken.
      #expect(server.targets.count == 2)
      server.openAll()
      #expect(try await other.result().body == Array("body of /2".utf8))
      #expect(try await paused.result().body == Array("body of /1".utf8))
      await queue.finished()
    }

    @Test("A queue that is suspended holds what runs and begins nothing; started, it goes on")
    func suspend() async throws {
      let server = try GatedServer(Self.paths)
      let queue = queue { $0.maximumConcurrent = 2 }
      let transfers = try ["/1", "/2", "/3"].map { queue.add(try server.request($0)) }
      queue.start()
      try await server.server.waitForRequests(2)
      queue.suspend()
      try await eventually { transfers[0].state == .paused && transfers[1].state == .paused }
      server.openAll()
      try await settle()
      #expect(!server.targets.contains("/3"))
      #expect(queue.progress.finishedCount == 0)
      queue.start()
      await queue.finished()
      #expect(queue.progress.finishedCount == 3)
      for transfer in transfers {
        let result = try await transfer.result()
        #expect(result.byteCount == 10)
      }
    }

    // MARK: Cancelling

    @Test("A queued transfer that is cancelled never runs, and the others do")
    func cancelQueued() async throws {
      let server = try GatedServer(Self.paths)
      server.openAll()
      let queue = queue { $0.maximumConcurrent = 1 }
      let transfers = try ["/1", "/2", "/3"].map { queue.add(try server.request($0)) }
      transfers[1].cancel()
      queue.start()
      await queue.finished()
      #expect(server.targets == ["/1", "/3"])
      #expect(await TransferRun(transfers[1]).error?.code == .cancelled)
      #expect(queue.progress.cancelledCount == 1)
      #expect(queue.progress.finishedCount == 2)
    }

    @Test("Cancelling in a suspended queue ends the transfer at once")
    func cancelSuspended() async throws {
      let server = try GatedServer(Self.paths)
      let queue = queue()
      let transfer = queue.add(try server.request("/1"))
      transfer.cancel()
      #expect(await TransferRun(transfer).error?.code == .cancelled)
      await queue.finished()
      #expect(server.targets == [])
    }

    @Test("Cancelling all ends what runs, what is paused and what waits")
    func cancelAll() async throws {
      let server = try GatedServer(Self.paths)
      let queue = queue { $0.maximumConcurrent = 2 }
      let transfers = try Self.paths.map { queue.add(try server.request($0)) }
      transfers[7].pause()
      queue.start()
      try await server.server.waitForRequests(2)
      queue.cancelAll()
      await queue.finished()
      for transfer in transfers {
        #expect(await TransferRun(transfer).error?.code == .cancelled)
      }
      #expect(queue.progress.cancelledCount == 8)
      // Waiting transfers do not start in the places of those that were cancelled first.
      #expect(Set(server.targets) == ["/1", "/2"])
      #expect(queue.client.activeTransferCount == 0)
    }

    @Test("Cancelling the task that waits for a queue cancels what is in it")
    func cancelWaiter() async throws {
      let server = try GatedServer(Self.paths)
      let queue = queue()
      let transfer = queue.add(try server.request("/1"))
      queue.start()
      try await server.server.waitForRequests(1)
      let task = Task { await queue.finished() }
      task.cancel()
      await task.value
      #expect(await TransferRun(transfer).error?.code == .cancelled)
    }

    // MARK: Failing

    @Test("A failure leaves the others alone")
    func failure() async throws {
      let server = try GatedServer(Self.paths)
      server.openAll()
      let queue = queue { $0.maximumConcurrent = 1 }
      let bad = queue.add(try server.request("/none"))
      let good = try ["/1", "/2"].map { queue.add(try server.request($0)) }
      queue.start()
      await queue.finished()
      #expect(await TransferRun(bad).error?.status == 404)
      for transfer in good { #expect(await TransferRun(transfer).result != nil) }
      #expect(queue.progress.failedCount == 1)
      #expect(queue.progress.finishedCount == 2)
    }

    @Test("A queue that stops at a failure cancels what has not ended")
    func stopsAtFailure() async throws {
      let server = try GatedServer(Self.paths)
      let queue = queue {
        $0.maximumConcurrent = 2
        $0.stopsAtFailure = true
      }
      let running = queue.add(try server.request("/1"))
      let bad = queue.add(try server.request("/none"))
      let waiting = queue.add(try server.request("/2"))
      queue.start()
      await queue.finished()
      #expect(await TransferRun(bad).error?.status == 404)
      #expect(await TransferRun(running).error?.code == .cancelled)
      #expect(await TransferRun(waiting).error?.code == .cancelled)
      #expect(!server.targets.contains("/2"))
    }

    // MARK: Events

    @Test("Each transfer's steps are told, and each time that everything has ended")
    func events() async throws {
      let server = try GatedServer(Self.paths)
      server.openAll()
      let queue = queue { $0.maximumConcurrent = 1 }
      var events = queue.events.makeAsyncIterator()
      let first = queue.add(try server.request("/1"))
      let second = queue.add(try server.request("/none"))
      queue.start()
      var words: [String] = []
      var numbers: [Int] = []
      func take(_ count: Int) async {
        for _ in 0..<count {
          guard let event = await events.next() else { return }
          numbers.append(event.number)
          switch event.kind {
          case .added(let id): words.append("added \(id == first.id ? 1 : id == second.id ? 2 : 3)")
          case .started(let id):
            words.append("started \(id == first.id ? 1 : id == second.id ? 2 : 3)")
          case .finished(let id, _): words.append("finished \(id == first.id ? 1 : 3)")
          case .failed(let id, let error):
            words.append("failed \(id == second.id ? 2 : 0) \(error.status ?? 0)")
          case .queueFinished: words.append("queue finished")
          }
        }
      }
      await take(7)
      #expect(
        words == [
          "added 1", "added 2", "started 1", "finished 1", "started 2", "failed 2 404",
          "queue finished",
        ])
      words = []
      queue.add(try server.request("/3"))
      await take(4)
      #expect(words == ["added 3", "started 3", "finished 3", "queue finished"])
      #expect(numbers == Array(0..<11))
    }

    @Test("What has ended can be forgotten")
    func removeEnded() async throws {
      let server = try GatedServer(Self.paths)
      server.open("/1")
      let queue = queue { $0.maximumConcurrent = 2 }
      let done = queue.add(try server.request("/1"))
      let waiting = queue.add(try server.request("/2"))
      queue.start()
      _ = try await done.result()
      try await server.server.waitForRequests(2)
      // The queue registers the end after the waiting caller has got it.
      try await eventually {
        queue.removeEnded()
        return queue.transfers.map(\.id) == [waiting.id]
      }
      #expect(queue.progress.transferCount == 1)
      server.openAll()
      await queue.finished()
    }

    @Test("An empty queue is finished")
    func empty() async {
      let queue = queue()
      queue.start()
      await queue.finished()
      #expect(
        queue.progress
          == {
            var progress = QueueProgress()
            progress.totalByteCount = 0
            return progress
          }())
      #expect(queue.progress.simpleFraction == 0)
    }
  }
}
