/// How long to wait before a request is sent again.
public struct RetryPolicy: Sendable {
  /// The delay after the first failure.
  public var base: Duration
  /// The upper bound of the delay.
  public var ceiling: Duration
  /// The longest `Retry-After` that is obeyed.
  public var retryAfterCeiling: Duration

  public init(
    base: Duration = .milliseconds(100), ceiling: Duration = .seconds(5),
    retryAfterCeiling: Duration = .seconds(30)
  ) {
    self.base = base
    self.ceiling = ceiling
    self.retryAfterCeiling = retryAfterCeiling
  }

  /// The delay after `failures` failures in a row: doubled each time, times a random factor in
  /// [½, 1].
  ///
  /// The random factor keeps many clients from returning together.
  ///
  /// - Parameters:
  ///   - failures: the number of failures in a row, at least 1.
  ///   - retryAfter: the delay that the server asks for.
  ///   - random: a number in [0, 1].
  /// - Returns: the time to wait.
  public func delay(failures: Int, retryAfter: Duration?, random: Double) -> Duration {
    let doublings = min(max(failures, 1) - 1, 16)
    let full = min(base * (1 << doublings), ceiling)
    let backoff = full * (0.5 + random / 2)
    guard let retryAfter else { return backoff }
    return max(backoff, min(retryAfter, retryAfterCeiling))
  }
}
