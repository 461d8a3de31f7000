import HTTPTransferCore
import SeededRandom
import Testing

@testable import RemoteFiles

/// Whole downloads against a simulated network, decision by decision.
@Suite struct SequentialDownloadTests {
  /// The state of readers, network and version.
  private struct Simulation {
    static let readByteCount: Int64 = 131_072

    let length: Int64
    var state: VersionState
    var now = ContinuousClock.now
    /// The position of each reader.
    var positions: [Int64]
    /// The waiting readers, by their reads.
    var waiting: [ReadID: Int] = [:]
    /// The number of body bytes that were sent.
    var arrivedByteCount: Int64 = 0
    var requestCount = 0
    var maximumRequestCount = 0
    var random: SeededGenerator

    init(length: Int64, readers: [Int64], connections: Int?, seed: UInt64) {
      self.length = length
      state = VersionState(length: length, extents: ExtentSet(), connections: connections)
      positions = readers
      random = SeededGenerator(seed: seed)
    }

    mutating func note(_ actions: VersionActions) {
      requestCount += actions.starts.count
      maximumRequestCount = max(maximumRequestCount, state.segments.count)
      for read in actions.wakes {
        guard let reader = waiting.removeValue(forKey: read.id) else {
          Issue.record("a read is woken that does not wait")
          continue
        }
        if !state.extents.contains(read.range) { Issue.record("woken without bytes") }
        positions[reader] = read.range.upperBound
      }
    }

    /// Lets every reader continue until it waits or is done.
    mutating func read() {
      for reader in positions.indices where !waiting.values.contains(reader) {
        while positions[reader] < length {
          let range = ByteRange(offset: positions[reader], byteCount: Self.readByteCount)
          var actions = VersionActions()
          state.note(range, now: now)
          if case .present(let byteCount) = state.attempt(range, now: now) {
            positions[reader] += Int64(byteCount)
            state.plan(now: now, into: &actions)
            note(actions)
            continue
          }
          let read = parkedRead(state.clamped(range), since: now)
          waiting[read.id] = reader
          state.park(read, into: &actions)
          state.plan(now: now, into: &actions)
          note(actions)
          break
        }
      }
    }

    /// Delivers some bytes of a random request, or cuts its connection.
    mutating func receive(failureRate: Double) {
      now += .milliseconds(5)
      guard let segment = state.segments.randomElement(using: &random) else { return }
      var actions = VersionActions()
      if Double.random(in: 0..<1, using: &random) < failureRate {
        state.removeSegment(segment.id)
        state.plan(now: now, into: &actions)
        return note(actions)
      }
      let end = min(segment.end, segment.position + .random(in: 1...300_000, using: &random))
      if end > segment.position {
        arrivedByteCount += end - segment.position
        _ = state.advance(segment.id, to: end, now: now)
        state.stored(segment.id, segment.position..<end, now: now, into: &actions)
      }
      // Its end may have been reduced meanwhile.
      if let current = state.segments.first(where: { $0.id == segment.id }), end >= current.end {
        state.removeSegment(segment.id)
        state.plan(now: now, into: &actions)
      }
      note(actions)
    }

    /// Runs until every reader is done; false if that takes too long.
    mutating func run(failureRate: Double) -> Bool {
      for _ in 0..<100_000 {
        read()
        if positions.allSatisfy({ $0 >= length }) { return true }
        receive(failureRate: failureRate)
      }
      return false
    }
  }

  @Test("One reader gets the whole file, and every byte travels once", arguments: 1...6)
  func oneReader(seed: UInt64) {
    var simulation = Simulation(length: 40_000_001, readers: [0], connections: nil, seed: seed)
    let isDone = simulation.run(failureRate: 0)
    #expect(isDone)
    #expect(simulation.state.isComplete)
    #expect(simulation.arrivedByteCount == simulation.length)
    #expect(simulation.requestCount < 200)
  }

  @Test("Readers at several places share what travels", arguments: 1...6)
  func severalReaders(seed: UInt64) {
    let length: Int64 = 30_000_000
    var simulation = Simulation(
      length: length, readers: [0, 0, 10_000_384, 20_000_768, 29_999_000], connections: nil,
      seed: seed)
    let isDone = simulation.run(failureRate: 0)
    #expect(isDone)
    #expect(simulation.arrivedByteCount == length)
  }

  @Test("Connections that are cut again and again lose no byte and repeat none", arguments: 1...6)
  func cutConnections(seed: UInt64) {
    var simulation = Simulation(
      length: 20_000_000, readers: [0, 9_000_000], connections: nil, seed: seed)
    let isDone = simulation.run(failureRate: 0.1)
    #expect(isDone)
    #expect(simulation.state.isComplete)
    #expect(simulation.arrivedByteCount == simulation.length)
  }

  @Test("A given number of connections is never passed by a reader", arguments: [1, 2, 5])
  func fixedConnections(count: Int) {
    var simulation = Simulation(
      length: 20_000_000, readers: [0], connections: count, seed: UInt64(count))
    let isDone = simulation.run(failureRate: 0.02)
    #expect(isDone)
    #expect(simulation.maximumRequestCount == count)
    #expect(simulation.arrivedByteCount == simulation.length)
  }

  @Test("Several readers pass a given number by one at most, for a read elsewhere")
  func severalReadersOfFixedConnections() {
    var simulation = Simulation(
      length: 20_000_000, readers: [0, 5_000_000, 10_000_000, 15_000_000], connections: 2, seed: 1)
    let isDone = simulation.run(failureRate: 0.02)
    #expect(isDone)
    #expect((2...3).contains(simulation.maximumRequestCount))
    #expect(simulation.arrivedByteCount == simulation.length)
  }
}
