import HTTPTransfer
import HTTPTransferCore
import SeededRandom
import Testing

/// The properties that every download's plan must have, whatever the server does.
@Suite struct SegmentTableTests {
  /// A download without network, disk or clock.
  ///
  /// A server of random speed sends the requested bytes, cuts bodies off and fails.
  private struct Simulation {
    var table: SegmentTable
    let length: Int64
    let maximum: Int
    var random: SeededGenerator
    var now = ContinuousClock.now
    var idle = 0.0
    /// The number of bytes that arrived in vain.
    var repeatedByteCount: Int64 = 0
    var violations: [String] = []
    /// The percentage of steps of a segment in which its exchange fails.
    let failurePercentage: Int
    /// Bytes per second of each segment in flight.
    private var rates: [Int: Double] = [:]

    init(seed: UInt64, present: ExtentSet? = nil, length: Int64? = nil) {
      random = SeededGenerator(seed: seed)
      self.length =
        length
        ?? .random(in: 1...(Bool.random(using: &random) ? 4 << 20 : 700 << 20), using: &random)
      let count = Int.random(in: 1...32, using: &random)
      maximum = count
      failurePercentage = .random(in: 0...20, using: &random)
      table = SegmentTable(
        range: nil,
        connections: Bool.random(using: &random) ? .adaptive(upTo: count) : .exactly(count))
      if Bool.random(using: &random) {
        table.recall(connections: .random(in: 1...64, using: &random))
      }
      var extents = present ?? ExtentSet()
      if present == nil, Bool.random(using: &random) {
        for _ in 0..<Int.random(in: 1...12, using: &random) {
          let start = Int64.random(in: 0..<self.length, using: &random)
          let most = min(self.length - start, 40 << 20)
          extents.insert(ByteRange(offset: start, byteCount: .random(in: 1...most, using: &random)))
        }
      }
      if !extents.isEmpty { table.adopt(extents) }
    }

    /// Runs to the end; nil if bytes are missing without any request for them.
    mutating func run() -> Int? {
      guard !table.isComplete else { return 0 }
      started(table.add(table.firstRange, isWhole: false))
      table.setLength(length)
      plan()
      var steps = 0
      while !table.isComplete {
        steps += 1
        guard steps < 200_000, let segment = table.segments.randomElement(using: &random) else {
          return nil
        }
        now += .milliseconds(Int.random(in: 1...40, using: &random))
        idle += 0.01
        if segment.isWaiting { retry(segment.id) } else { advance(segment) }
        check()
      }
      return steps
    }

    /// A piece of a body arrives, or the exchange fails.
    private mutating func advance(_ segment: SegmentTable.Segment) {
      if Int.random(in: 0..<100, using: &random) < failurePercentage { return fail(segment) }
      let rate = rates[segment.id] ?? 1e6
      let byteCount = max(1, Int64(rate * .random(in: 0.005...0.3, using: &random)))
      // A piece may reach beyond the end, which may have been reduced meanwhile.
      let position = segment.position + byteCount
      guard let end = table.advance(segment.id, to: position, idle: idle, now: now) else { return }
      let reached = min(position, end)
      let isStored = reached >= end || Bool.random(using: &random)
      if isStored, let start = table[segment.id]?.storedEnd, start < reached {
        repeatedByteCount +=
          reached - start
          - table.store(segment.id, start..<reached, now: now)
      }
      if reached >= end { table.remove(segment.id) }
      plan()
    }

    private mutating func fail(_ segment: SegmentTable.Segment) {
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        // A refusal of one of many connections.
        table.stepDown(now: now)
        table.remove(segment.id)
        plan()
      case 1:
        // A part that is shorter than requested.
        table.remove(segment.id)
        plan()
      default:
        let before = segment.failureCount
        if table.fail(segment.id) != before + 1 { violations.append("failures are miscounted") }
      }
    }

    private mutating func retry(_ id: Int) {
      guard let segment = table.retry(id) else { return plan() }
      started(segment)
    }

    private mutating func plan() {
      let before = table.segments
      let new = table.plan(now: now)
      for segment in new {
        for other in before where other.id != segment.id {
          guard let kept = table[other.id], kept.storedEnd < kept.end else { continue }
          if segment.start < kept.end, kept.storedEnd < segment.end {
            violations.append(
              "\(segment.start)..<\(segment.end) is asked for while "
                + "\(kept.storedEnd)..<\(kept.end) is under way")
          }
        }
        if table.holes(in: segment.start..<segment.end) != [segment.start..<segment.end] {
          violations.append("\(segment.start)..<\(segment.end) is present, and asked for")
        }
        started(segment)
      }
    }

    private mutating func started(_ segment: SegmentTable.Segment) {
      // Slow and fast connections, some so fast that no further one pays.
      rates[segment.id] = pow10(.random(in: 4...8.5, using: &random))
    }

    private func pow10(_ exponent: Double) -> Double {
      var result = 1.0
      for _ in 0..<Int(exponent) { result *= 10 }
      return result * (1 + 9 * (exponent - exponent.rounded(.down)))
    }

    private mutating func check() {
      if table.segments.count > maximum {
        violations.append("\(table.segments.count) segments, of at most \(maximum)")
      }
      if let segment = table.segments.first(where: { $0.end > length || $0.start < 0 }) {
        violations.append("segment \(segment.start)..<\(segment.end) of \(length) bytes")
      }
    }
  }

  @Test func `every byte is fetched once, over no more connections than allowed`() {
    for seed in UInt64(1)...500 {
      var simulation = Simulation(seed: seed)
      let steps = simulation.run()
      #expect(
        steps != nil,
        """
        seed \(seed): nothing is asked for, and \
        \(simulation.table.holes(in: simulation.table.target).prefix(3)) of \(simulation.length) \
        bytes are absent
        """)
      #expect(simulation.violations.isEmpty, "seed \(seed): \(simulation.violations.prefix(3))")
      #expect(simulation.repeatedByteCount == 0, "seed \(seed)")
      #expect(simulation.table.presentByteCount == simulation.length || steps == nil)
    }
  }

  @Test(arguments: [1, 2, 6])
  func `small holes before the end are fetched`(connections: Int) {
    var present = ExtentSet()
    present.insert(0..<1_000_000)
    present.insert(1_100_000..<2_000_000)
    present.insert(2_050_000..<3_000_000)
    present.insert(3_000_001..<4_000_000)
    var table = SegmentTable(range: nil, connections: .exactly(connections))
    table.adopt(present)
    table.setLength(4_000_000)
    var rounds = 0
    while !table.isComplete, rounds < 10 {
      rounds += 1
      for segment in table.plan(now: .now) {
        table.store(segment.id, segment.start..<segment.end, now: .now)
        table.remove(segment.id)
      }
    }
    #expect(table.isComplete, "\(table.holes(in: table.target)) are absent and not asked for")
  }

  @Test func `a segment that is tried again begins where its stored bytes end`() {
    var table = SegmentTable(range: nil, connections: .exactly(1))
    let segment = table.add(0..<1000, isWhole: false)
    table.setLength(1000)
    let end = table.advance(segment.id, to: 700, idle: 0, now: .now)
    #expect(end == 1000)
    table.store(segment.id, 0..<400, now: .now)
    let failures = table.fail(segment.id)
    #expect(failures == 1)
    let planned = table.plan(now: .now)
    #expect(planned.isEmpty)
    let again = table.retry(segment.id)
    #expect(again?.start == 400)
    #expect(again?.end == 1000)
  }

  @Test func `a range beyond the end ends at the end`() {
    var table = SegmentTable(range: 500..<2000, connections: .adaptive(upTo: 4))
    let segment = table.add(table.firstRange, isWhole: false)
    #expect(segment.start == 500)
    table.setLength(800)
    #expect(table.wantedByteCount == 300)
    #expect(table[segment.id]?.end == 800)
    let added = table.store(segment.id, 500..<800, now: .now)
    #expect(added == 300)
    #expect(table.isComplete)
  }

  @Test func `bytes that are there already do not count twice`() {
    var table = SegmentTable(range: nil, connections: .exactly(1))
    let segment = table.add(0..<1000, isWhole: true)
    table.setLength(1000)
    var added = [table.store(segment.id, 0..<600, now: .now)]
    _ = table.fail(segment.id)
    // The whole file is sent again from its first byte.
    let again = table.retry(segment.id)
    #expect(again?.start == 0)
    added.append(table.store(segment.id, 0..<600, now: .now))
    added.append(table.store(segment.id, 600..<1000, now: .now))
    #expect(added == [600, 0, 400])
  }

  @Test(
    "Connections that a rate limit holds back are no reason to take more", arguments: [false, true])
  func throttled(isThrottled: Bool) {
    var table = SegmentTable(range: nil, connections: .adaptive(upTo: 8))
    var now = ContinuousClock.now
    var idle = 0.0
    let segment = table.add(table.firstRange, isWhole: false)
    table.setLength(1 << 30)
    for piece in 0..<40 {
      let start = Int64(piece) << 20
      if isThrottled { table.throttled(now: now) }
      now += .milliseconds(50)
      idle += 0.05
      _ = table.advance(segment.id, to: start + (1 << 20), idle: idle, now: now)
      table.store(segment.id, start..<(start + (1 << 20)), now: now)
    }
    #expect((table.parallelism.target == 1) == isThrottled, "\(table.parallelism.target)")
  }

  @Test func `a download begins with the connections that have paid at its host`() {
    let origin = "https://example.org"
    var memory = HostMemory()
    memory.note(8, for: origin, today: 20_000)
    func target(_ connections: Connections, at origin: String) -> Int {
      var table = SegmentTable(range: nil, connections: connections)
      table.recall(connections: memory.connections(for: origin, today: 20_001))
      return table.parallelism.target
    }
    #expect(target(.adaptive(upTo: 16), at: origin) == 8)
    #expect(target(.adaptive(upTo: 6), at: origin) == 6)
    #expect(target(.adaptive(upTo: 16), at: "http://example.org") == 1)
    #expect(target(.exactly(2), at: origin) == 2)
    #expect(target(.exactly(16), at: origin) == 16)
  }

  @Test(
    "All of them are used as soon as the length is known, also for a small file",
    arguments: [(Int64(16) << 20, 6), (1 << 30, 6), (5 << 20, 3), (300 << 20, 32)])
  func beginsWithAll(length: Int64, count: Int) {
    var table = SegmentTable(range: nil, connections: .adaptive(upTo: 32))
    table.recall(connections: count)
    _ = table.add(table.firstRange, isWhole: false)
    table.setLength(length)
    #expect(table.plan(now: .now).count == count - 1)
  }

  @Test(
    "A download tells what has paid; its own maximum takes back no greater number",
    arguments: [
      (Connections.adaptive(upTo: 16), 4, 16), (.adaptive(upTo: 4), 16, 16),
      (.adaptive(upTo: 4), 2, 4), (.exactly(4), 16, 16),
    ])
  func reportsConnections(connections: Connections, known: Int, expected: Int) {
    var table = SegmentTable(range: nil, connections: connections)
    var memory = HostMemory()
    memory.note(known, for: "a", today: 20_000)
    table.report(to: &memory, of: "a", today: 20_000)
    #expect(memory.connections(for: "a", today: 20_000) == known)
    _ = table.add(table.firstRange, isWhole: false)
    table.setLength(1 << 36)
    _ = table.plan(now: .now)
    var now = ContinuousClock.now
    // All connections deliver the same rate.
    for step in 1...400 {
      now += .milliseconds(10)
      for segment in table.segments {
        let position = segment.position + 100 << 10
        _ = table.advance(segment.id, to: position, idle: Double(step) * 0.01, now: now)
      }
      _ = table.plan(now: now)
    }
    table.report(to: &memory, of: "a", today: 20_000)
    #expect(memory.connections(for: "a", today: 20_000) == expected)
  }

  @Test func `bytes that are on their way to the disk are handed over once`() {
    var table = SegmentTable(range: nil, connections: .exactly(2))
    let one = table.add(0..<1000, isWhole: false)
    let two = table.add(600..<1000, isWhole: false)
    table.setLength(1000)
    let first = table.enqueue(0..<800)
    #expect(first == [0..<800])
    let second = table.enqueue(600..<1000)
    #expect(second == [800..<1000])
    let added = table.stored(two.id, 600..<1000, runs: second, kept: second, now: .now)
    #expect(added == 200)
    #expect(!table.isComplete)
    table.stored(one.id, 0..<800, runs: first, kept: first, now: .now)
    #expect(table.isComplete)
    // Forgotten bytes may be handed over again.
    #expect(table.forget(700..<800) == 100)
    let again = table.enqueue(600..<900)
    #expect(again == [700..<800])
    // Also before it is stored; and then it does not count.
    _ = table.forget(700..<800)
    let anew = table.enqueue(600..<900)
    #expect(anew == [700..<800])
    table.stored(two.id, 600..<900, runs: again, kept: [], now: .now)
    #expect(!table.isComplete)
    table.stored(one.id, 600..<900, runs: anew, kept: anew, now: .now)
    #expect(table.isComplete)
  }

  // MARK: Hedging

  /// A table whose only segment, of 1 MiB, has delivered half of it at `now`.
  private func stalledTable(now: ContinuousClock.Instant) -> (table: SegmentTable, id: Int) {
    var table = SegmentTable(range: nil, connections: .exactly(4))
    let segment = table.add(0..<(1 << 20), isWhole: false)
    table.setLength(1 << 20)
    _ = table.advance(segment.id, to: 1 << 19, idle: 0, now: now)
    return (table, segment.id)
  }

  @Test func `a request that brings nothing is hedged once, if its server has it`() {
    let now = ContinuousClock.now
    var (table, id) = stalledTable(now: now)
    let late = now + .seconds(1)
    let early = table.planHedges(
      now: now + .milliseconds(400), after: .milliseconds(500), allowance: 2,
      isServed: { _ in true })
    #expect(early.isEmpty)
    let unsent = table.planHedges(
      now: late, after: .milliseconds(500), allowance: 2, isServed: { _ in false })
    #expect(unsent.isEmpty)
    let hedges = table.planHedges(
      now: late, after: .milliseconds(500), allowance: 2, isServed: { _ in true })
    #expect(hedges.map(\.start) == [1 << 19])
    #expect(hedges.map(\.end) == [1 << 20])
    #expect(hedges.map(\.hedgeOf) == [id])
    let again = table.planHedges(
      now: late + .seconds(9), after: .milliseconds(500), allowance: 2,
      isServed: { $0 == id })
    #expect(again.isEmpty)
  }

  @Test func `a hedge goes to another mirror than the silent one`() {
    let now = ContinuousClock.now
    var (table, id) = stalledTable(now: now)
    table.recordAsked(id, of: 1)
    let hedges = table.planHedges(
      now: now + .seconds(1), after: .milliseconds(500), allowance: 2, isServed: { _ in true })
    #expect(hedges.map { table.silentMirror(of: $0) } == [1])
    // Once the other request has ended, the rest of its range may come from any server.
    table.fail(id)
    #expect(hedges.compactMap { table[$0.id] }.map { table.silentMirror(of: $0) } == [nil])
  }

  @Test func `the first of a request and its hedge that brings a byte ends the other one`() throws {
    for hedgeWins in [true, false] {
      let now = ContinuousClock.now
      var (table, id) = stalledTable(now: now)
      let hedges = table.planHedges(
        now: now + .seconds(1), after: .milliseconds(500), allowance: 1, isServed: { _ in true })
      let hedge = try #require(hedges.first)
      let (winner, loser) = hedgeWins ? (hedge.id, id) : (id, hedge.id)
      let ended = table.endRival(of: winner)
      let second = table.endRival(of: winner)
      #expect(ended == loser)
      #expect(second == nil)
      #expect(table[loser]?.end == 1 << 19)
      #expect(table[winner]?.end == 1 << 20)
      #expect(table[winner]?.hedgeOf == nil)
    }
  }

  @Test func `the hedge of a request that fails brings the rest by itself`() throws {
    let now = ContinuousClock.now
    var (table, id) = stalledTable(now: now)
    let hedges = table.planHedges(
      now: now + .seconds(1), after: .milliseconds(500), allowance: 1, isServed: { _ in true })
    let hedge = try #require(hedges.first)
    table.store(id, 0..<(1 << 19), now: now)
    table.fail(id)
    #expect(table[hedge.id]?.hedgeOf == nil)
    let retried = table.retry(id)
    #expect(retried == nil)
    #expect(table.segments.map(\.id) == [hedge.id])
  }

  @Test func `the hedge of a request that is given up is a hedge no more`() throws {
    let now = ContinuousClock.now
    var (table, id) = stalledTable(now: now)
    let hedges = table.planHedges(
      now: now + .seconds(1), after: .milliseconds(500), allowance: 1, isServed: { _ in true })
    let hedge = try #require(hedges.first)
    table.remove(id)
    #expect(table[hedge.id]?.hedgeOf == nil)
  }

  // MARK: Wrong pieces

  @Test func `requests of all kinds together are no more than the connections`() {
    let now = ContinuousClock.now
    let (length, piece): (Int64, Int64) = (512 << 20, 1 << 20)
    var table = SegmentTable(range: nil, connections: .exactly(4))
    table.setLength(length)
    let pieces = (0..<3).map { number in number * 100 * piece..<(number * 100 + 1) * piece }
    for (number, range) in pieces.enumerated() {
      let added = table.add(piece: number * 100, range, except: [])
      #expect(added != nil)
    }
    let first = table.plan(except: ExtentSet(pieces), now: now)
    #expect(first.count == 1)
    // Each of them releases its connection.
    for segment in table.segments where segment.suspectPiece != nil { table.remove(segment.id) }
    let second = table.plan(except: ExtentSet(pieces), now: now)
    #expect(second.count == 3)
    #expect(table.segments.count == 4)
  }

  @Test(arguments: [(100 << 20, 64 << 10), (1 << 20, (1 << 20) / 100), (50, 1)])
  func `failures are consecutive until 64 KiB or one percent of the download has come`(
    length: Int, enough: Int
  ) throws {
    var table = SegmentTable(range: nil, connections: .exactly(1))
    table.setLength(Int64(length))
    let id = table.add(0..<Int64(length), isWhole: false).id
    #expect(table.fail(id) == 1)
    var position = Int64(0)
    func store(_ byteCount: Int) {
      table.store(id, position..<(position + Int64(byteCount)), now: .now)
      position += Int64(byteCount)
    }
    _ = table.retry(id)
    store(enough - 1)
    #expect(table.fail(id) == 2)
    _ = table.retry(id)
    // What came before counts.
    store(1)
    #expect(table.fail(id) == 1)
    _ = table.retry(id)
    if enough > 1 { store(1) }
    #expect(table.fail(id) == 2)
  }

  @Test func `a piece that was wrong has a request of its own, and the others leave it out`() throws
  {
    var table = SegmentTable(range: nil, connections: .exactly(4))
    table.setLength(4 << 20)
    let piece: ByteRange = (1 << 20)..<(2 << 20)
    let added = table.add(piece: 1, piece, except: [0])
    let suspect = try #require(added)
    #expect(suspect.suspectPiece == 1)
    #expect(suspect.excludedMirrors == [0])
    let twice = table.add(piece: 1, piece, except: [])
    #expect(twice == nil)
    let others = table.plan(except: ExtentSet([piece]), now: .now)
    #expect(!others.isEmpty)
    #expect(others.allSatisfy { $0.end <= piece.lowerBound || piece.upperBound <= $0.start })
    #expect(table.segments.count <= 4)
    // It resumes at the same server, and restarts at another one.
    table.recordAsked(suspect.id, of: 1)
    table.store(suspect.id, piece.lowerBound..<(piece.lowerBound + 1000), now: .now)
    for failureCount in 1...3 {
      let failures = table.fail(suspect.id)
      #expect(failures == failureCount)
      let again = table.retry(suspect.id)
      #expect(again?.start == piece.lowerBound + 1000)
      #expect(again?.mirror == 1)
    }
    table.fail(suspect.id)
    _ = table.forget(piece)
    table.rewind(suspect.id, to: piece.lowerBound)
    let anew = table.retry(suspect.id)
    #expect(anew?.start == piece.lowerBound)
  }
}

extension SegmentTable {
  /// Hands bytes over and stores them at once.
  @discardableResult
  fileprivate mutating func store(
    _ id: Int, _ range: ByteRange, now: ContinuousClock.Instant
  ) -> Int64 {
    let runs = enqueue(range)
    return stored(id, range, runs: runs, kept: runs, now: now)
  }
}
