internal import HTTPTransferCore

/// What the line to the servers of one version gives, and how many connections are worth it.
struct LineEstimate: Sendable {
  /// The time from request to response, in seconds: a moving average over reused connections; nil before the
  /// first.
  private(set) var measuredRoundTrip: Double?
  /// Bytes per second of a connection, from the last segments.
  private(set) var connectionRate: Double?
  private var parallelism: ParallelismController
  /// The connections for read-ahead, where the user has set them.
  private var connections: Int?
  /// How many requests may be in flight: a number that the user gave holds for all of them.
  private(set) var requestLimit: Int
  /// When a rate limit last held a request back.
  private var throttledAt: ContinuousClock.Instant?
  let clock = MonotonicSeconds()

  /// `connections` are those that the user has set, `learned` how many have paid at the host before.
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

  /// The user has set another number of connections.
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

  /// How many connections have paid for this file; nil where that is not known.
  var provenConnections: Int? { parallelism.proven }

  /// A request on a reused connection took so long to be answered, in seconds.
  mutating func noteRoundTrip(_ seconds: Double) {
    measuredRoundTrip.average(in: seconds)
  }

  /// Some bytes of `segment` have been stored.
  mutating func noteRate(of segment: Segment, now: ContinuousClock.Instant) {
    if let rate = segment.rate(now: now) {
      connectionRate.average(in: rate)
    } else if let least = segment.leastRate(now: now), least > connectionRate ?? 0 {
      connectionRate = least
    }
  }

  /// So many new bytes were stored while `active` requests were in flight; `idle` is how long the network
  /// thread has waited so far.
  mutating func note(
    byteCount: Int64, active: Int, idle: Double, isWaited: Bool, now: ContinuousClock.Instant
  ) {
    parallelism.note(
      byteCount: byteCount, active: active, idle: idle, isWaited: isWaited,
      now: clock.seconds(at: now))
  }

  /// The server cannot keep up.
  mutating func stepDown(now: ContinuousClock.Instant) {
    parallelism.stepDown(now: clock.seconds(at: now))
  }

  mutating func noteThrottled(now: ContinuousClock.Instant) { throttledAt = now }

  /// Whether a rate limit has held a request back a moment ago.
  func wasThrottled(now: ContinuousClock.Instant) -> Bool {
    throttledAt.map { now - $0 < FetchConstants.throttleMemory } ?? false
  }
}
