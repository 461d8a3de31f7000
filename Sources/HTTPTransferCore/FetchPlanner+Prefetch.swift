extension FetchPlanner {
  /// The size of a request while the speed of its connection is unknown.
  static let firstPrefetchSegment: Int64 = 4 << 20

  /// How long a prefetch request should occupy a connection, in seconds: long enough to make its
  /// round trip negligible, short enough to end soon when a reader arrives.
  static let prefetchSeconds = 1.5

  private static let prefetchSegments: ClosedRange<Int64> = 1 << 20...32 << 20

  /// Plans the fetch of the whole file, from its first absent byte on, without any reader.
  ///
  /// - Parameters:
  ///   - length: the complete length of the file in bytes.
  ///   - extents: the extents that are present.
  ///   - flights: the requests in flight, in any order.
  ///   - limits: the bounds of the plan; ``Limits/connections`` counts all flights.
  /// - Returns: the requests to send and the flights to cut short.
  package func planPrefetch(
    length: Int64, extents: ExtentSet, flights: [Flight], limits: Limits
  ) -> Plan {
    var plan = Plan()
    var flights = flights
    let bound = min(limits.connections, limits.demandConnections)
    // Flights that are about to end make room for the next ones, as for read-ahead.
    var free = bound - activeCount(flights, limits: limits)
    guard free > 0, flights.count < limits.demandConnections else { return plan }
    let holes = Self.subtract(flights, from: extents.holes(in: 0..<max(0, length)))
    let absent = holes.reduce(0) { $0 + $1.byteCount }
    let worthwhile =
      limits.connectionRate.map { Int64(min($0, 1e12) * Self.prefetchSeconds) }
      ?? Self.firstPrefetchSegment
    let segment = max(
      Self.minimumSegment,
      min(
        min(max(worthwhile, Self.prefetchSegments.lowerBound), Self.prefetchSegments.upperBound),
        absent / Int64(bound)))
    for hole in holes {
      var rest = hole
      while !rest.isEmpty {
        guard free > 0, flights.count < limits.demandConnections else { return plan }
        var range = rest.lowerBound..<(rest.lowerBound + min(rest.byteCount, segment))
        // Include a small rest, which would otherwise cost a separate request.
        if rest.upperBound - range.upperBound < Self.minimumSegment / 2 { range = rest }
        plan.starts.append(range)
        flights.append(Flight(planned: range))
        rest = range.upperBound..<rest.upperBound
        free -= 1
      }
    }
    while free > 0, flights.count < limits.demandConnections,
      steal(in: 0..<max(0, length), flights: &flights, limits: limits, plan: &plan)
    {
      free -= 1
    }
    return plan
  }
}
