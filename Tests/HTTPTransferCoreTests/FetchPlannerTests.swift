import HTTPTransferCore
import Testing

/// The planner's decisions in single, known situations.
@Suite struct FetchPlannerTests {
  private static let mebibyte: Int64 = 1 << 20

  /// The segment of read-ahead on four connections for a reader that has read 8 MiB in order.
  ///
  /// It is an eighth of the window, whatever the window is.
  private var segment: Int64 {
    var table = SequentialReaders()
    for read in sequentialReads(to: 8 * Self.mebibyte) { table.note(read) }
    return table.streams.reduce(0) { $0 + $1.window } / 8
  }

  private func flight(
    id: Int = 1, _ range: ByteRange, position: Int64? = nil, rate: Double? = nil
  ) -> FetchPlanner.Flight {
    FetchPlanner.Flight(
      id: id, start: range.lowerBound, position: position ?? range.lowerBound,
      end: range.upperBound, rate: rate)
  }

  private func plan(
    length: Int64 = 256 << 20, present: [ByteRange] = [], flights: [FetchPlanner.Flight] = [],
    demands: [ByteRange] = [], reads: [ByteRange] = [], connections: Int = 4,
    demandConnections: Int = 32, roundTrip: Double = 0.05, connectionRate: Double? = nil
  ) -> FetchPlanner.Plan {
    var table = SequentialReaders()
    for read in reads { table.note(read) }
    return FetchPlanner().plan(
      length: length, extents: ExtentSet(present), flights: flights, demands: demands,
      streams: table.readers,
      limits: FetchPlanner.Limits(
        connections: connections, demandConnections: demandConnections, roundTrip: roundTrip,
        connectionRate: connectionRate))
  }

  /// The reads of a reader that has read in order from 0 to `end`.
  private func sequentialReads(to end: Int64) -> [ByteRange] {
    stride(from: 0, to: end, by: 131_072).map { $0..<($0 + 131_072) }
  }

  // MARK: Line

  @Test(
    "A far and fast line is kept full: four round trips' worth are asked for, up to 16 times the window",
    arguments: [
      // A reader of 1 MiB, without a known rate: 1 MiB.
      (1 << 20, nil, 1 << 20),
      // A low bandwidth needs no more than the reader has read.
      (1 << 20, 1e6, 1 << 20),
      // 100 MB/s and 50 ms: 20 MB, limited to 16 MiB.
      (1 << 20, 100e6, 16 << 20),
      (2 << 20, 100e6, 20_000_000),
      // Not for a reader that has just begun.
      (256 << 10, 100e6, 256 << 10),
      // An impossible rate.
      (1 << 20, .infinity, 16 << 20),
    ] as [(Int64, Double?, Int64)])
  func farLine(consumed: Int64, rate: Double?, expected: Int64) {
    let plan = plan(
      present: [0..<consumed], reads: sequentialReads(to: consumed), connections: 1,
      demandConnections: 32, connectionRate: rate)
    let ahead = plan.starts.reduce(0) { $0 + $1.byteCount }
    // Requests are of half the window.
    #expect(ahead > 0)
    #expect(plan.starts.allSatisfy { $0.upperBound <= consumed + expected })
    #expect(plan.starts.first?.byteCount == max(expected / 2, 256 << 10))
  }

  // MARK: Demand

  @Test("Nobody wants anything: nothing is asked for")
  func nothing() {
    #expect(plan().isEmpty)
  }

  @Test(
    "A demand is asked for in whole pages, as far as they are absent and exist",
    arguments: [
      (5000..<6000, [], [4096..<8192]), (4096..<8192, [], [4096..<8192]),
      (4095..<4097, [], [0..<8192]), (999_000..<1_000_000, [], [995_328..<1_000_000]),
      (0..<12_288, [4096..<8192], [0..<4096, 8192..<12_288]),
      (0..<12_288, [0..<12_288], []), (5000..<6000, [4096..<5500], [5500..<8192]),
      // There are no bytes to request beyond the end.
      (999_000..<2_000_000, [], [995_328..<1_000_000]), (1_000_000..<2_000_000, [], []),
      (3_000_000..<3_004_096, [], []),
    ] as [(ByteRange, [ByteRange], [ByteRange])])
  func demand(_ demand: ByteRange, present: [ByteRange], expected: [ByteRange]) {
    let plan = plan(length: 1_000_000, present: present, demands: [demand])
    #expect(plan.starts == expected)
    #expect(plan.cuts.isEmpty)
  }

  @Test("A demand that a flight will bring soon is not asked for again")
  func demandInFlight() {
    let flights = [flight(0..<Self.mebibyte)]
    #expect(plan(flights: flights, demands: [524_288..<528_384]).isEmpty)
    // Only bytes that the flight does not deliver are requested.
    #expect(
      plan(flights: flights, demands: [(Self.mebibyte - 4096)..<(Self.mebibyte + 4096)]).starts
        == [Self.mebibyte..<(Self.mebibyte + 4096)])
  }

  @Test("Bytes that have arrived and are not stored yet are not asked for again")
  func arrivedBytes() {
    let flights = [flight(0..<Self.mebibyte, position: Self.mebibyte)]
    #expect(plan(flights: flights, demands: [0..<4096]).isEmpty)
  }

  @Test("Equal demands are one request")
  func equalDemands() {
    #expect(plan(demands: [0..<4096, 0..<4096, 100..<4000]).starts == [0..<4096])
  }

  @Test("A flight that would bring a demand too late ends where the demand begins")
  func lateDemand() {
    let demand = (32 * Self.mebibyte)..<(32 * Self.mebibyte + 4096)
    let plan = plan(flights: [flight(id: 7, 0..<(64 * Self.mebibyte))], demands: [demand])
    #expect(plan.cutEnds == [7: demand.lowerBound])
    #expect(plan.starts == [demand])
  }

  @Test(
    "How late is too late follows from the flight's rate and the round trip",
    arguments: [(100e6, 0.05, 8, false), (100e6, 0.05, 12, true), (100e6, 0.2, 12, false)]
      + [(1e6, 0.05, 1, false), (1e6, 0.05, 2, true)] as [(Double, Double, Int64, Bool)])
  func timeout(rate: Double, roundTrip: Double, ahead: Int64, isCut: Bool) {
    let start = ahead * Self.mebibyte
    let plan = plan(
      flights: [flight(0..<(64 * Self.mebibyte), rate: rate)], demands: [start..<(start + 4096)],
      roundTrip: roundTrip)
    #expect(plan.cuts.isEmpty == !isCut)
    #expect(plan.starts.isEmpty == !isCut)
  }

  @Test("What one demand cuts off, another that overlaps it still gets")
  func overlappingDemands() {
    let start = 4 * Self.mebibyte
    let early = start..<(start + Self.mebibyte)
    let late = (start + 524_288)..<(start + 528_384)
    // For the first demand alone, the flight would be in time.
    let flight = flight(
      id: 7, 0..<(64 * Self.mebibyte), position: start - 3 * Self.mebibyte / 4)
    #expect(plan(flights: [flight], demands: [early]).isEmpty)
    let plan = plan(flights: [flight], demands: [early, late])
    #expect(plan.cutEnds == [7: late.lowerBound])
    #expect(plan.starts == [late.lowerBound..<early.upperBound])
  }

  @Test("A flight is not cut where no connection is left to bring what is cut off")
  func noConnectionForCut() {
    let demand = (32 * Self.mebibyte)..<(32 * Self.mebibyte + 4096)
    let flights = [flight(0..<(64 * Self.mebibyte))]
    #expect(plan(flights: flights, demands: [demand], demandConnections: 1).isEmpty)
    #expect(plan(flights: flights, demands: [demand], demandConnections: 2).cuts.count == 1)
  }

  @Test("A demand goes beyond the connections of read-ahead, but not beyond the file's limit")
  func demandLimit() {
    let flights = (0..<4).map { index in
      let start = Int64(100 + index) * Self.mebibyte
      return flight(id: index, start..<(start + Self.mebibyte))
    }
    let demands = (0..<4).map { index in
      let start = Int64(index) * Self.mebibyte
      return start..<(start + 4096)
    }
    #expect(plan(flights: flights, demands: demands, connections: 2).starts == demands)
    #expect(
      plan(flights: flights, demands: demands, connections: 2, demandConnections: 6).starts
        == Array(demands.prefix(2)))
    #expect(
      plan(flights: flights, demands: demands, connections: 2, demandConnections: 4).starts == [])
  }

  // MARK: Read-ahead

  @Test("A sequential reader's window is shared out in equal segments, two for each connection")
  func readAhead() {
    let end = 8 * Self.mebibyte
    let plan = plan(present: [0..<end], reads: sequentialReads(to: end), connections: 4)
    let segments = (0..<4).map { index in
      let start = end + Int64(index) * segment
      return start..<(start + segment)
    }
    #expect(plan.starts == segments)
  }

  @Test("Read-ahead takes only the connections that are free")
  func freeConnections() {
    let end = 8 * Self.mebibyte
    let flights = (0..<3).map { index in
      let start = end + Int64(index) * Self.mebibyte
      return flight(id: index, start..<(start + Self.mebibyte))
    }
    let plan = plan(present: [0..<end], flights: flights, reads: sequentialReads(to: end))
    #expect(plan.starts == [(11 * Self.mebibyte)..<(11 * Self.mebibyte + segment)])
  }

  @Test("A flight that is about to end does not hold up the next one")
  func endingFlight() {
    let end = 8 * Self.mebibyte
    let busy = flight(end..<(9 * Self.mebibyte), rate: 1e6)
    let ending = flight(end..<(9 * Self.mebibyte), position: 9 * Self.mebibyte - 1000, rate: 1e6)
    for (flight, count) in [(busy, 0), (ending, 1)] {
      let plan = plan(
        present: [0..<end], flights: [flight], reads: sequentialReads(to: end), connections: 1)
      #expect(plan.starts.count == count)
    }
  }

  @Test("What a reader waits for and what comes after it are one request")
  func demandWithReadAhead() {
    let end = 8 * Self.mebibyte
    let demand = (end - 131_072)..<end
    let plan = plan(
      present: [0..<demand.lowerBound], demands: [demand], reads: sequentialReads(to: end),
      connections: 1)
    #expect(plan.starts.count == 1)
    #expect(plan.starts.first?.lowerBound == demand.lowerBound)
    #expect(plan.starts.first.map { $0.upperBound > demand.upperBound } == true)
  }

  @Test("The last bytes of a file are no segment of their own")
  func noCrumbs() {
    let end = 8 * Self.mebibyte
    let length = end + segment + 1000
    let plan = plan(length: length, present: [0..<end], reads: sequentialReads(to: end))
    #expect(plan.starts == [end..<length])
  }

  @Test("A first read is not followed by read-ahead")
  func firstRead() {
    #expect(plan(demands: [0..<131_072], reads: [0..<131_072]).starts == [0..<131_072])
  }

  @Test("A free connection takes over the second half of a slow segment")
  func steal() throws {
    let end = 8 * Self.mebibyte
    let slow = flight(id: 3, end..<(16 * Self.mebibyte), rate: 1e6)
    let plan = plan(
      present: [0..<end], flights: [slow], reads: sequentialReads(to: end), connections: 2)
    #expect(plan.cutEnds == [3: 12 * Self.mebibyte])
    #expect(plan.starts == [(12 * Self.mebibyte)..<(16 * Self.mebibyte)])
  }

  @Test(
    "A segment that is fast, short, or of no known rate is left alone",
    arguments: [(8, 100e6), (0, 1e6), (8, nil)] as [(Int64, Double?)])
  func noSteal(mebibytes: Int64, rate: Double?) {
    let end = 8 * Self.mebibyte
    let stop = 16 * Self.mebibyte
    let missing = mebibytes == 0 ? 500_000 : mebibytes * Self.mebibyte
    let flight = flight(id: 3, end..<stop, position: stop - missing, rate: rate)
    let plan = plan(
      present: [0..<end], flights: [flight], reads: sequentialReads(to: end), connections: 2)
    #expect(plan.isEmpty)
  }

  @Test("Reads at the end of the longest possible file are planned like others")
  func maximumOffsets() {
    let length = Int64.max
    let start = length - 262_143
    let reads = [start..<(start + 131_072), (start + 131_072)..<length]
    #expect(
      plan(length: length, demands: reads, reads: reads).starts.reduce(0) { $0 + $1.byteCount }
        == 262_143)
    let slow = flight(id: 3, (length - 4 * Self.mebibyte)..<length, rate: 1000)
    let stolen = plan(length: length, flights: [slow], reads: reads)
    #expect(stolen.cuts.count <= 1)
  }
}

extension FetchPlanner.Plan {
  /// Whether there is nothing to do.
  var isEmpty: Bool { starts.isEmpty && cuts.isEmpty }

  /// The ends of the cut flights, by their numbers.
  var cutEnds: [Int: Int64] { Dictionary(cuts.map { ($0.id, $0.end) }, uniquingKeysWith: min) }
}
