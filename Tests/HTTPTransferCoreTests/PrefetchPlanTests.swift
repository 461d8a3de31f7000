import HTTPTransferCore
import SeededRandom
import Testing

/// The plan for a file without readers.
@Suite struct PrefetchPlanTests {
  private func limits(_ connections: Int, rate: Double? = nil) -> FetchPlanner.Limits {
    FetchPlanner.Limits(
      connections: connections, demandConnections: connections, roundTrip: 0.05,
      connectionRate: rate)
  }

  @Test("The absent bytes are asked for in order, over all connections")
  func order() {
    let plan = FetchPlanner().planPrefetch(
      length: 100 << 20, extents: ExtentSet([0..<(1 << 20)]), flights: [], limits: limits(4))
    #expect(plan.starts.count == 4)
    #expect(plan.starts.first?.lowerBound == 1 << 20)
    for (one, next) in zip(plan.starts, plan.starts.dropFirst()) {
      #expect(one.upperBound == next.lowerBound)
    }
    #expect(plan.starts.allSatisfy { $0.byteCount <= 32 << 20 })
    #expect(plan.cuts.isEmpty)
  }

  @Test("Nothing is asked for that is present, in flight, or more than the connections may bring")
  func nothingToDo() {
    let flight = FetchPlanner.Flight(id: 1, start: 0, position: 0, end: 1000, rate: nil)
    for plan in [
      FetchPlanner().planPrefetch(
        length: 1000, extents: ExtentSet([0..<1000]), flights: [], limits: limits(4)),
      FetchPlanner().planPrefetch(
        length: 1000, extents: ExtentSet(), flights: [flight], limits: limits(4)),
      FetchPlanner().planPrefetch(
        length: 100 << 20, extents: ExtentSet(), flights: [flight], limits: limits(1)),
    ] {
      #expect(plan.starts.isEmpty && plan.cuts.isEmpty)
    }
  }

  @Test("Whatever is there, every byte is brought in the end, and none twice", arguments: 1...100)
  func completes(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let length = Int64.random(in: 1...(64 << 20), using: &random)
    var extents = ExtentSet()
    for _ in 0..<Int.random(in: 0...200, using: &random) {
      let start = Int64.random(in: 0..<length, using: &random)
      let end = min(length, start + .random(in: 1...100_000, using: &random))
      extents.insert(start..<end)
    }
    var flights: [FetchPlanner.Flight] = []
    var lastID = 0
    let connections = Int.random(in: 1...16, using: &random)
    for _ in 0..<10_000 where extents.byteCount < length {
      let plan = FetchPlanner().planPrefetch(
        length: length, extents: extents, flights: flights,
        limits: limits(
          connections, rate: [nil, 1e4, 1e6, 1e12].randomElement(using: &random) ?? nil))
      for cut in plan.cuts {
        let index = try #require(flights.firstIndex { $0.id == cut.id })
        #expect(cut.end >= flights[index].position && cut.end <= flights[index].end)
        flights[index].end = cut.end
      }
      for range in plan.starts {
        lastID += 1
        #expect(!range.isEmpty && range.lowerBound >= 0 && range.upperBound <= length)
        #expect(!extents.overlaps(range))
        #expect(!flights.contains { ($0.start..<$0.end).overlaps(range) })
        flights.append(
          .init(
            id: lastID, start: range.lowerBound, position: range.lowerBound, end: range.upperBound,
            rate: nil))
      }
      #expect(flights.count <= connections)
      // One of the flights delivers some or all of its bytes.
      let index = try #require(flights.indices.randomElement(using: &random))
      let flight = flights[index]
      let position =
        Bool.random(using: &random)
        ? flight.end : Int64.random(in: flight.position...flight.end, using: &random)
      extents.insert(flight.start..<position)
      flights[index].start = position
      flights[index].position = position
      flights[index].rate = .random(in: 1e3...1e7, using: &random)
      if position == flight.end { flights.remove(at: index) }
    }
    #expect(extents.byteCount == length)
  }
}
