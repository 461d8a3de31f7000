import Synchronization

/// Counts from 1, for scripts that answer the first request differently from the second.
final class Counter: Sendable {
  private let value = Atomic(0)

  /// The next number.
  func next() -> Int { value.add(1, ordering: .relaxed).newValue }
}
