import Dispatch
import Glibc
import Synchronization
import Testing

@testable import RemoteFiles

/// Look-ups in the cache while its disk stalls.
@Suite struct CacheOpenQueueTests {
  /// The calls so far, in order.
  private final class Journal: Sendable {
    private let lines = Mutex<[String]>([])

    func note(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }

    func wait(for count: Int) async throws {
      for _ in 0..<1000 where all.count < count { try await Task.sleep(for: .milliseconds(5)) }
    }
  }

  @Test("A look that ends in time is not late")
  func inTime() async throws {
    let looks = CacheOpenQueue(timeout: .seconds(2))
    let journal = Journal()
    for index in 0..<20 {
      looks.perform {
        journal.note("\(index)")
      } late: {
        journal.note("late \(index)")
      }
    }
    try await journal.wait(for: 20)
    try await Task.sleep(for: .milliseconds(2200))
    #expect(Set(journal.all) == Set((0..<20).map(String.init)))
    #expect(journal.all.count == 20)
  }

  @Test("Who waits for a disk that stands still is told once, and the look goes on")
  func stuck() async throws {
    // A busy machine delays the look that nothing holds up, but hardly by a second.
    let timeout = Duration.seconds(1)
    let looks = CacheOpenQueue(timeout: timeout)
    let journal = Journal()
    let disk = DispatchSemaphore(value: 0)
    looks.perform {
      disk.wait()
      journal.note("done")
    } late: {
      journal.note("late")
    }
    // The others continue meanwhile.
    looks.perform {
      journal.note("other")
    } late: {
      journal.note("other late")
    }
    try await journal.wait(for: 2)
    #expect(journal.all == ["other", "late"])
    try await Task.sleep(for: timeout * 2)
    disk.signal()
    try await journal.wait(for: 3)
    #expect(journal.all == ["other", "late", "done"])
  }

  @Test("While the disk stands still, what is asked for again is not kept; turns stay in order")
  func repeated() async throws {
    let looks = CacheOpenQueue(timeout: .milliseconds(50))
    let journal = Journal()
    let disk = DispatchSemaphore(value: 0)
    for _ in 0..<CacheOpenQueue.stuckCount {
      looks.perform {
        disk.wait()
      } late: {
        journal.note("late")
      }
    }
    try await journal.wait(for: CacheOpenQueue.stuckCount)
    for index in 0..<100 {
      looks.perform(isRepeated: index % 2 == 1) {
        journal.note("\(index)")
      } late: {
        journal.note("late")
      }
    }
    #expect(journal.all == [String](repeating: "late", count: 100 + CacheOpenQueue.stuckCount))
    // One thread continues, and executes the waiting look-ups in their order.
    disk.signal()
    try await journal.wait(for: 150 + CacheOpenQueue.stuckCount)
    #expect(
      journal.all.dropFirst(100 + CacheOpenQueue.stuckCount) == (0..<50).map { "\(2 * $0)" }[...])
    for _ in 1..<CacheOpenQueue.stuckCount { disk.signal() }
    // The disk works again: repeated look-ups are executed, too.
    try await Task.sleep(for: .milliseconds(100))
    looks.perform(isRepeated: true) {
      journal.note("again")
    } late: {
    }
    try await journal.wait(for: 151 + CacheOpenQueue.stuckCount)
    #expect(journal.all.last == "again")
  }

  @Test("While the disk stands still, newcomers are told at once; all looks are done")
  func allStuck() async throws {
    let looks = CacheOpenQueue(timeout: .milliseconds(100))
    let journal = Journal()
    let disk = DispatchSemaphore(value: 0)
    // One more than indicate a stall.
    let count = CacheOpenQueue.stuckCount + 1
    for _ in 0..<count {
      looks.perform {
        disk.wait()
        journal.note("done")
      } late: {
        journal.note("late")
      }
    }
    try await journal.wait(for: count)
    #expect(journal.all == [String](repeating: "late", count: count))
    looks.perform {
      journal.note("newcomer done")
    } late: {
      journal.note("newcomer late")
    }
    #expect(journal.all.last == "newcomer late")
    for _ in 0..<count { disk.signal() }
    try await journal.wait(for: 2 * count + 2)
    #expect(journal.all.count { $0 == "done" } == count)
    #expect(journal.all.contains("newcomer done"))
    // The disk works again.
    looks.perform {
      journal.note("later")
    } late: {
      journal.note("later late")
    }
    try await journal.wait(for: 2 * count + 3)
    #expect(journal.all.last == "later")
  }

  @Test("Looks that take long hold up no other", arguments: [1, 2])
  func slowLooks(rounds: Int) async throws {
    let looks = CacheOpenQueue(timeout: .seconds(60))
    let journal = Journal()
    let disk = DispatchSemaphore(value: 0)
    let count = rounds * CacheOpenQueue.width
    for _ in 0..<count {
      looks.perform {
        disk.wait()
        journal.note("slow")
      } late: {
      }
    }
    looks.perform {
      journal.note("quick")
    } late: {
    }
    try await journal.wait(for: 1)
    #expect(journal.all == ["quick"])
    for _ in 0..<count { disk.signal() }
    try await journal.wait(for: count + 1)
    #expect(journal.all.count == count + 1)
  }

  @Test("No more looks than a few run at a time while they are quick")
  func width() async throws {
    let looks = CacheOpenQueue(timeout: .seconds(60))
    let running = Mutex((now: 0, most: 0, ended: 0))
    for _ in 0..<500 {
      looks.perform {
        running.withLock {
          $0.now += 1
          $0.most = max($0.most, $0.now)
        }
        usleep(1000)
        running.withLock {
          $0.now -= 1
          $0.ended += 1
        }
      } late: {
      }
    }
    for _ in 0..<1000 where running.withLock({ $0.ended }) < 500 {
      try await Task.sleep(for: .milliseconds(5))
    }
    let (_, most, ended) = running.withLock { $0 }
    #expect(ended == 500)
    // On a busy machine some wait for a processor, and count as slow.
    #expect(most <= 2 * CacheOpenQueue.width, "\(most)")
  }
}
