internal import Synchronization

/// Limits how many looks into the cache run before a caller needs them.
///
/// Each takes descriptors which programs may need, and a slow disk keeps them.
///
/// Its lock is a leaf.
final class LooksAhead: Sendable {
  /// Runs a look, and calls its argument when the look has ended.
  typealias Look = @Sendable (_ ended: @escaping @Sendable () -> Void) -> Void

  /// How many may wait; further ones are dropped.
  static let waitingLimit = 128

  private struct State {
    var runningCount = 0
    var waiting: [Look] = []
  }

  /// How many run at a time.
  private let width: Int
  private let state = Mutex(State())

  /// - Parameter descriptorLimit: how many descriptors the process may have open.
  init(descriptorLimit: Int) {
    // A look has four descriptors open, so all of them together take an eighth.
    width = max(1, min(CacheLooks.maximumWidth, descriptorLimit / 32))
  }

  /// Runs `look` when its turn comes.
  func perform(_ look: @escaping Look) {
    let mayBegin = state.withLock { state in
      guard state.runningCount == width else {
        state.runningCount += 1
        return true
      }
      if state.waiting.count < Self.waitingLimit { state.waiting.append(look) }
      return false
    }
    if mayBegin { run(look) }
  }

  private func run(_ look: Look) {
    look { [self] in
      let next = state.withLock { state -> Look? in
        if state.waiting.isEmpty {
          state.runningCount -= 1
          return nil
        }
        return state.waiting.removeFirst()
      }
      if let next { run(next) }
    }
  }
}
