import HTTPTransferCore
import SeededRandom
import Testing

/// The properties that every plan must have.
@Suite struct FetchPlannerPropertyTests {
  /// A situation in which to plan.
  private struct Situation {
    var length: Int64
    var extents = ExtentSet()
    var flights: [FetchPlanner.Flight] = []
    var demands: [ByteRange] = []
    var streams = SequentialReaders()
    var limits: FetchPlanner.Limits

    /// A file with all features that can occur together.
    ///
    /// It has extents, flights at every stage, demands present, in flight and absent, readers and
    /// random access.
    init(using random: inout SeededGenerator) {
      length = .random(in: 1...(96 << 20), using: &random)
      let connections = Int.random(in: 1...16, using: &random)
      limits = FetchPlanner.Limits(
        connections: connections,
        demandConnections: connections + Int.random(in: 0...16, using: &random),
        roundTrip: .random(in: 0.001...0.3, using: &random), connectionRate: nil)
      for _ in 0..<Int.random(in: 0...6, using: &random) {
        extents.insert(randomRange(upTo: 16 << 20, using: &random))
      }
      addFlights(count: .random(in: 0...12, using: &random), using: &random)
      demands = (0..<Int.random(in: 0...8, using: &random)).map { _ in
        let range = randomRange(upTo: 1 << 20, using: &random)
        return Bool.random(using: &random) ? range : range.aligned(to: 4096, limit: length)
      }
      for _ in 0..<Int.random(in: 0...4, using: &random) { addReader(using: &random) }
      demands.sort { $0.lowerBound < $1.lowerBound }
    }

    private func randomRange(upTo most: Int64, using random: inout SeededGenerator) -> ByteRange {
      let offset = Int64.random(in: 0..<length, using: &random)
      let byteCount = Int64.random(in: 1...min(most, length - offset), using: &random)
      return ByteRange(offset: offset, byteCount: byteCount)
    }

    private mutating func addFlights(count: Int, using random: inout SeededGenerator) {
      var taken = extents
      for id in 0..<count {
        let place = randomRange(upTo: 32 << 20, using: &random)
        guard let hole = taken.firstHole(in: place) else { continue }
        taken.insert(hole)
        flights.append(
          FetchPlanner.Flight(
            id: id, start: hole.lowerBound,
            position: .random(in: hole.lowerBound...hole.upperBound, using: &random),
            end: hole.upperBound,
            rate: Bool.random(using: &random) ? .random(in: 1e4...2e8, using: &random) : nil))
      }
    }

    /// Adds a reader, which sometimes waits for its last read.
    private mutating func addReader(using random: inout SeededGenerator) {
      var range = randomRange(upTo: 131_072, using: &random)
      let step = range.byteCount * (Bool.random(using: &random) ? 1 : 4)
      for _ in 0..<Int.random(in: 1...60, using: &random) {
        streams.note(range)
        let next = ByteRange(offset: range.lowerBound + step, byteCount: range.byteCount)
          .clamped(to: 0..<length)
        guard !next.isEmpty else { break }
        range = next
      }
      streams.note(range)
      if Bool.random(using: &random) { demands.append(range) }
    }

    func plan() -> FetchPlanner.Plan {
      FetchPlanner().plan(
        length: length, extents: extents, flights: flights, demands: demands,
        streams: streams.readers, limits: limits)
    }

    /// The flights after the plan's cuts.
    func flights(after plan: FetchPlanner.Plan) -> [FetchPlanner.Flight] {
      var flights = flights
      for cut in plan.cuts {
        for index in flights.indices where flights[index].id == cut.id {
          flights[index].end = min(flights[index].end, cut.end)
        }
      }
      return flights
    }

    /// The bytes that are present or that flights will deliver.
    func covered(by flights: [FetchPlanner.Flight]) -> ExtentSet {
      var covered = extents
      for flight in flights { covered.insert(flight.start..<max(flight.start, flight.end)) }
      return covered
    }

    /// The bytes that a plan may request.
    ///
    /// These are pages of demands, windows of readers and, before a reader's cursor, the bytes from
    /// its waiting read to the cursor.
    var wanted: ExtentSet {
      var wanted = ExtentSet()
      for demand in demands { wanted.insert(demand.aligned(to: 4096, limit: length)) }
      for stream in streams.streams where stream.window > 0 {
        wanted.insert(waitedStart(of: stream)..<min(length, stream.cursor + stream.window))
      }
      return wanted
    }

    /// The start of a reader's first demand, as far back as reads in order can be.
    func waitedStart(of stream: SequentialReaders.Stream) -> Int64 {
      let near = stream.cursor - 2 * SequentialReaders.tolerance
      return demands.map(\.lowerBound).first { $0 >= near && $0 < stream.cursor } ?? stream.cursor
    }

    /// Whether a read outside the readers' windows waits.
    ///
    /// Such a read may use one more connection, so it does not wait for the read-ahead of others.
    var hasReadElsewhere: Bool {
      let readers = streams.streams.filter { $0.window > 0 }
      return !readers.isEmpty
        && demands.contains { demand in
          !readers.contains { reader in
            let near = reader.cursor - 2 * SequentialReaders.tolerance
            return (near..<reader.cursor).contains(demand.lowerBound)
          }
        }
    }

    /// The flights whose connections are not yet available for read-ahead.
    var busyFlightCount: Int {
      flights.count { flight in
        guard let rate = flight.rate else { return true }
        return Double(flight.end - flight.position) >= rate * limits.roundTrip * 2
      }
    }
  }

  private func forEachSituation(
    seed: UInt64, _ body: (Situation, FetchPlanner.Plan) throws -> Void
  ) rethrows {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<3000 {
      let situation = Situation(using: &random)
      try body(situation, situation.plan())
    }
  }

  @Test("No byte is asked for that is present, in flight or asked for already", arguments: 1...4)
  func nothingTwice(seed: UInt64) throws {
    var startCount = 0
    var cutCount = 0
    try forEachSituation(seed: seed) { situation, plan in
      var covered = situation.covered(by: situation.flights(after: plan))
      for start in plan.starts {
        try #require(!start.isEmpty && (0..<situation.length).contains(start), "\(situation)")
        try #require(covered.insert(start) == start.byteCount, "\(plan) in \(situation)")
      }
      startCount += plan.starts.count
      cutCount += plan.cuts.count
    }
    // The situations exercise the rule.
    #expect(startCount > 5000)
    #expect(cutCount > 300)
  }

  @Test("What is demanded comes, unless the file's connections are used up", arguments: 1...4)
  func demandsAreServed(seed: UInt64) throws {
    try forEachSituation(seed: seed) { situation, plan in
      guard situation.flights.count + plan.starts.count < situation.limits.demandConnections else {
        return
      }
      var covered = situation.covered(by: situation.flights(after: plan))
      for start in plan.starts { covered.insert(start) }
      for demand in situation.demands {
        try #require(covered.contains(demand), "\(demand) of \(plan) in \(situation)")
      }
    }
  }

  @Test("Nothing is asked for beyond demands and windows", arguments: 1...4)
  func windowsHold(seed: UInt64) throws {
    try forEachSituation(seed: seed) { situation, plan in
      // Bytes that are cut from a flight had been requested before.
      var allowed = situation.wanted
      for flight in situation.flights { allowed.insert(flight.start..<flight.end) }
      for start in plan.starts {
        try #require(allowed.contains(start), "\(start) in \(situation)")
      }
    }
  }

  @Test("Neither limit of connections is passed", arguments: 1...4)
  func limitsHold(seed: UInt64) throws {
    try forEachSituation(seed: seed) { situation, plan in
      let limits = situation.limits
      let most = limits.demandConnections + (situation.hasReadElsewhere ? 1 : 0)
      try #require(
        plan.starts.count <= max(0, most - situation.flights.count), "\(plan) in \(situation)")
      // No read waits for read-ahead: it is on no demand's page and not before a reader's cursor.
      let readAhead = plan.starts.filter { start in
        !situation.demands.contains { $0.aligned(to: 4096, limit: .max).overlaps(start) }
          && !situation.streams.streams.contains {
            $0.window > 0 && (situation.waitedStart(of: $0)..<$0.cursor).overlaps(start)
          }
      }
      try #require(
        readAhead.count <= max(0, limits.connections - situation.busyFlightCount),
        "\(plan) in \(situation)")
    }
  }

  @Test("A cut shortens a flight and takes nothing that has arrived", arguments: 1...4)
  func cutsShorten(seed: UInt64) throws {
    try forEachSituation(seed: seed) { situation, plan in
      var ends: [Int: Int64] = [:]
      for cut in plan.cuts {
        let flight = try #require(situation.flights.first { $0.id == cut.id })
        try #require(cut.end < ends[cut.id] ?? flight.end, "\(plan) in \(situation)")
        try #require(cut.end >= flight.position, "\(plan) in \(situation)")
        ends[cut.id] = cut.end
      }
    }
  }

  @Test("A plan that has been carried out leaves nothing to cut or to demand", arguments: 1...4)
  func plansSettle(seed: UInt64) throws {
    var settledCount = 0
    try forEachSituation(seed: seed) { situation, plan in
      guard situation.flights.count + plan.starts.count < situation.limits.demandConnections else {
        return
      }
      var next = situation
      next.flights = situation.flights(after: plan)
      // Without readers, because they continue to use free connections for read-ahead.
      next.streams = SequentialReaders()
      for (index, start) in plan.starts.enumerated() {
        next.flights.append(
          FetchPlanner.Flight(
            id: 100 + index, start: start.lowerBound, position: start.lowerBound,
            end: start.upperBound, rate: nil))
      }
      // A long read-ahead segment that was planned for a demand may still be split for another.
      guard plan.starts.allSatisfy({ $0.byteCount <= 1 << 20 }) else { return }
      try #require(next.plan().isEmpty, "\(next.plan()) in \(next)")
      settledCount += 1
    }
    #expect(settledCount > 1000)
  }
}
