internal import Synchronization

/// The state of a file, which its parts share, and the lock that guards it.
///
/// Lock order: it comes before the lock of a version.
final class GuardedKnowledge: Sendable {
  private let state = Mutex(FileKnowledge())

  func withLock<Result: Sendable>(_ body: (inout FileKnowledge) -> Result) -> Result {
    state.withLock { body(&$0) }
  }
}
