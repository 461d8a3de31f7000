internal import Dispatch
internal import Synchronization

/// Keeps a libfuse thread free of reads of cached bytes, which wait for the disk: a read that would take the last
/// one is answered on another.
///
/// A disk that hangs then holds up no other request, nor has the watchdog take the mount down.
final class ReadPlaces: Sendable {
  private let limit: Int
  private let count = Atomic<Int>(0)
  /// As many as places: where many reads come at once, and the disk is slow, one would answer them in turn.
  private let queues: [DispatchQueue]
  private let lastQueue = Atomic<Int>(0)

  /// - Parameter limit: how many threads may be at reads at a time, at least 1.
  init(limit: Int) {
    self.limit = limit
    queues = (0..<limit).map { DispatchQueue(label: "httpfs.reads.\($0)") }
  }

  /// - Returns: whether a thread may be at a read; ``end()`` follows then.
  func begin() -> Bool {
    if count.wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
    end()
    return false
  }

  func end() { count.wrappingSubtract(1, ordering: .relaxed) }

  /// Runs `work`, a read, on a thread that is none of libfuse's.
  func later(_ work: @escaping @Sendable () -> Void) {
    let index = lastQueue.wrappingAdd(1, ordering: .relaxed).oldValue
    queues[Int(UInt(bitPattern: index) % UInt(queues.count))].async(execute: work)
  }
}
