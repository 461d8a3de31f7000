internal import Synchronization

/// Limits how many cache entries are opened before a caller needs them.
///
/// Each takes descriptors which programs may need, and a slow disk keeps them.
///
/// Its lock is a leaf.
final class CachePreloads: Sendable {
  /// Runs a preload, and calls its argument when the preload has ended.
  typealias Preload = @Sendable (_ ended: @escaping @Sendable () -> Void) -> Void

  /// How many may wait; further ones are dropped.
  static let waitingLimit = 128

  private struct State {
    var runningCount = 0
    var waiting: [Preload] = []
  }

  /// How many run at a time.
  private let width: Int
  private let state = Mutex(State())

  /// - Parameter descriptorLimit: how many descriptors the process may have open.
  init(descriptorLimit: Int) {
    // A preload has four descriptors open, so all of them together take an eighth.
    width = max(1, min(CacheOpenQueue.maximumWidth, descriptorLimit / 32))
  }

  /// Runs `preload` when its turn comes.
  func perform(_ preload: @escaping Preload) {
    let mayBegin = state.withLock { state in
      guard state.runningCount == width else {
        state.runningCount += 1
        return true
      }
      if state.waiting.count < Self.waitingLimit { state.waiting.append(preload) }
      return false
    }
    if mayBegin { run(preload) }
  }

  private func run(_ preload: Preload) {
    preload { [self] in
      let next = state.withLock { state -> Preload? in
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
