import Foundation

/// Blocks threads of a server until a test opens it.
///
/// `@unchecked Sendable`: the condition guards `wasOpened`.
final class Gate: @unchecked Sendable {
  private let condition = NSCondition()
  private var wasOpened = false

  /// Whether it is open.
  var isOpen: Bool { condition.withLock { wasOpened } }

  /// Releases all waiting threads and all later ones.
  func open() {
    condition.withLock {
      wasOpened = true
      condition.broadcast()
    }
  }

  /// Returns when the gate is open, or after 600 s, so no thread waits forever.
  func wait() {
    let limit = Date(timeIntervalSinceNow: 600)
    condition.withLock {
      while !wasOpened, condition.wait(until: limit) {}
    }
  }
}
