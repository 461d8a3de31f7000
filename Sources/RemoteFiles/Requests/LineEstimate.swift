internal import HTTPTransferCore

/// The estimated speed of the connections to the servers of one version, and how many of them pay.
struct LineEstimate: Sendable {
  /// The seconds from request to response: a moving average over reused connections; nil before the
  /// first.
  private(set) var measuredRoundTrip: Double?
  /// Bytes per second of a connection, from the last segments.
  private(set) var connectionRate: Double?
  private var parallelism: ParallelismController
  /// The connections for read-ahead, if the user has set them.
  private var connections: Int?
  /// How many requests may be in flight; a number from the user limits all of them.
  private(set) var requestLimit: Int
  /// When a rate limit last delayed a request.
  private var throttledAt: ContinuousClock.Instant?
  let clock = MonotonicSeconds()

  /// `connections` is the user's setting, `learned` how many have paid at the host before.
  init(connections: Int?, learned: Int?) {
    self.connections = connections
    requestLimit = connections ?? FileSettings.demandConnectionLimit
    parallelism = Self.controller(connections: connections, learned: learned)
  }

  private static func controller(connections: Int?, learned: Int?) -> ParallelismController {
    if let connections {
      return ParallelismController(initial: connections, maximum: connections)
    }
    return ParallelismController(
      learned: learned, maximum: FileSettings.adaptiveConnectionLimit)
  }

  /// Adopts another number of connections from the user.
  mutating func follow(connections: Int?) {
    guard self.connections != connections else { return }
    self.connections = connections
    requestLimit = connections ?? FileSettings.demandConnectionLimit
    parallelism = Self.controller(connections: connections, learned: nil)
  }

  /// The time from request to response, in seconds; before the first response, a guess.
  var roundTrip: Double { measuredRoundTrip ?? FetchConstants.firstRoundTrip }

  /// How many connections read-ahead gets.
  var target: Int { parallelism.target }

  /// How many connections have paid for this file; nil if that is unknown.
  var provenConnections: Int? { parallelism.proven }

  /// Records the seconds that a request on a reused connection took to be answered.
  mutating func recordRoundTrip(_ seconds: Double) {
    measuredRoundTrip.average(in: seconds)
  }

  /// Records stored bytes of `segment`.
  mutating func recordRate(of segment: Segment, now: ContinuousClock.Instant) {
    if let rate = segment.rate(now: now) {
      connectionRate.average(in: rate)
    } else if let least = segment.minimumRate(now: now), least > connectionRate ?? 0 {
      connectionRate = least
    }
  }

  /// Records new bytes that were stored while `active` requests were in flight.
  ///
  /// `idle` is how long the network thread has waited so far.
  mutating func note(
    byteCount: Int64, active: Int, idle: Double, isWaited: Bool, now: ContinuousClock.Instant
  ) {
    parallelism.note(
      byteCount: byteCount, active: active, idle: idle, isWaited: isWaited,
      now: clock.seconds(at: now))
  }

  /// Reduces the connections, because the server cannot keep up.
  mutating func stepDown(now: ContinuousClock.Instant) {
    parallelism.stepDown(now: clock.seconds(at: now))
  }

  mutating func recordThrottled(now: ContinuousClock.Instant) { throttledAt = now }

  /// Whether a rate limit delayed a request recently.
  func wasThrottled(now: ContinuousClock.Instant) -> Bool {
    throttledAt.map { now - $0 < FetchConstants.throttleMemory } ?? false
  }
}
