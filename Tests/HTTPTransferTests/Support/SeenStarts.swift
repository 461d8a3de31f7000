import Synchronization

/// The offsets at which requests have begun so far.
final class SeenStarts: Sendable {
  private let starts = Mutex<Set<Int>>([])

  /// Adds an offset; false if it was already present.
  func insert(_ start: Int) -> Bool { starts.withLock { $0.insert(start).inserted } }
}
