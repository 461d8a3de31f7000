/// The network over which a trace is replayed.
public struct ReplayNetwork: Sendable, Equatable {
  /// Seconds from a request to the first byte of its answer.
  public var roundTrip: Double
  /// The most bytes per second of one connection.
  public var connectionRate: Double
  /// The most bytes per second of all connections together.
  public var totalRate: Double

  /// By default 50 ms and 1 Gbit/s.
  public init(
    roundTrip: Double = 0.05, connectionRate: Double = 125e6, totalRate: Double = 125e6
  ) {
    self.roundTrip = roundTrip
    self.connectionRate = connectionRate
    self.totalRate = totalRate
  }
}

/// The cost of a replay.
public struct ReplayFigures: Sendable, Equatable {
  public var readCount = 0
  /// The bytes that were read, counted each time.
  public var readByteCount: Int64 = 0
  /// The bytes that were read, counted once.
  public var wantedByteCount: Int64 = 0
  /// The bytes that were transferred.
  public var fetchedByteCount: Int64 = 0
  public var requestCount = 0
  public var connectionCount = 0
  /// The reads and opens that had to wait for the network.
  public var waitCount = 0
  /// The sum of their waits, in seconds.
  public var waitedSeconds = 0.0
  /// The operations that would have waited forever: a defect of the planner.
  public var unansweredCount = 0
  /// From the first operation to the end of the last, in seconds.
  public var elapsedSeconds = 0.0
}
