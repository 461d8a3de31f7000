import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

extension TransferTests {
  /// Operations of a queue at the ends and beginnings of its transfers.
  @Suite struct QueueRaces {
    /// Sends head and body in one piece: two would wait 40 ms for each other (Nagle, delayed ACK).
    private static func server() throws -> ScriptedServer {
      try ScriptedServer { _ in [.text("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody")] }
    }

    /// The number and the kinds of ended transfers, according to the queue's events.
    private struct Ends: Equatable {
      var finished = 0
      var failed = 0

      /// Counts until all in the queue have ended.
      init(_ events: QueueEvents, atEach: @Sendable () -> Void = {}) async {
        for await event in events {
          switch event.kind {
          case .finished:
            finished += 1
            atEach()
          case .failed: failed += 1
          case .queueFinished: return
          case .added, .started: break
          }
        }
      }

      init(finished: Int) { self.finished = finished }
    }

    @Test("What is forgotten at each end holds up neither the others nor the end of all")
    func removeAtEachEnd() async throws {
      let server = try Self.server()
      defer { server.stop() }
      let queue = TransferQueue()
      let events = queue.events
      async let ends = Ends(events) { queue.removeEnded() }
      // Only the queue holds the transfers.
      for _ in 0..<600 { queue.add(try .quick(server.url("/"))) }
      queue.start()
      await queue.finished()
      #expect(await ends == Ends(finished: 600))
      #expect(server.requests.count == 600)
      queue.removeEnded()
      #expect(queue.transfers.isEmpty)
    }

    @Test("Forgetting at any moment, from another thread, loses no end")
    func removeAtAnyMoment() async throws {
      let server = try Self.server()
      defer { server.stop() }
      let queue = TransferQueue()
      let events = queue.events
      async let ends = Ends(events)
      // With many listeners the end of each takes a while.
      let listeners = try (0..<600).map { _ in
        let transfer = queue.add(try .quick(server.url("/")))
        return (0..<100).map { _ in transfer.events }
      }
      defer { withExtendedLifetime(listeners) {} }
      let remover = Task.detached {
        while !Task.isCancelled {
          queue.removeEnded()
          await Task.yield()
        }
      }
      defer { remover.cancel() }
      queue.start()
      await queue.finished()
      #expect(await ends == Ends(finished: 600))
      #expect(server.requests.count == 600)
    }

    @Test("Of each transfer it is told that it was added before it is told that it has started")
    func addedBeforeStarted() async throws {
      let server = try Self.server()
      defer { server.stop() }
      let queue = TransferQueue()
      // Delivery takes a while: many listeners get the event before the relevant one.
      let listeners = (0..<200).map { _ in queue.events }
      defer { withExtendedLifetime(listeners) {} }
      let listener = queue.events
      let url = server.url("/")
      queue.start()
      // Slots become free on the network thread, while these threads add transfers.
      try await withThrowingTaskGroup { group in
        for _ in 0..<4 {
          group.addTask {
            for number in 0..<200 {
              var request = try Request.quick(url)
              // The newest transfer is the next to start, immediately after it was added.
              request.priority = number
              queue.add(request)
            }
          }
        }
        try await group.waitForAll()
      }
      await queue.finished()
      var steps: [TransferID: [String]] = [:]
      var endCount = 0
      for await event in listener {
        switch event.kind {
        case .added(let id): steps[id, default: []].append("added")
        case .started(let id): steps[id, default: []].append("started")
        case .finished(let id, _):
          steps[id, default: []].append("finished")
          endCount += 1
        case .failed(let id, _): steps[id, default: []].append("failed")
        case .queueFinished: break
        }
        if endCount == 800 { break }
      }
      #expect(steps.count == 800)
      let wrong = steps.values.filter { $0 != ["added", "started", "finished"] }
      #expect(wrong.isEmpty)
    }
  }
}
