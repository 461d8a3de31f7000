internal import HTTPTransferCore

/// When requests for one version may be sent again after failures or almost empty answers.
struct Backoff: Sendable {
  private(set) var failureCount = 0
  /// How many requests in a row have brought almost no bytes; ``forget(now:)`` does not reset it.
  private(set) var fruitlessCount = 0
  private(set) var retryAt: ContinuousClock.Instant?

  private static let fruitlessLimit = 16
  private static let fruitlessInterval = Duration.seconds(1)
  /// How many requests may be in flight while requests are fruitless, so one that hangs blocks no
  /// other.
  static let fruitlessRequestLimit = 4

  /// Whether so many requests in a row were fruitless that only a few more are sent, slowly,
  /// however often applications read.
  var isFruitless: Bool { fruitlessCount >= Self.fruitlessLimit }

  /// Whether it is too early for a request.
  func isPending(now: ContinuousClock.Instant) -> Bool { retryAt.map { now < $0 } ?? false }

  /// Notes that a request has brought enough; earlier failures are forgotten.
  mutating func recordFruitful() {
    failureCount = 0
    fruitlessCount = 0
    retryAt = nil
  }

  mutating func recordFruitless() { fruitlessCount += 1 }

  /// Ends the backoff, because no read waits for the retry any more.
  ///
  /// The next read does not wait for the retry either, unless requests are fruitless.
  ///
  /// - Returns: the delay before the next plan if requests are fruitless; nil otherwise.
  mutating func forget(now: ContinuousClock.Instant) -> Duration? {
    failureCount = 0
    retryAt = nil
    guard isFruitless else { return nil }
    retryAt = now + Self.fruitlessInterval
    return Self.fruitlessInterval
  }

  /// What follows from a failure that may be temporary.
  enum Decision {
    /// A retry is pending: requests that fail together count as one failure.
    case isWaitingAlready
    case retry(after: Duration)
  }

  /// Notes that a request failed for a reason that may be temporary.
  mutating func failed(
    _ error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant
  ) -> Decision {
    if isPending(now: now) { return .isWaitingAlready }
    failureCount += 1
    var delay = policy.delay(failures: failureCount, retryAfter: retryAfter, random: random)
    switch error.code {
    // Checking whether the network is back is free: no packet leaves the machine.
    case .disconnected: delay = min(delay, FetchConstants.disconnectionInterval)
    case .unreachable: delay = min(delay, FileSettings.unreachableRetryInterval)
    // A request that timed out has already waited.
    case .timedOut: delay = policy.delay(failures: 1, retryAfter: nil, random: random)
    default: break
    }
    retryAt = now + delay
    return .retry(after: delay)
  }
}
