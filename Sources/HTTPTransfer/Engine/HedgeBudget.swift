/// How many more requests than needed a mount, or a download, may send: 5 %, and one.
package struct HedgeBudget: Sendable {
  private var requestCount = 0
  private var hedgeCount = 0
  /// Until when the refusals of a server forbid more, by its origin.
  private var rests: [String: ContinuousClock.Instant] = [:]

  package init() {}

  private static let requestsPerHedge = 20

  /// How long a server that refuses gets no request that it need not have.
  private static let rest = Duration.seconds(30)

  /// How many hedges may be sent now for a file that the servers of `origins` have: none where all of them
  /// have refused something lately.
  package func allowance(at origins: @autoclosure () -> [String], now: ContinuousClock.Instant)
    -> Int
  {
    if !rests.isEmpty, origins().allSatisfy({ rests[$0].map { now < $0 } ?? false }) { return 0 }
    return max(0, 1 + requestCount / Self.requestsPerHedge - hedgeCount)
  }

  package mutating func noteRequests(_ count: Int, hedges: Int) {
    requestCount += count
    hedgeCount += hedges
  }

  package mutating func noteRefusal(by origin: String, now: ContinuousClock.Instant) {
    rests = rests.filter { now < $0.value }
    rests[origin] = now + Self.rest
  }
}
