internal import Dispatch
internal import Synchronization

/// Keeps one thread of the driver free of reads of cached bytes, which wait for the disk.
///
/// A read that would occupy the last one runs on another thread. So a hanging disk delays no other
/// request, and the watchdog does not unmount.
final class ReadPlaces: Sendable {
  private let limit: Int
  private let count = Atomic<Int>(0)
  /// One queue for each place: with many reads and a slow disk, a single queue would serialize
  /// them.
  private let queues: [DispatchQueue]
  private let lastQueue = Atomic<Int>(0)

  /// - Parameter limit: the maximum number of threads that read at the same time, at least 1.
  init(limit: Int) {
    self.limit = limit
    queues = (0..<limit).map { DispatchQueue(label: "httpfs.reads.\($0)") }
  }

  /// Counts a read on this thread, if there is a place.
  ///
  /// - Returns: whether this thread may read; if so, call ``end()`` afterwards.
  func begin() -> Bool {
    if count.wrappingAdd(1, ordering: .relaxed).newValue <= limit { return true }
    end()
    return false
  }

  func end() { count.wrappingSubtract(1, ordering: .relaxed) }

  /// Runs `work`, a read, on a thread that does not belong to the driver.
  func later(_ work: @escaping @Sendable () -> Void) {
    let index = lastQueue.wrappingAdd(1, ordering: .relaxed).oldValue
    queues[Int(UInt(bitPattern: index) % UInt(queues.count))].async(execute: work)
  }
}
