internal import Synchronization

/// Whether the cache can store bytes at the moment.
///
/// After a failure the cache is not written to for a while, and bytes that arrive are served from
/// memory; then the next bytes try the cache again. `.status` shows the last failure until storing
/// works again.
final class CacheHealth: Sendable {
  /// How long the cache is not written to after a failure.
  static let timeout = Duration.seconds(5)

  private struct State {
    var error: String?
    var failureCount = 0
    var retryAt: ContinuousClock.Instant?
  }

  private let state = Mutex(State())
  /// Read for every buffer that is stored, so that no lock is taken while the cache works.
  private let hasFailed = Atomic<Bool>(false)

  /// Whether to try to store.
  func mayStore(now: ContinuousClock.Instant = .now) -> Bool {
    guard hasFailed.load(ordering: .acquiring) else { return true }
    return state.withLock { $0.retryAt.map { now >= $0 } ?? true }
  }

  /// Notes that the cache has failed; `reason` describes the failure in one line.
  func recordFailure(_ reason: String, now: ContinuousClock.Instant = .now) {
    state.withLock {
      $0.error = reason
      $0.failureCount += 1
      $0.retryAt = now + Self.timeout
    }
    hasFailed.store(true, ordering: .releasing)
  }

  func recordSuccess() {
    guard hasFailed.exchange(false, ordering: .acquiringAndReleasing) else { return }
    state.withLock {
      $0.error = nil
      $0.retryAt = nil
    }
  }

  /// The last failure, if storing has not worked since, and the number of all failures so far.
  var report: (error: String?, failureCount: Int) {
    state.withLock { ($0.error, $0.failureCount) }
  }
}
