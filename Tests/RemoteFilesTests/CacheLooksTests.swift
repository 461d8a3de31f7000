import Dispatch
import Synchronization
import Testing

@testable import RemoteFiles

/// Looks into the cache while its disk stands still.
@Suite struct CacheLooksTests {
  /// What has been called, in order.
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
    let looks = CacheLooks(patience: .seconds(2))
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
    let looks = CacheLooks(patience: .milliseconds(50))
    let journal = Journal()
    let disk = DispatchSemaphore(value: 0)
    looks.perform {
      disk.wait()
      journal.note("done")
    } late: {
      journal.note("late")
    }
    // The others go on meanwhile.
    looks.perform {
      journal.note("other")
    } late: {
      journal.note("other late")
    }
    try await journal.wait(for: 2)
    #expect(journal.all == ["other", "late"])
    try await Task.sleep(for: .milliseconds(120))
    disk.signal()
    try await journal.wait(for: 3)
    #expect(journal.all == ["other", "late", "done"])
  }

  @Test("While the disk stands still, what is asked for again is not kept; turns stay in order")
  func repeated() async throws {
    let looks = CacheLooks(patience: .milliseconds(50))
    let journal = Journal()
    let disk = DispatchSemaphore(value: 0)
    for _ in 0..<CacheLooks.width {
      looks.perform {
        disk.wait()
      } late: {
        journal.note("late")
      }
    }
    try await journal.wait(for: CacheLooks.width)
    for index in 0..<100 {
      looks.perform(isRepeated: index % 2 == 1) {
        journal.note("\(index)")
      } late: {
        journal.note("late")
      }
    }
    #expect(journal.all == [String](repeating: "late", count: 100 + CacheLooks.width))
    // One thread goes on, and takes what waits in its order.
    disk.signal()
    try await journal.wait(for: 150 + CacheLooks.width)
    #expect(journal.all.dropFirst(100 + CacheLooks.width) == (0..<50).map { "\(2 * $0)" }[...])
    for _ in 1..<CacheLooks.width { disk.signal() }
    // The disk is well again: what is asked for again is done, too.
    try await Task.sleep(for: .milliseconds(100))
    looks.perform(isRepeated: true) {
      journal.note("again")
    } late: {
    }
    try await journal.wait(for: 151 + CacheLooks.width)
    #expect(journal.all.last == "again")
  }

  @Test("While all threads wait for the disk, newcomers are told at once; all looks are done")
  func allStuck() async throws {
    let looks = CacheLooks(patience: .milliseconds(100))
    let journal = Journal()
    let disk = DispatchSemaphore(value: 0)
    // One more than there are threads.
    let count = CacheLooks.width + 1
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
    // The disk is well again.
    looks.perform {
      journal.note("later")
    } late: {
      journal.note("later late")
    }
    try await journal.wait(for: 21)
    #expect(journal.all.last == "later")
  }
}
