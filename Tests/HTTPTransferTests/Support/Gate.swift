import Foundation

/// Lets threads of a server wait until a test opens it.
///
/// `@unchecked Sendable`: `wasOpened` is guarded by the condition.
final class Gate: @unchecked Sendable {
  private let condition = NSCondition()
  private var wasOpened = false

  /// Whether it is open.
  var isOpen: Bool { condition.withLock { wasOpened } }

  /// Lets those who wait continue, and all who come later.
  func open() {
    condition.withLock {
      wasOpened = true
      condition.broadcast()
    }
  }

  /// Returns when the gate is open, or after 600 s, so no thread is there for ever.
  func wait() {
    let limit = Date(timeIntervalSinceNow: 600)
    condition.withLock {
      while !wasOpened, condition.wait(until: limit) {}
    }
  }
}
