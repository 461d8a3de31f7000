internal import HTTPTransferCore

/// When requests for one version may be sent again, after some that have failed or brought next to nothing.
struct Backoff: Sendable {
  private(set) var failureCount = 0
  /// How many requests in a row have brought next to nothing, whatever became of those who waited.
  private(set) var fruitlessCount = 0
  private(set) var retryAt: ContinuousClock.Instant?
  /// Since when the server cannot be reached, and when that was last seen.
  private var outage: (since: ContinuousClock.Instant, seen: ContinuousClock.Instant)?
  /// When the server last brought bytes.
  private var lastStoredAt: ContinuousClock.Instant?

  /// How far apart two failures of one outage may be: more than the look-up of a name takes.
  private static let outageMemory = Duration.seconds(10)
  private static let fruitlessLimit = 16
  private static let fruitlessInterval = Duration.seconds(1)
  /// How many requests are in flight then: one that hangs does not keep the others back.
  static let fruitlessRequestLimit = 4

  /// Whether so many requests in a row brought nothing that only few more are sent, slowly, however
  /// often somebody reads.
  var isFruitless: Bool { fruitlessCount >= Self.fruitlessLimit }

  /// Whether it is too early for a request.
  func isPending(now: ContinuousClock.Instant) -> Bool { retryAt.map { now < $0 } ?? false }

  /// The server has brought bytes.
  mutating func noteStored(now: ContinuousClock.Instant) {
    outage = nil
    lastStoredAt = now
  }

  /// A request has brought enough: earlier failures are forgotten.
  mutating func noteFruitful() {
    failureCount = 0
    fruitlessCount = 0
    retryAt = nil
  }

  mutating func noteFruitless() { fruitlessCount += 1 }

  /// Nobody waits any more for what was to be tried again: who comes next does not wait for it either,
  /// unless request after request has been in vain.
  ///
  /// - Returns: after what delay to plan again in that case.
  mutating func forget(now: ContinuousClock.Instant) -> Duration? {
    failureCount = 0
    retryAt = nil
    guard isFruitless else { return nil }
    retryAt = now + Self.fruitlessInterval
    return Self.fruitlessInterval
  }

  /// Time has passed during which no server could answer.
  mutating func postpone(by delay: Duration) {
    outage = outage.map { ($0.since + delay, $0.seen + delay) }
  }

  /// What follows from a failure that may pass.
  enum Decision {
    /// Requests that fail together are one failure.
    case isWaitingAlready
    case retry(after: Duration)
    /// The server cannot be reached for so long that reads fail.
    case giveUp
  }

  /// A request failed in a way that may pass.
  mutating func failed(
    _ error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant
  ) -> Decision {
    if isPending(now: now) { return .isWaitingAlready }
    failureCount += 1
    if error.code == .unreachable || (error.code == .disconnected && !wasServed(by: now)) {
      // While nobody asked, it may have been there.
      let known = outage.flatMap { now - $0.seen < Self.outageMemory ? $0.since : nil }
      let since = known ?? now
      outage = (since, now)
      if now - since >= FileSettings.unreachablePatience { return .giveUp }
    }
    var delay = policy.delay(failures: failureCount, retryAfter: retryAfter, random: random)
    switch error.code {
    // To look whether the network is back costs nothing: no packet leaves the machine.
    case .disconnected: delay = min(delay, FetchConstants.disconnectionInterval)
    // A request that was timed out has waited already.
    case .timedOut: delay = policy.delay(failures: 1, retryAfter: nil, random: random)
    default: break
    }
    retryAt = now + delay
    return .retry(after: delay)
  }

  /// Whether the server has brought bytes a short while ago: a network that is down then may come back
  /// before the reads' deadline.
  private func wasServed(by now: ContinuousClock.Instant) -> Bool {
    lastStoredAt.map { now - $0 < FetchConstants.disconnectionPatience } ?? false
  }
}
