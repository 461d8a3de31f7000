/// Decides which ranges of one file to request next.
///
/// Pure: state in, requests out.
///
/// A demand is a range that a parked read waits for; it is always fetched, at once. Read-ahead is
/// what a stream will want next; it uses the connections that demand leaves free.
package struct FetchPlanner: Sendable {
  /// A request in flight.
  package struct Flight: Sendable {
    package var id: Int
    /// The end of its stored bytes; the bytes from here to ``position`` have arrived but are not
    /// present yet.
    package var start: Int64
    /// The next byte that the request will bring.
    package var position: Int64
    /// The end of the bytes that the request will bring.
    package var end: Int64
    /// Bytes per second of its body so far; nil before the first byte.
    package var rate: Double?

    package init(id: Int, start: Int64, position: Int64, end: Int64, rate: Double?) {
      self.id = id
      self.start = start
      self.position = position
      self.end = end
      self.rate = rate
    }

    /// A request for `range` that has not been sent yet.
    init(planned range: ByteRange) {
      self.init(
        id: -1, start: range.lowerBound, position: range.lowerBound, end: range.upperBound,
        rate: nil)
    }

    /// The bytes that need no other request.
    var covered: ByteRange { start..<max(start, end) }

    /// The number of bytes that have yet to arrive.
    var missingByteCount: Int64 { max(0, end - position) }

    /// How long the missing bytes will take, in seconds; 0 while the rate is unknown.
    var missingSeconds: Double { rate.map { Double(missingByteCount) / max(1, $0) } ?? 0 }
  }

  /// A consumer that reads the file in order.
  package struct Reader: Sendable {
    /// The end of the bytes consumed so far.
    package var cursor: Int64
    /// How many bytes to fetch beyond the cursor; 0 for none.
    package var window: Int64

    package init(cursor: Int64, window: Int64) {
      self.cursor = cursor
      self.window = window
    }
  }

  /// The bounds of a plan.
  package struct Limits: Sendable {
    /// How many requests read-ahead may have in flight.
    package var connections: Int
    /// How many requests the file may have in flight, demand included.
    package var demandConnections: Int
    /// The time from a request to the first byte of its response, in seconds.
    package var roundTrip: Double
    /// The throughput of one connection in bytes per second.
    ///
    /// Nil while unknown, and also if the planner should not fill a connection of high latency.
    package var connectionRate: Double?

    package init(
      connections: Int, demandConnections: Int, roundTrip: Double, connectionRate: Double?
    ) {
      self.connections = connections
      self.demandConnections = demandConnections
      self.roundTrip = roundTrip
      self.connectionRate = connectionRate
    }
  }

  package struct Plan: Equatable, Sendable {
    /// The ranges to request now, most urgent first.
    package var starts: [ByteRange] = []
    /// Requests in flight to end at an earlier byte, because a demand beyond it cannot wait.
    package var cuts: [Cut] = []
  }

  package struct Cut: Equatable, Sendable {
    package var id: Int
    package var end: Int64
  }

  /// The page size: the unit of the kernel's reads, and the smallest useful request.
  package static let page: Int64 = 4096

  /// The smallest read-ahead request: below it, the response head and the round trip cost more than
  /// the body.
  static let minimumSegment: Int64 = 256 << 10

  /// The largest request: its end must remain movable.
  static let maximumSegment: Int64 = 64 << 20

  /// The largest read-ahead of one stream: 2 s at 1 Gbit/s.
  static let maximumWindow: Int64 = 256 << 20

  /// The window from which on the planner expects a reader to continue for long.
  static let provenWindow: Int64 = 512 << 10

  /// The factor by which the planner may exceed the window of such a reader to fill the connection.
  static let maximumGrowth: Int64 = 16

  /// How much should be in flight or read ahead, in bandwidth-delay products: the next requests
  /// must be under way before the previous ones end.
  static let linesAhead = 4.0

  /// How many bytes of a flight a demand waits for before it gets a separate request, while the
  /// rate is unknown.
  static let maximumWaitByteCount: Int64 = 1 << 20

  package init() {}

  /// - Parameters:
  ///   - length: the complete length of the file in bytes.
  ///   - extents: the extents that are present.
  ///   - flights: the requests in flight, in any order.
  ///   - demands: the ranges of the parked reads, ascending by lower bound.
  ///   - streams: the readers' positions.
  ///   - predictions: ranges that will probably be read next, the nearest first.
  ///   - limits: the bounds of the plan.
  /// - Returns: the requests to send and the flights to cut short.
  package func plan(
    length: Int64, extents: ExtentSet, flights: [Flight], demands: [ByteRange],
    streams: [Reader], predictions: [ByteRange] = [], limits: Limits
  ) -> Plan {
    var plan = Plan()
    var flights = flights
    for stream in streams where stream.window > 0 {
      planReadAhead(
        of: stream, length: length, extents: extents, flights: &flights, demands: demands,
        limits: limits, plan: &plan)
    }
    planDemands(
      demands, streams: streams, length: length, extents: extents, flights: &flights,
      limits: limits, plan: &plan)
    planPredictions(
      predictions, length: length, extents: extents, flights: &flights, limits: limits,
      plan: &plan)
    return plan
  }

  // MARK: Read-ahead

  private func planReadAhead(
    of stream: Reader, length: Int64, extents: ExtentSet, flights: inout [Flight],
    demands: [ByteRange], limits: Limits, plan: inout Plan
  ) {
    let window = Self.window(of: stream, limits: limits)
    // Bytes that the stream's own parked reads still lack come first, in the same request.
    let lower = demands.first { stream.isNear($0) }?.lowerBound
    // No sum may overflow: a server can claim any length, and a reader can seek to the end.
    let cursor = min(stream.cursor, length)
    let region = min(lower ?? cursor, length)..<(cursor + min(window, length - cursor))
    var holes = Self.subtract(flights, from: extents.holes(in: region))
    var free = limits.connections - activeCount(flights, limits: limits)
    // Equal segments finish in the order in which the reader needs them. The window holds two
    // rounds of segments, so a connection that finishes always has a next one.
    let segment = max(
      Self.minimumSegment, min(window / Int64(2 * limits.connections), Self.maximumSegment))
    while let hole = holes.first {
      // A range that a read waits for is requested in any case, together with the bytes after it.
      let isWanted = hole.lowerBound < stream.cursor
      guard flights.count < limits.demandConnections, free > 0 || isWanted else { break }
      let absent = holes.reduce(0) { $0 + $1.byteCount }
      guard isWanted || absent >= segment || holes.last?.upperBound == length else { break }
      var range = hole.lowerBound..<(hole.lowerBound + min(hole.byteCount, segment))
      if hole.upperBound - range.upperBound < Self.minimumSegment / 2 {
        range = hole  // Includes a small rest, which would cost a separate request.
      }
      plan.starts.append(range)
      flights.append(Flight(planned: range))
      holes[0] = range.upperBound..<hole.upperBound
      if holes[0].isEmpty { holes.removeFirst() }
      free -= 1
    }
    while free > 0, flights.count < limits.demandConnections,
      steal(in: region, flights: &flights, limits: limits, plan: &plan)
    {
      free -= 1
    }
  }

  /// How far to read ahead of a stream: as far as its reader has proved to read, or farther if the
  /// connection would otherwise idle.
  ///
  /// A window that grows by the bytes consumed doubles once a round trip. On a fast connection of
  /// high latency that wastes about a second.
  private static func window(of stream: Reader, limits: Limits) -> Int64 {
    var window = stream.window
    if window >= provenWindow, let rate = limits.connectionRate {
      let line = rate * Double(limits.connections) * limits.roundTrip * linesAhead
      window = max(window, min(maximumGrowth * window, Int64(min(line, Double(maximumWindow)))))
    }
    return min(window, maximumWindow)
  }

  /// Gives the second half of the flight in `region` that will end last to a free connection.
  ///
  /// Otherwise one slow segment would delay the reader and, through the window, all other segments.
  func steal(
    in region: ByteRange, flights: inout [Flight], limits: Limits, plan: inout Plan
  ) -> Bool {
    let candidates = flights.indices.filter {
      flights[$0].id >= 0 && flights[$0].covered.overlaps(region)
        && flights[$0].missingByteCount >= 2 * Self.minimumSegment
        && flights[$0].missingSeconds > max(0.1, limits.roundTrip * 6)
    }
    guard
      let index = candidates.max(by: { flights[$0].missingSeconds < flights[$1].missingSeconds })
    else { return false }
    let flight = flights[index]
    let middle = (flight.position + flight.missingByteCount / 2).roundedDown(to: 64 << 10)
    guard middle > flight.position, middle < flight.end else { return false }
    plan.cuts.append(Cut(id: flight.id, end: middle))
    plan.starts.append(middle..<flight.end)
    flights.append(Flight(planned: middle..<flight.end))
    flights[index].end = middle
    return true
  }

  /// The flights that will still be busy when a new request's first byte arrives.
  func activeCount(_ flights: [Flight], limits: Limits) -> Int {
    flights.reduce(0) { count, flight in
      let ending = flight.rate.map { Double(flight.missingByteCount) < $0 * limits.roundTrip * 2 }
      return count + (ending == true ? 0 : 1)
    }
  }

  // MARK: Predictions

  /// Requests the ranges that will probably be read, each in a separate request.
  ///
  /// The ranges are small and cost little but the round trip. Half of the connections stay free for
  /// actual reads.
  private func planPredictions(
    _ predictions: [ByteRange], length: Int64, extents: ExtentSet, flights: inout [Flight],
    limits: Limits, plan: inout Plan
  ) {
    for range in Self.joined(predictions).flatMap(Self.fromTheEnd) {
      let wanted = range.aligned(to: Self.page, limit: length)
      // A small remainder is not worth a request: the next prediction may be a page off.
      for absent in Self.subtract(flights, from: extents.holes(in: wanted))
      where 2 * absent.byteCount > wanted.byteCount {
        guard flights.count < limits.demandConnections / 2 else { return }
        plan.starts.append(absent)
        flights.append(Flight(planned: absent))
      }
    }
  }

  /// Splits a long range into parts, the last one first: long predictions are of backward readers.
  private static func fromTheEnd(_ range: ByteRange) -> [ByteRange] {
    let part = max(minimumSegment, range.byteCount / backwardPartCount)
    guard range.byteCount > part else { return [range] }
    var parts: [ByteRange] = []
    var end = range.upperBound
    while end > range.lowerBound {
      // No small rest at the far end.
      let start = end - range.lowerBound < part + part / 2 ? range.lowerBound : end - part
      parts.append(start..<end)
      end = start
    }
    return parts
  }

  /// The number of requests for the bytes that a backward reader will want next.
  private static let backwardPartCount: Int64 = 8

  /// Joins neighbouring ranges, up to a size that is worth a request.
  private static func joined(_ ranges: [ByteRange]) -> [ByteRange] {
    var joined: [ByteRange] = []
    for range in ranges {
      if let last = joined.last, last.byteCount + range.byteCount <= minimumSegment,
        last.lowerBound <= range.upperBound, range.lowerBound <= last.upperBound
      {
        joined[joined.count - 1] =
          min(last.lowerBound, range.lowerBound)..<max(last.upperBound, range.upperBound)
      } else {
        joined.append(range)
      }
    }
    return joined
  }

  // MARK: Demand

  private func planDemands(
    _ demands: [ByteRange], streams: [Reader], length: Int64, extents: ExtentSet,
    flights: inout [Flight], limits: Limits, plan: inout Plan
  ) {
    // A read elsewhere does not wait for the read-ahead of other streams: it may use one extra
    // request.
    var limits = limits
    let readers = streams.filter { $0.window > 0 }
    let isElsewhere =
      !readers.isEmpty
      && demands.contains { demand in !readers.contains { $0.isNear(demand) } }
    if isElsewhere { limits.demandConnections += 1 }
    let holes = demands.flatMap { extents.holes(in: $0.clamped(to: 0..<length)) }
    // All cuts come before the first start. Where demands overlap, a cut for one may remove bytes
    // that another, which begins earlier, still waits for. Each cut needs a connection for the
    // bytes removed.
    var free = limits.demandConnections - flights.count
    for hole in holes {
      cutLateFlights(for: hole, flights: &flights, free: &free, limits: limits, plan: &plan)
    }
    for hole in holes {
      let wanted = hole.aligned(to: Self.page, limit: length)
      for range in Self.subtract(flights, from: extents.holes(in: wanted)) {
        guard flights.count < limits.demandConnections else { return }
        plan.starts.append(range)
        flights.append(Flight(planned: range))
      }
    }
  }

  /// Cuts flights that would reach the start of the hole too late.
  private func cutLateFlights(
    for hole: ByteRange, flights: inout [Flight], free: inout Int, limits: Limits, plan: inout Plan
  ) {
    for index in flights.indices where free > 0 && flights[index].covered.overlaps(hole) {
      let flight = flights[index]
      guard flight.id >= 0, flight.position < hole.lowerBound else { continue }
      let before = hole.lowerBound - flight.position
      let soon = flight.rate.map { Int64($0 * max(0.1, limits.roundTrip * 2)) } ?? 0
      guard before > max(Self.maximumWaitByteCount, soon) else { continue }
      flights[index].end = hole.lowerBound
      free -= 1
      plan.cuts.append(Cut(id: flight.id, end: hole.lowerBound))
    }
  }

  /// The parts of `holes` that no flight will bring.
  static func subtract(_ flights: [Flight], from holes: [ByteRange]) -> [ByteRange] {
    var rest = holes
    for flight in flights where !flight.covered.isEmpty {
      rest = rest.flatMap { hole -> [ByteRange] in
        guard hole.overlaps(flight.covered) else { return [hole] }
        var parts: [ByteRange] = []
        if hole.lowerBound < flight.covered.lowerBound {
          parts.append(hole.lowerBound..<flight.covered.lowerBound)
        }
        if hole.upperBound > flight.covered.upperBound {
          parts.append(flight.covered.upperBound..<hole.upperBound)
        }
        return parts
      }
    }
    return rest
  }
}

extension Int64 {
  func roundedDown(to unit: Int64) -> Int64 { self / unit * unit }
}

extension FetchPlanner.Reader {
  /// Whether a parked read belongs to this stream's latest reads.
  fileprivate func isNear(_ demand: ByteRange) -> Bool {
    demand.lowerBound >= cursor - 2 * SequentialReaders.tolerance && demand.lowerBound < cursor
  }
}
