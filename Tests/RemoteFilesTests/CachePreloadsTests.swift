import Synchronization
import Testing

@testable import RemoteFiles

@Suite struct CachePreloadsTests {
  /// Look-ups in the cache that end on command.
  private final class Looks: Sendable {
    private let state = Mutex<(begun: [Int], ends: [@Sendable () -> Void])>(([], []))
    private let looks = CachePreloads(descriptorLimit: 128)

    var begun: [Int] { state.withLock { $0.begun } }

    func add(_ numbers: Range<Int>) {
      for number in numbers {
        looks.perform { ended in
          self.state.withLock {
            $0.begun.append(number)
            $0.ends.append(ended)
          }
        }
      }
    }

    func endFirst() {
      let end = state.withLock { $0.ends.removeFirst() }
      end()
    }
  }

  @Test("Few run at a time, in order")
  func width() {
    let looks = Looks()
    looks.add(0..<10)
    #expect(looks.begun == Array(0..<4))
    looks.endFirst()
    #expect(looks.begun == Array(0..<5))
    for _ in 0..<9 { looks.endFirst() }
    #expect(looks.begun == Array(0..<10))
    // All have ended: four begin again at once.
    looks.add(10..<16)
    #expect(looks.begun == Array(0..<14))
  }

  @Test(
    "All together take an eighth of the descriptors",
    arguments: [(16, 1), (96, 3), (1024, 32), (1 << 20, 32)])
  func descriptors(limit: Int, width: Int) {
    let looks = CachePreloads(descriptorLimit: limit)
    let begun = Atomic<Int>(0)
    for _ in 0..<100 { looks.perform { _ in begun.add(1, ordering: .relaxed) } }
    #expect(begun.load(ordering: .relaxed) == width)
  }

  @Test("While the disk stands still, a walk leaves no more than a bounded number waiting")
  func waiting() {
    let looks = Looks()
    looks.add(0..<1000)
    for _ in 0..<(4 + CachePreloads.waitingLimit) { looks.endFirst() }
    #expect(looks.begun == Array(0..<(4 + CachePreloads.waitingLimit)))
  }
}
