import HTTPTransfer
import HTTPTransferCore
import SeededRandom
import Testing

@testable import RemoteFiles

/// The decisions of a file's version, without I/O.
@Suite struct VersionStateTests {
  private static let mebibyte: Int64 = 1 << 20
  private let start = ContinuousClock.now

  private func state(
    length: Int64? = 64 << 20, present: [ByteRange] = [], connections: Int? = nil
  ) -> VersionState {
    VersionState(length: length, extents: ExtentSet(present), connections: connections)
  }

  /// Parks a read of `range` and plans; returns the actions.
  @discardableResult
  private func park(
    _ range: ByteRange, in state: inout VersionState, at time: Duration = .zero,
    timeout: Duration = .seconds(60)
  ) -> VersionActions {
    var actions = VersionActions()
    let now = start + time
    state.park(parkedRead(range, since: now, timeout: timeout), into: &actions)
    state.plan(now: now, into: &actions)
    return actions
  }

  /// Stores arrived bytes of `range` for a segment; returns the actions.
  private func store(
    _ range: ByteRange, of segment: Segment, in state: inout VersionState,
    at time: Duration = .zero
  ) -> VersionActions {
    var actions = VersionActions()
    _ = state.advance(segment.id, to: range.upperBound, now: start + time)
    state.stored(segment.id, range, now: start + time, into: &actions)
    return actions
  }

  private func ranges(_ segments: [Segment]) -> [ByteRange] { segments.map { $0.start..<$0.end } }

  private func failure(_ attempt: ReadAttempt) -> FileError.Code? {
    if case .failed(let error) = attempt { error.code } else { nil }
  }

  private func presentByteCount(_ attempt: ReadAttempt) -> Int? {
    if case .present(let byteCount) = attempt { byteCount } else { nil }
  }

  private func isAbsent(_ attempt: ReadAttempt) -> Bool {
    if case .absent = attempt { true } else { false }
  }

  // MARK: Attempts

  @Test(
    "An attempt is answered where all its bytes are present, and cut at the file's end",
    arguments: [
      (0..<4096, 4096), (4000..<8192, 4192), (0..<8193, nil), (8192..<8193, nil),
      (9000..<20_000, 1000), (10_000..<20_000, 0), (50_000..<60_000, 0), (8999..<9001, nil),
    ] as [(ByteRange, Int?)])
  func attempts(range: ByteRange, byteCount: Int?) {
    var state = state(length: 10_000, present: [0..<8192, 9000..<10_000])
    let attempt = state.attempt(range, now: start)
    #expect(presentByteCount(attempt) == byteCount)
    #expect(isAbsent(attempt) == (byteCount == nil))
  }

  @Test("A file of unknown length gives what is there of a read")
  func growingFile() {
    var state = state(length: nil, present: [0..<1000])
    #expect(presentByteCount(state.attempt(0..<4096, now: start)) == 1000)
    #expect(presentByteCount(state.attempt(900..<4096, now: start)) == 100)
    #expect(isAbsent(state.attempt(1000..<4096, now: start)))
    #expect(!state.isComplete)
  }

  @Test("A file is complete when all of its bytes are present")
  func completeness() {
    #expect(state(length: 0).isComplete)
    #expect(state(length: 10, present: [0..<10]).isComplete)
    #expect(!state(length: 10, present: [0..<9]).isComplete)
    #expect(!state(length: nil, present: [0..<10]).isComplete)
  }

  // MARK: Demand

  @Test("A parked read starts a request for its pages, and the bytes wake it")
  func parkPlanStore() throws {
    var state = state()
    let actions = park(5000..<6000, in: &state)
    let segment = try #require(actions.starts.first)
    #expect(ranges(actions.starts) == [4096..<8192])
    #expect(!segment.isWhole)
    #expect(actions.wakes.isEmpty)
    // Bytes before the requested ones, and only some of those, wake no read.
    #expect(store(4096..<5500, of: segment, in: &state).wakes.isEmpty)
    let woken = store(5500..<8192, of: segment, in: &state)
    #expect(woken.wakes.map(\.range) == [5000..<6000])
    #expect(state.parked.isEmpty)
    #expect(presentByteCount(state.attempt(5000..<6000, now: start)) == 1000)
  }

  @Test("Two reads of the same bytes are one request, and both are woken by it")
  func sharedRequest() throws {
    var state = state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    #expect(park(0..<4096, in: &state).starts.isEmpty)
    #expect(store(0..<4096, of: segment, in: &state).wakes.count == 2)
  }

  @Test("Bytes are written out early where a read waits for them, and not elsewhere")
  func advice() throws {
    var state = state()
    let segment = try #require(park(0..<65_536, in: &state).starts.first)
    park(4096..<8192, in: &state)
    let early = state.advance(segment.id, to: 8191, now: start)
    #expect(early?.mustFlush == false)
    let due = state.advance(segment.id, to: 8192, now: start)
    #expect(due?.mustFlush == true)
    #expect(due?.end == 65_536)
    var actions = VersionActions()
    state.stored(segment.id, 0..<8192, now: start, into: &actions)
    #expect(actions.wakes.map(\.range) == [4096..<8192])
    #expect(state.advance(segment.id, to: 16_384, now: start)?.mustFlush == false)
    #expect(state.advance(segment.id, to: 65_536, now: start)?.mustFlush == true)
  }

  @Test("No request brings bytes beyond the known length, whatever its answer says")
  func bytesBeyondTheEnd() {
    var state = state(length: 2 * Self.mebibyte)
    let segment = state.addSegment(range: 0..<Int64.max, isWhole: true, now: start)
    #expect(ranges([segment]) == [0..<(2 * Self.mebibyte)])
    let advice = state.advance(segment.id, to: 3 * Self.mebibyte, now: start)
    #expect(advice?.end == 2 * Self.mebibyte)
    // If no length is known, only the body's end shows it.
    var unknown = self.state(length: nil)
    let whole = unknown.addSegment(range: 0..<Int64.max, isWhole: true, now: start)
    #expect(whole.end == Int64.max)
  }

  @Test("A number of connections that the user gave holds for all requests")
  func connectionLimit() {
    var state = state(connections: 2)
    var startCount = 0
    for index in 0..<10 as Range<Int64> {
      let offset = index * 4 * Self.mebibyte
      startCount += park(offset..<(offset + 4096), in: &state).starts.count
    }
    #expect(startCount == 2)
    #expect(state.segments.count == 2)
    // A request that ends makes room for the next.
    var actions = VersionActions()
    state.removeSegment(state.segments[0].id)
    state.plan(now: start, into: &actions)
    #expect(actions.starts.count == 1)
  }

  @Test("Exactly the reads whose bytes are all present are woken", arguments: 1...8)
  func wakesAgainstOracle(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let length: Int64 = 4 << 20
    for _ in 0..<20 {
      var state = state(length: length)
      var waiting: [ParkedRead] = []
      var present = ExtentSet()
      for step in 0..<200 {
        let now = start + .milliseconds(step)
        let offset = Int64.random(in: 0..<length, using: &random)
        let range = ByteRange(
          offset: offset, byteCount: .random(in: 1...65_536, using: &random)
        ).clamped(to: 0..<length)
        if Bool.random(using: &random), !present.contains(range) {
          let read = parkedRead(range, since: now)
          var actions = VersionActions()
          state.park(read, into: &actions)
          state.plan(now: now, into: &actions)
          #expect(actions.wakes.isEmpty)
          waiting.append(read)
        }
        guard let segment = state.segments.randomElement(using: &random) else { continue }
        // Some bytes of the segment arrive; at its end, it is removed.
        let end = min(
          segment.end, segment.position + .random(in: 1...40_000, using: &random))
        var actions = VersionActions()
        if segment.position < end {
          _ = state.advance(segment.id, to: end, now: now)
          state.stored(segment.id, segment.position..<end, now: now, into: &actions)
          present.insert(segment.position..<end)
        }
        if end >= segment.end { state.removeSegment(segment.id) }
        let expected = waiting.filter { present.contains($0.range) }.map(\.id)
        try #require(Set(actions.wakes.map(\.id)) == Set(expected))
        try #require(actions.wakes.count == expected.count)
        waiting.removeAll { expected.contains($0.id) }
        try #require(state.parked.reads.count == waiting.count)
        try #require(state.extents == present)
      }
    }
  }
}
