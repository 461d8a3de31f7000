import Synchronization

/// The places at which requests have begun so far.
final class SeenStarts: Sendable {
  private let starts = Mutex<Set<Int>>([])

  /// Enters a place; false if it has been seen before.
  func insert(_ start: Int) -> Bool { starts.withLock { $0.insert(start).inserted } }
}
