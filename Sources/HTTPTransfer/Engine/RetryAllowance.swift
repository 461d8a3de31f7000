internal import HTTPTransferCore

/// Limits how often a transfer retries, and how long it waits for a network.
struct RetryAllowance: Sendable {
  private let retryCount: Int
  /// How often a body that cannot be resumed was fetched, or sent, again.
  private var repeatCount = 0
  /// How often an answer was requested again because it looks like a stand-in for the file.
  private var doubtCount = 0
  /// How often the first answer was requested again because its modification date was too fresh.
  private var freshCount = 0
  /// How often a range was answered with the whole, although ranges have worked.
  private(set) var ignoredRangeCount = 0
  /// How often the transfer has started over.
  private var restartCount = 0
  /// Whether a server has brought bytes, even if the transfer started over since.
  private var hasBeenReached = false
  /// When the route to the server was lost; nil if there is one.
  private var disconnectedSince: ContinuousClock.Instant?

  /// The maximum number of restarts because the remote file has changed.
  ///
  /// An upload may be in progress, but a file that changes again and again is a fault of the
  /// server.
  private static let restartLimit = 3

  init(retryCount: Int) { self.retryCount = retryCount }

  /// Whether to retry because the answer looks like a stand-in for the file.
  mutating func mayDoubt() -> Bool {
    Self.take(&doubtCount, upTo: min(FetchConstants.doubtfulAnswerLimit, retryCount))
  }

  /// Whether to retry because the modification date is too fresh.
  mutating func mayAwaitDate() -> Bool {
    Self.take(&freshCount, upTo: FetchConstants.freshAnswerLimit)
  }

  /// Whether to retry a range that was answered with the whole.
  ///
  /// It may be the fault of one server among many.
  mutating func mayAskForRange() -> Bool { Self.take(&ignoredRangeCount, upTo: 2) }

  mutating func mayRestart() -> Bool { Self.take(&restartCount, upTo: Self.restartLimit) }

  private static func take(_ count: inout Int, upTo limit: Int) -> Bool {
    guard count < limit else { return false }
    count += 1
    return true
  }

  /// Whether to wait for a network that is down.
  mutating func waitsForRoute(now: ContinuousClock.Instant) -> Bool {
    let since = disconnectedSince ?? now
    disconnectedSince = since
    return now - since < FetchConstants.disconnectionTimeout
  }

  /// Records that bytes of a server were stored.
  mutating func recordConnection() {
    hasBeenReached = true
    disconnectedSince = nil
  }

  /// Counts a fetch of the whole from the start: the lost bytes are no reason to reset the count.
  ///
  /// - Returns: the number of such fetches.
  mutating func countRepeat() -> Int {
    repeatCount += 1
    return repeatCount
  }

  /// Whether to retry after `error`, which is the `attempt`th consecutive failure.
  func allows(_ attempt: Int, after error: TransferError, isConfirmed: Bool) -> Bool {
    // The name of a host that was never reached is probably mistyped.
    let isUnknown =
      !isConfirmed && !hasBeenReached
      && [.unresolvedHost, .connectionRefused, .timedOut].contains(error.code)
    // Servers of one name may disagree once or twice; after that, the file has changed.
    let limit = isUnknown ? 2 : error.code == .changed ? 3 : retryCount
    return attempt <= min(retryCount, limit)
  }
}
