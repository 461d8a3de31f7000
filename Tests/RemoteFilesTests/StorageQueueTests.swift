import Dispatch
import HTTPTransfer
import Testing

@testable import RemoteFiles

@Suite struct StorageQueueTests {
  private let queue = StorageQueue(client: HTTPClient())

  /// Hands over stores that wait for `gate`, one signal each.
  private func handOver(_ count: Int, _ gate: DispatchSemaphore) {
    for _ in 0..<count { queue.store { gate.wait() } }
  }

  @Test(
    "Whoever asks when eight buffers wait is to pause, and so is everybody until half are stored")
  func pauses() throws {
    let gate = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    let transfers = try transferIDs(3)
    handOver(7, gate)
    #expect(queue.hasRoom(for: transfers[0]))
    handOver(1, gate)
    #expect(!queue.hasRoom(for: transfers[0]))
    // One is stored: those who have paused go first.
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
    queue.store { gate.wait() }
    for number in 0..<100 {
      if number.isMultiple(of: 3) {
        queue.perform { log.append(number) }
      } else {
        queue.store { log.append(number) }
      }
    }
    gate.signal()
    queue.finish { log.append(100) }
    #expect(log.numbers == Array(0...100))
  }

  /// Confined to the queue until it has ended.
  private final class Log: @unchecked Sendable {
    private(set) var numbers: [Int] = []
    func append(_ number: Int) { numbers.append(number) }
  }
}
