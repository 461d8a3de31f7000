/// The network over which a trace is replayed.
package struct ReplayNetwork: Sendable, Equatable {
  /// Seconds from a request to the first byte of its answer.
  package var roundTrip: Double
  /// The most bytes per second of one connection.
  package var connectionRate: Double
  /// The most bytes per second of all connections together.
  package var totalRate: Double

  /// By default 50 ms and 1 Gbit/s.
  package init(
    roundTrip: Double = 0.05, connectionRate: Double = 125e6, totalRate: Double = 125e6
  ) {
    self.roundTrip = roundTrip
    self.connectionRate = connectionRate
    self.totalRate = totalRate
  }
}

/// The cost of a replay.
package struct ReplayFigures: Sendable, Equatable {
  package var readCount = 0
  /// The bytes that were read, counted each time.
  package var readByteCount: Int64 = 0
  /// The bytes that were read, counted once.
  package var wantedByteCount: Int64 = 0
  /// The bytes that were transferred.
  package var fetchedByteCount: Int64 = 0
  package var requestCount = 0
  package var connectionCount = 0
  /// The reads and opens that had to wait for the network.
  package var waitCount = 0
  /// The sum of their waits, in seconds.
  package var waitedSeconds = 0.0
  /// The operations that would have waited forever: a defect of the planner.
  package var unansweredCount = 0
  /// From the first operation to the end of the last, in seconds.
  package var elapsedSeconds = 0.0
}
