import HTTPTransferCore
import Testing

/// The order of transfers under a limit for all and limits for some, on a simulated clock.
@Suite struct RateScheduleTests {
  /// Connections whose servers send as much as is received, in pieces of 16 KiB.
  private struct Simulation {
    private static let piece = 16_384

    var schedule = RateSchedule()
    /// The limit of each connection.
    let limits: [RateLimit?]
    var passed: [Int]
    var now = 100.0
    private var running: Set<Int>

    init(_ limits: [RateLimit?], total: Int64? = nil) {
      self.limits = limits
      passed = limits.map { _ in 0 }
      running = Set(limits.indices)
      schedule.setTotal(total, now: now)
    }

    /// Lets all connections run until `end`; the minimum step is the network's time for a piece.
    mutating func run(until end: Double, lineRate: Double = 100e6) {
      while now < end {
        while let id = schedule.next(now: now) {
          running.insert(Int(id))
          offer(Int(id), lineRate)
        }
        for index in running.sorted() { offer(index, lineRate) }
        guard running.isEmpty else { continue }
        // No connection runs: one must get its turn, but not at once.
        guard let delay = schedule.delay(now: now), delay.isFinite else { return }
        now = min(end, now + max(delay, 1e-9))
      }
    }

    private mutating func offer(_ index: Int, _ lineRate: Double) {
      if schedule.admit(Self.piece, of: UInt64(index), under: limits[index], now: now) {
        passed[index] += Self.piece
        now += Double(Self.piece) / lineRate
      } else {
        running.remove(index)
      }
    }

    func rate(_ indices: some Sequence<Int>, since start: Double = 100) -> Double {
      Double(indices.map { passed[$0] }.reduce(0, +)) / (now - start)
    }
  }

  private func isNear(_ rate: Double, _ expected: Double) -> Bool {
    rate > expected * 0.9 && rate < expected * 1.1
  }

  @Test("All connections of one limit share it, and those of another have their own")
  func groups() {
    let (slow, fast) = (RateLimit(bytesPerSecond: 100_000), RateLimit(bytesPerSecond: 1_000_000))
    var simulation = Simulation([slow, slow, slow, fast, nil])
    simulation.run(until: 130)
    #expect(isNear(simulation.rate(0..<3), 100_000), "\(simulation.rate(0..<3))")
    #expect(isNear(simulation.rate(3..<4), 1_000_000), "\(simulation.rate(3..<4))")
    // Without a limit, it gets nearly the whole bandwidth.
    #expect(simulation.rate(4..<5) > 80e6, "\(simulation.rate(4..<5))")
    // Each connection that shares the limit gets its turns.
    #expect(simulation.passed[0..<3].allSatisfy { $0 > 600_000 }, "\(simulation.passed)")
  }

  @Test("Both limits hold; what a slow file leaves of the total the others get")
  func totalAndGroups() {
    let slow = RateLimit(bytesPerSecond: 50_000)
    let loose = RateLimit(bytesPerSecond: 5_000_000)
    var simulation = Simulation([slow, slow, loose, nil], total: 1_000_000)
    simulation.run(until: 130)
    #expect(isNear(simulation.rate(0..<4), 1_000_000), "\(simulation.rate(0..<4))")
    #expect(isNear(simulation.rate(0..<2), 50_000), "\(simulation.rate(0..<2))")
    #expect(isNear(simulation.rate(2..<3), 475_000), "\(simulation.rate(2..<3))")
  }

  @Test("A limit that is changed, set or taken off holds at once, also for who waits")
  func changes() {
    let limit = RateLimit(bytesPerSecond: 100)
    var simulation = Simulation([limit, limit])
    simulation.run(until: 101)
    let before = simulation.passed.reduce(0, +)
    #expect(before <= 16_384)
    limit.set(1_000_000)
    simulation.run(until: 111)
    let between = simulation.passed.reduce(0, +) - before
    #expect(isNear(Double(between) / 10, 1_000_000), "\(between)")
    limit.set(nil)
    simulation.run(until: 112)
    #expect(simulation.passed.reduce(0, +) > before + between + 80_000_000)
    let free = simulation.passed.reduce(0, +)
    limit.set(1000)
    simulation.run(until: 122)
    #expect(simulation.passed.reduce(0, +) - free <= 10_000 + 2 * 16_384)
  }

  @Test("Where the total is taken off, who waited for it goes on, but not past its own limit")
  func totalTakenOff() {
    let slow = RateLimit(bytesPerSecond: 1000)
    var simulation = Simulation([slow, nil], total: 100)
    simulation.run(until: 110)
    #expect(simulation.passed.reduce(0, +) <= 2 * 16_384)
    simulation.schedule.setTotal(nil, now: simulation.now)
    simulation.run(until: 112)
    #expect(simulation.passed[1] > 100_000_000)
    #expect(simulation.passed[0] <= 2 * 16_384)
  }

  @Test("Of a thousand limits each holds, and those that nobody uses are let go of")
  func many() {
    let limits = (0..<1000).map { _ in RateLimit(bytesPerSecond: 10_000) }
    var simulation = Simulation(limits)
    simulation.run(until: 120)
    #expect(isNear(simulation.rate(0..<1000), 10_000_000), "\(simulation.rate(0..<1000))")
    while simulation.schedule.next(now: 300) != nil {}
    weak var forgotten: RateLimit?
    do {
      let limit = RateLimit(bytesPerSecond: 1000)
      forgotten = limit
      let isAdmitted = simulation.schedule.admit(1, of: 5000, under: limit, now: 300)
      #expect(isAdmitted)
    }
    #expect(forgotten != nil)
    // Twice as many connections are added and removed.
    for id in 0..<3000 {
      let limit = RateLimit(bytesPerSecond: 1 << 30)
      _ = simulation.schedule.admit(1, of: UInt64(6000 + id), under: limit, now: 301)
    }
    #expect(forgotten == nil)
  }

  @Test("What is given back may pass again")
  func givenBack() {
    let limit = RateLimit(bytesPerSecond: 1000)
    var schedule = RateSchedule()
    let first = schedule.admit(16_384, of: 1, under: limit, now: 0)
    #expect(first)
    let second = schedule.admit(16_384, of: 1, under: limit, now: 1)
    #expect(!second)
    schedule.giveBack(16_384, under: limit)
    let third = schedule.admit(10, of: 1, under: limit, now: 1)
    #expect(third)
  }

  @Test("0 and nothing mean no limit", arguments: [nil, 0, -5])
  func none(bytesPerSecond: Int64?) {
    let limit = RateLimit(bytesPerSecond: bytesPerSecond)
    #expect(limit.bytesPerSecond == nil)
    limit.set(7)
    #expect(limit.bytesPerSecond == 7)
    limit.set(bytesPerSecond)
    #expect(limit.bytesPerSecond == nil)
  }

  @Test(
    "A rate is written as a size, and may end in /s",
    arguments: [
      ("0", 0), ("1", 1), ("500K", 512_000), ("10m", 10 << 20), ("2G/s", 2 << 30), ("7/s", 7),
      ("", nil), ("/s", nil), ("1M/h", nil), ("-1", nil), ("1.5M", 1_572_864), ("1MB", 1_000_000),
      ("10GiB", 10 << 30), ("3b", 3), ("0.000001T", 1_099_511), ("1.5", nil), ("1iB", nil),
      ("1.M", nil), (".5M", nil), ("1.0000001M", nil), ("9000000T", nil),
      ("9223372036854775807K", nil), ("1M/s/s", nil), (" 1", nil),
    ] as [(String, Int64?)])
  func text(text: String, expected: Int64?) {
    #expect(bytesPerSecond(ofText: text) == expected)
  }
}
