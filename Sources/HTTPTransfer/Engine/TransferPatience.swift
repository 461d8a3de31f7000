internal import HTTPTransferCore

/// How often a transfer still tries again, and how long it waits for a network.
struct TransferPatience: Sendable {
  private let retryCount: Int
  /// How often a body that cannot be gone on with was fetched, or sent, again.
  private var repeatCount = 0
  /// How often an answer was asked for again because it looks like a stand-in for the file.
  private var doubtCount = 0
  /// How often the first answer was asked for again because its modification date was too fresh.
  private var freshCount = 0
  /// How often a range was answered with the whole, though ranges have worked.
  private(set) var ignoredRangeCount = 0
  /// How often everything has begun anew.
  private var restartCount = 0
  /// Whether a server has brought something, even if the transfer began again since.
  private var hasBeenReached = false
  /// Since when no route has led to the server.
  private var disconnectedSince: ContinuousClock.Instant?

  /// How often a transfer may begin anew because the remote file has changed: once for an upload
  /// under way, once more for good measure, and then it is a server that cannot make up its mind.
  private static let restartLimit = 3

  init(retryCount: Int) { self.retryCount = retryCount }

  /// Whether to ask again because the answer looks like a stand-in for the file.
  mutating func mayDoubt() -> Bool {
    Self.take(&doubtCount, upTo: min(FetchConstants.doubtfulAnswerLimit, retryCount))
  }

  /// Whether to ask again because the modification date is too fresh.
  mutating func mayAwaitDate() -> Bool {
    Self.take(&freshCount, upTo: FetchConstants.freshAnswerLimit)
  }

  /// Whether to ask again for a range that was answered with the whole: it may be one server's
  /// fault of many.
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
    return now - since < FetchConstants.disconnectionPatience
  }

  /// A server has brought something.
  mutating func noteConnection() {
    hasBeenReached = true
    disconnectedSince = nil
  }

  /// All that was brought is lost, so bringing something is no reason to count anew.
  ///
  /// - Returns: how often that has happened.
  mutating func countRepeat() -> Int {
    repeatCount += 1
    return repeatCount
  }

  /// Whether to try again after the failure `error`, which is the `attempt`th in a row.
  func allows(_ attempt: Int, after error: TransferError, isConfirmed: Bool) -> Bool {
    // A host that was never reached is more likely mistyped than tired.
    let isUnknown =
      !isConfirmed && !hasBeenReached
      && [.unresolvedHost, .connectionRefused, .timedOut].contains(error.code)
    // Servers of one name may disagree once or twice; what they agree on is a change.
    let limit = isUnknown ? 2 : error.code == .changed ? 3 : retryCount
    return attempt <= min(retryCount, limit)
  }
}
