/// The number of extra requests that a mount or a download may send: 5 %, and one.
package struct HedgeBudget: Sendable {
  private var requestCount = 0
  private var hedgeCount = 0
  /// The end of the pause in hedges after a server's refusal, by its origin.
  private var rests: [String: ContinuousClock.Instant] = [:]

  package init() {}

  private static let requestsPerHedge = 20

  /// How long a server that refused a request gets no hedges.
  private static let rest = Duration.seconds(30)

  /// The number of hedges that may be sent now for a file on the servers of `origins`.
  ///
  /// It is 0 if all of them refused a request lately.
  package func allowance(at origins: @autoclosure () -> [String], now: ContinuousClock.Instant)
    -> Int
  {
    if !rests.isEmpty, origins().allSatisfy({ rests[$0].map { now < $0 } ?? false }) { return 0 }
    return max(0, 1 + requestCount / Self.requestsPerHedge - hedgeCount)
  }

  package mutating func recordRequests(_ count: Int, hedges: Int) {
    requestCount += count
    hedgeCount += hedges
  }

  /// Gives back a hedge whose server could not be used: the next one goes to another server.
  package mutating func takeBackHedge() { hedgeCount -= 1 }

  package mutating func recordRefusal(by origin: String, now: ContinuousClock.Instant) {
    rests = rests.filter { now < $0.value }
    rests[origin] = now + Self.rest
  }
}
