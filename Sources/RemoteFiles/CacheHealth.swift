internal import Synchronization

/// Whether the cache takes what is to be stored.
///
/// After a failure it is left alone for a while, and what arrives is served from memory; then the
/// next bytes try it again. `.status` shows the last failure until storing works again.
final class CacheHealth: Sendable {
  /// How long the cache is left alone after a failure.
  static let patience = Duration.seconds(5)

  private struct State {
    var error: String?
    var failureCount = 0
    var retryAt: ContinuousClock.Instant?
  }

  private let state = Mutex(State())
  /// Looked at for every buffer that is stored: no lock while all is well.
  private let hasFailed = Atomic<Bool>(false)

  /// Whether to try to store.
  func mayStore(now: ContinuousClock.Instant = .now) -> Bool {
    guard hasFailed.load(ordering: .acquiring) else { return true }
    return state.withLock { $0.retryAt.map { now >= $0 } ?? true }
  }

  /// The cache has failed; `reason` says in one line what did.
  func noteFailure(_ reason: String, now: ContinuousClock.Instant = .now) {
    state.withLock {
      $0.error = reason
      $0.failureCount += 1
      $0.retryAt = now + Self.patience
    }
    hasFailed.store(true, ordering: .releasing)
  }

  func noteSuccess() {
    guard hasFailed.exchange(false, ordering: .acquiringAndReleasing) else { return }
    state.withLock {
      $0.error = nil
      $0.retryAt = nil
    }
  }

  /// The failure that has not been overcome yet, and the number of all failures so far.
  var report: (error: String?, failureCount: Int) {
    state.withLock { ($0.error, $0.failureCount) }
  }
}
