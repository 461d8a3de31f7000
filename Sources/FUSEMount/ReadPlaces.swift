internal import Dispatch
internal import Synchronization

/// Keeps a libfuse thread free of reads of cached bytes, which wait for the disk: a read that would take the last
/// one is answered on a queue.
///
/// A disk that hangs then holds up no other request, nor has the watchdog take the mount down.
final class ReadPlaces: Sendable {
  private let limit: Int
  private let count = Atomic<Int>(0)
  private let queue = DispatchQueue(label: "httpfs.reads")

  /// - Parameter limit: how many threads may be at reads at a time.
  init(limit: Int) { self.limit = limit }

  /// - Returns: whether a thread may be at a read; ``end()`` follows then.
  func begin() -> Bool {
    if count.wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
    end()
    return false
  }

  func end() { count.wrappingSubtract(1, ordering: .relaxed) }

  /// Runs `work`, a read, after those that were handed over before.
  func later(_ work: @escaping @Sendable () -> Void) { queue.async(execute: work) }
}
