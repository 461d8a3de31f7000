import Dispatch
import HTTPTransfer
import Testing

@Suite struct StorageQueueTests {
  private let queue = StorageQueue(client: ExchangeClient())

  /// Hands over a store that uses the disk exclusively.
  private func store(_ work: @escaping @Sendable () -> Void) {
    queue.store {
      work()
      return { true }
    } withoutDisk: {
      Issue.record("the disk does not stand still")
    }
  }

  /// Hands over stores that each wait for a signal of `gate`.
  private func enqueue(_ count: Int, _ gate: DispatchSemaphore) {
    for _ in 0..<count { store { gate.wait() } }
  }

  @Test(
    "Whoever asks when eight buffers wait is to pause, and so is everybody until half are stored")
  func pauses() throws {
    let gate = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    let transfers = try transferIDs(3)
    enqueue(7, gate)
    #expect(queue.hasRoom(for: transfers[0]))
    enqueue(1, gate)
    #expect(!queue.hasRoom(for: transfers[0]))
    // One store is done: paused transfers go first.
    queue.perform { ended.signal() }
    gate.signal()
    #expect(!queue.hasRoom(for: transfers[1]))
    for _ in 0..<7 { gate.signal() }
    ended.wait()
    queue.finish()
    #expect(queue.hasRoom(for: transfers[2]))
    #expect(queue.fullSeconds > 0)
  }

  @Test("What is handed over is done in its order, also with what only runs there")
  func order() {
    let gate = DispatchSemaphore(value: 0)
    let log = Log()
    store { gate.wait() }
    for number in 0..<100 {
      if number.isMultiple(of: 3) {
        queue.perform { log.append(number) }
      } else {
        store { log.append(number) }
      }
    }
    gate.signal()
    queue.finish { log.append(100) }
    #expect(log.numbers == Array(0...100))
  }

  @Test(
    "While the head of the queue does not move, the rest is done without the disk, once and in order"
  )
  func standsStill() {
    let gate = DispatchSemaphore(value: 0)
    let moves = DispatchSemaphore(value: 0)
    let log = Log()
    let done = DispatchSemaphore(value: 0)
    queue.perform {
      moves.signal()
      gate.wait()
    }
    moves.wait()
    for number in 0..<10 {
      if number == 5 {
        queue.divertIfStuck(now: .now)
        queue.divertIfStuck(now: .now + .seconds(2))
      }
      if number.isMultiple(of: 4) {
        queue.follow { log.append(number) }
      } else {
        queue.store {
          Issue.record("the disk stands still")
          return { true }
        } withoutDisk: {
          log.append(number)
        }
      }
    }
    queue.follow { done.signal() }
    // No store waits for the disk.
    done.wait()
    gate.signal()
    queue.finish()
    #expect(log.numbers == Array(0..<10))
    store { log.append(10) }
    queue.finish()
    #expect(log.numbers == Array(0...10))
  }

  @Test("What the disk says after it was done without says nothing")
  func lateAnswer() {
    let gate = DispatchSemaphore(value: 0)
    let moves = DispatchSemaphore(value: 0)
    let log = Log()
    queue.store {
      moves.signal()
      gate.wait()
      return {
        Issue.record("a late answer is taken")
        return false
      }
    } withoutDisk: {
      log.append(1)
    }
    moves.wait()
    queue.divertIfStuck(now: .now + .seconds(2))
    gate.signal()
    queue.finish()
    // Once, although the disk has not accepted it.
    #expect(log.numbers == [1])
  }

  @Test("An answer to reads that waits for the disk holds up nobody who needs no disk")
  func answerStandsStill() {
    let gate = DispatchSemaphore(value: 0)
    let moves = DispatchSemaphore(value: 0)
    let done = DispatchSemaphore(value: 0)
    queue.store {
      {
        moves.signal()
        gate.wait()
        return true
      }
    } withoutDisk: {
      Issue.record("what is stored is stored again")
    }
    moves.wait()
    queue.divertIfStuck(now: .now + .seconds(2))
    #expect(queue.isStuck)
    queue.follow { done.signal() }
    done.wait()
    gate.signal()
    queue.finish()
    #expect(!queue.isStuck)
  }

  @Test("What the disk does not take is done without it, once and in its order")
  func refused() throws {
    let log = Log()
    let transfer = try transferIDs(1)[0]
    for number in 0..<8 {
      queue.store {
        {
          log.append(10 * number)
          return !number.isMultiple(of: 2)
        }
      } withoutDisk: {
        log.append(10 * number + 1)
      }
    }
    queue.finish()
    #expect(log.numbers == [0, 1, 10, 20, 21, 30, 40, 41, 50, 60, 61, 70])
    // Each buffer has ended, and no longer counts.
    #expect(queue.hasRoom(for: transfer))
  }

  /// Confined to the queue until the queue has ended.
  private final class Log: @unchecked Sendable {
    private(set) var numbers: [Int] = []
    func append(_ number: Int) { numbers.append(number) }
  }
}
