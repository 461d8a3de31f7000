import HTTPTransferCore
import Testing

@Suite struct ParallelismControllerTests {
  /// A download that reports its progress eight times a second.
  private struct Download {
    static let tick = 0.125

    var controller: ParallelismController
    var now = 0.0
    /// The seconds for which the network thread has waited for its sockets.
    var idle = 0.0
    /// The target after each report.
    var targets: [Int] = []

    init(initial: Int = 1, maximum: Int = 16) {
      controller = ParallelismController(initial: initial, maximum: maximum)
      // The first report only starts the clock.
      controller.note(byteCount: 0, active: 0, idle: 0, isWaited: true, now: now)
    }

    /// Runs for `seconds` on a network with a goodput in bytes per second for each number of
    /// connections.
    ///
    /// The network thread waits for `idleShare` of the time.
    mutating func run(
      _ seconds: Double, isWaited: Bool = true, active: Int? = nil, idleShare: Double = 1,
      goodput: (Int) -> Double
    ) {
      for _ in 0..<Int(seconds / Self.tick) {
        now += Self.tick
        idle += Self.tick * idleShare
        controller.note(
          byteCount: Int64(goodput(controller.target) * Self.tick),
          active: active ?? controller.target, idle: idle, isWaited: isWaited, now: now)
        targets.append(controller.target)
      }
    }
  }

  @Test("Connections double, then quadruple as long as each brings its own rate, up to the maximum")
  func doubles() {
    var download = Download()
    download.run(1) { Double($0) * 10e6 }
    #expect(download.targets.prefix(4) == [2, 8, 16, 16])
    download.run(60) { Double($0) * 10e6 }
    #expect(download.targets.dropFirst(3).allSatisfy { $0 == 16 })
  }

  @Test("A step is measured against the requests that were in flight, not against the target")
  func demandInFlight() {
    var download = Download()
    // Reads that could not wait have used three connections instead of one.
    download.run(0.125, active: 3) { _ in 30e6 }
    #expect(download.controller.target == 6)
    download.run(0.125) { Double($0) * 10e6 }
    #expect(download.controller.target == 16)
    download.run(1) { Double($0) * 10e6 }
    #expect(download.controller.target == 16)
  }

  @Test("A maximum that is no power of two is reached and not passed")
  func oddMaximum() {
    var download = Download(maximum: 6)
    download.run(60) { Double($0) * 10e6 }
    #expect(download.controller.target == 6)
    #expect(download.targets.max() == 6)
  }

  @Test("A doubling that gains nothing is taken back, and tried ever more rarely")
  func stepsBack() {
    var download = Download()
    // Three connections fill the network: four deliver a quarter more than two, eight no more.
    let line = { (count: Int) in min(Double(count) * 10e6, 25e6) }
    download.run(0.5, goodput: line)
    // Two connections delivered twice as much as one, but eight far less than four times as much as
    // two.
    #expect(download.targets == [2, 8, 2, 2])
    download.run(120, goodput: line)
    #expect(download.targets.max() == 8)
    // After a long time without change, half as many connections are tried, which deliver less.
    #expect(download.targets.dropFirst(20).min() == 2)
    #expect(download.targets.dropFirst(20).filter { $0 == 2 }.count <= 6)
    #expect(download.controller.proven == 4)
    // After a second, two, four, eight, sixteen, sixteen …: ten attempts in two minutes.
    let attempts = download.targets.filter { $0 == 8 }.count
    #expect((5...14).contains(attempts))
  }

  @Test("One connection that no server throttles stays alone")
  func fastConnection() {
    var download = Download()
    download.run(30) { _ in 400e6 }
    #expect(download.targets.allSatisfy { $0 == 1 })
  }

  @Test("Connections that together are fast enough are not doubled again")
  func enoughGoodput() {
    var download = Download()
    download.run(30) { Double($0) * 80e6 }
    #expect(download.targets.max() == 4)
  }

  @Test("While the network thread is busy, nothing is concluded from the goodput")
  func busyThread() {
    var download = Download(initial: 4)
    download.run(30, idleShare: 0.2) { Double($0) * 10e6 }
    #expect(download.targets.allSatisfy { $0 == 4 })
    download.run(30, idleShare: 0.8) { Double($0) * 10e6 }
    #expect(download.controller.target == 16)
  }

  @Test("What was learned is where a later download starts, and is kept while it pays")
  func learned() {
    var download = Download()
    download.controller = ParallelismController(learned: 16, maximum: 32)
    download.run(3) { Double(min($0, 16)) * 10e6 }
    #expect(download.targets.allSatisfy { $0 == 16 })
    download.run(60) { Double(min($0, 16)) * 10e6 }
    #expect(download.controller.proven == 16)
    // Half as many and twice as many are tried, for a moment each.
    #expect(download.targets.contains(8) && download.targets.contains(32))
    #expect(download.targets.filter { $0 == 16 }.count > download.targets.count * 9 / 10)
  }

  @Test("What was learned is given up, step by step, when fewer bring as much")
  func unlearned() {
    var download = Download()
    download.controller = ParallelismController(learned: 16, maximum: 32)
    download.run(120) { _ in 90e6 }
    #expect(download.controller.target <= 4, "\(download.controller.target)")
    #expect(download.controller.proven ?? 16 <= 4)
  }

  @Test("While more requests than the smaller number are under way, nothing is concluded of it")
  func draining() {
    var download = Download()
    download.controller = ParallelismController(learned: 16, maximum: 32)
    download.run(4.25) { _ in 90e6 }
    #expect(download.controller.target == 8)
    download.run(5, active: 16) { _ in 90e6 }
    #expect(download.controller.target == 8)
    #expect(download.controller.proven == nil)
  }

  @Test("A fixed number that was halved because of a refusal comes back")
  func fixedAfterRefusal() {
    var download = Download(initial: 8, maximum: 8)
    download.controller.stepDown(now: download.now)
    #expect(download.controller.target == 4)
    download.run(30) { Double($0) * 10e6 }
    #expect(download.controller.target == 8)
  }

  /// A download over a network with a delay.
  ///
  /// A connection delivers its rate once it has been open for `delay` seconds.
  private struct DelayedDownload {
    static let tick = 0.01

    var controller = ParallelismController(initial: 1, maximum: 32)
    var now = 0.0
    /// The time at which each connection was requested.
    var openedAt: [Double] = [0]
    var targets: [Int] = []
    var arrivedByteCount: Int64 = 0

    mutating func run(_ seconds: Double, delay: Double, line: Double = .infinity) {
      for _ in 0..<Int(seconds / Self.tick) {
        now += Self.tick
        while openedAt.count < controller.target { openedAt.append(now) }
        openedAt.removeLast(max(0, openedAt.count - controller.target))
        let flowing = openedAt.filter { $0 + delay <= now }.count
        guard flowing > 0 else { continue }
        let byteCount = Int64(min(Double(flowing) * 10e6, line) * Self.tick)
        arrivedByteCount += byteCount
        controller.note(
          byteCount: byteCount, active: openedAt.count, flowing: flowing, idle: now,
          isWaited: true, now: now)
        targets.append(controller.target)
      }
    }
  }

  @Test(
    "A step is judged once its connections bring bytes, however long that takes",
    arguments: [0.02, 0.1, 0.3])
  func settles(delay: Double) {
    var download = DelayedDownload()
    download.run(delay * 3 + 0.25, delay: delay)
    // One, four, then as many as deliver 250 MB/s.
    #expect(Set(download.targets).subtracting([25, 26]) == [1, 4])
    #expect((25...26).contains(download.controller.target))
  }

  @Test("256 MiB at 10 MB/s a connection and 0.1 s of delay take less than 1.6 s")
  func arrivesSoon() {
    var download = DelayedDownload()
    download.run(1.6, delay: 0.1)
    #expect(download.arrivedByteCount >= 256 << 20)
  }

  @Test("A line that four connections fill is not given many more for long")
  func filledLine() {
    var download = DelayedDownload()
    download.run(3, delay: 0.1, line: 40e6)
    #expect(download.controller.proven == 4)
    #expect(download.targets.filter { $0 > 4 }.count < download.targets.count / 3)
  }

  @Test("Connections that bring nothing within a second are judged all the same")
  func neverFlows() {
    var controller = ParallelismController(initial: 1, maximum: 16)
    var now = 0.0
    for _ in 0..<200 {
      now += 0.02
      controller.note(
        byteCount: 200_000, active: controller.target, flowing: 1, idle: now, isWaited: true,
        now: now)
    }
    #expect(controller.proven == 1)
  }

  @Test("A fixed number stays", arguments: [1, 6, 32])
  func fixed(count: Int) {
    var download = Download(initial: count, maximum: count)
    download.run(30) { Double($0) * 10e6 }
    download.run(30) { _ in 1e6 }
    #expect(download.targets.allSatisfy { $0 == count })
  }

  @Test("Without a reader who waits, or with connections unused, nothing is concluded")
  func nobodyWaits() {
    var download = Download(initial: 4)
    download.run(30, isWaited: false) { Double($0) * 10e6 }
    download.run(30, active: 3) { Double($0) * 10e6 }
    #expect(download.targets.allSatisfy { $0 == 4 })
  }

  @Test("A pause of the reader is not taken for a slow line")
  func pause() {
    var download = Download()
    download.run(0.125) { Double($0) * 10e6 }
    #expect(download.controller.target == 2)
    // Two seconds later few bytes have arrived: two connections did not deliver less than one.
    download.now += 2
    download.run(0.125) { _ in 1000 }
    #expect(download.controller.target == 2)
  }

  @Test("A refusal halves the connections down to one, and they are not raised at once")
  func stepDown() {
    var download = Download(initial: 16)
    for expected in [8, 4, 2, 1, 1] {
      download.controller.stepDown(now: download.now)
      #expect(download.controller.target == expected)
    }
    download.run(0.75) { Double($0) * 10e6 }
    #expect(download.targets.allSatisfy { $0 == 1 })
    download.run(60) { Double($0) * 10e6 }
    #expect(download.controller.target == 16)
  }

  @Test("Impossible bounds are put right", arguments: [(0, 0), (-3, 1), (5, 1), (0, -1)])
  func bounds(initial: Int, maximum: Int) {
    #expect(ParallelismController(initial: initial, maximum: maximum).target == 1)
  }
}
