internal import HTTPTransferCore

/// When requests for one version may be sent again after failures or almost empty answers.
struct Backoff: Sendable {
  private(set) var failureCount = 0
  /// How many requests in a row have brought almost no bytes; ``forget(now:)`` does not reset it.
  private(set) var fruitlessCount = 0
  private(set) var retryAt: ContinuousClock.Instant?
  /// When the server was first found unreachable, and when last.
  private var outage: (since: ContinuousClock.Instant, seen: ContinuousClock.Instant)?
  /// When the server last brought bytes.
  private var lastStoredAt: ContinuousClock.Instant?

  /// The longest time without a request within one outage; the delays between retries are shorter.
  private static let outageMemory = Duration.seconds(10)
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

  /// Notes that the server has brought bytes.
  mutating func recordStored(now: ContinuousClock.Instant) {
    outage = nil
    lastStoredAt = now
  }

  /// Notes that a request has brought enough; earlier failures are forgotten.
  mutating func recordFruitful() {
    failureCount = 0
    fruitlessCount = 0
    retryAt = nil
  }

  mutating func recordFruitless() { fruitlessCount += 1 }

  /// Notes that a request is sent.
  mutating func recordRequest(now: ContinuousClock.Instant) {
    // The server may have been reachable while no request was sent.
    if let seen = outage?.seen, now - seen >= Self.outageMemory { outage = nil }
  }

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

  /// Moves the clock on by time during which no server could answer.
  mutating func postpone(by delay: Duration) {
    outage = outage.map { ($0.since + delay, $0.seen + delay) }
  }

  /// What follows from a failure that may be temporary.
  enum Decision {
    /// A retry is pending: requests that fail together count as one failure.
    case isWaitingAlready
    case retry(after: Duration)
    /// The server has been unreachable for so long that reads fail.
    case giveUp
  }

  /// Notes that a request failed for a reason that may be temporary.
  mutating func failed(
    _ error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant
  ) -> Decision {
    // An answer ends the outage even if it came from another server.
    if error.provesContact { outage = nil }
    if isPending(now: now) { return .isWaitingAlready }
    failureCount += 1
    if error.code == .unreachable || (error.code == .disconnected && !wasServed(by: now)) {
      let since = outage?.since ?? now
      outage = (since, now)
      if now - since >= FileSettings.unreachableTimeout { return .giveUp }
    }
    var delay = policy.delay(failures: failureCount, retryAfter: retryAfter, random: random)
    switch error.code {
    // Checking whether the network is back is free: no packet leaves the machine.
    case .disconnected: delay = min(delay, FetchConstants.disconnectionInterval)
    // A request that timed out has already waited.
    case .timedOut: delay = policy.delay(failures: 1, retryAfter: nil, random: random)
    default: break
    }
    retryAt = now + delay
    return .retry(after: delay)
  }

  /// Whether the server brought bytes recently; if so, a network that is down may be back before
  /// the deadline of the reads.
  private func wasServed(by now: ContinuousClock.Instant) -> Bool {
    lastStoredAt.map { now - $0 < FetchConstants.disconnectionTimeout } ?? false
  }
}
