import HTTPTransfer
import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// The bound of requests after answers without bytes, and the learning of lengths.
@Suite struct RequestBoundTests {
  private static let mebibyte: Int64 = 1 << 20
  private let start = ContinuousClock.now
  private let policy = RetryPolicy()

  private func state(length: Int64?, present: [ByteRange] = []) -> VersionState {
    VersionState(length: length, extents: ExtentSet(present), connections: nil)
  }

  private func park(
    _ range: ByteRange, in state: inout VersionState, at time: Duration = .zero
  ) -> VersionActions {
    var actions = VersionActions()
    state.park(parkedRead(range, since: start + time), into: &actions)
    state.plan(now: start + time, into: &actions)
    return actions
  }

  /// A response delivers `range` and ends; the steps for the next request are executed.
  private func answer(
    _ segment: Segment, with range: ByteRange?, in state: inout VersionState, at time: Duration
  ) -> VersionActions {
    var actions = VersionActions()
    let now = start + time
    if let range { state.stored(segment.id, range, now: now, into: &actions) }
    if state.endSegment(segment.id) {
      state.retryLater(
        after: FileError(.invalidResponse, "test"), retryAfter: nil, policy: policy, random: 0,
        now: now, into: &actions)
    }
    state.plan(now: now, into: &actions)
    return actions
  }

  // MARK: Answers that bring nothing

  @Test("A whole body that brought no new byte is not asked for again at once")
  func fruitlessWhole() throws {
    var state = state(length: nil, present: [0..<Self.mebibyte])
    let segment = try #require(
      park(Self.mebibyte..<(Self.mebibyte + 4096), in: &state).starts.first)
    #expect(segment.isWhole)
    let actions = answer(segment, with: 0..<Self.mebibyte, in: &state, at: .zero)
    #expect(actions.starts.isEmpty)
    #expect(actions.retryAfter == .milliseconds(50))
  }

  @Test("A server that gives one byte for each request is asked less and less often")
  func meagreAnswers() throws {
    var state = state(length: 64 << 20)
    var time = Duration.zero
    var count = 0
    var segment = try #require(park(0..<131_072, in: &state).starts.first)
    while time < .seconds(60), count < 1000 {
      count += 1
      let position = segment.start
      let actions = answer(segment, with: position..<(position + 1), in: &state, at: time)
      time += try #require(actions.retryAfter)
      var next = VersionActions()
      state.plan(now: start + time, into: &next)
      segment = try #require(next.starts.first)
    }
    #expect(count <= 40, "\(count) requests in a minute")
  }

  @Test("One worthwhile answer makes up for all those before it")
  func worthwhileAnswer() throws {
    var state = state(length: 64 << 20)
    let first = try #require(park(0..<131_072, in: &state).starts.first)
    _ = answer(first, with: nil, in: &state, at: .zero)
    #expect(state.requests.backoff.fruitlessCount == 1)
    var actions = VersionActions()
    state.plan(now: start + .seconds(1), into: &actions)
    let second = try #require(actions.starts.first)
    state.stored(second.id, 0..<4096, now: start + .seconds(1), into: &actions)
    let backoff = state.requests.backoff
    #expect(backoff.fruitlessCount == 0 && backoff.failureCount == 0 && backoff.retryAt == nil)
  }

  @Test("A request whose bytes another one has brought was not in vain")
  func overtaken() throws {
    var state = state(length: 64 << 20)
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    state.setCached(ExtentSet([0..<segment.end]))
    let wasInVain = state.endSegment(segment.id)
    #expect(!wasInVain)
  }

  @Test("Refusal after refusal, however many places are read, becomes a few requests a second")
  func refusedPlaces() throws {
    var state = state(length: 1 << 40)
    var time = Duration.zero
    var count = 0
    for place in 0..<100_000 where time < .seconds(60) {
      let offset = Int64(place) * Self.mebibyte
      var starts = park(offset..<(offset + 4096), in: &state, at: time).starts
      if starts.isEmpty, let at = state.requests.backoff.retryAt {
        time = at - start
        var actions = VersionActions()
        state.plan(now: at, into: &actions)
        starts = actions.starts
      }
      for segment in starts {
        count += 1
        _ = state.endSegment(segment.id)
      }
      var actions = VersionActions()
      state.failParked(FileError(.denied, "HTTP 403"), now: start + time, into: &actions)
      // The next reader arrives at once.
      time += .milliseconds(1)
    }
    #expect(time >= .seconds(60))
    #expect(count <= 16 + 60 * Backoff.fruitlessRequestLimit, "\(count) requests in a minute")
  }

  // MARK: Lengths

  @Test(
    "A length that a later head tells ends the reads beyond it, and the stream that is going on")
  func learnedLength() throws {
    var state = state(length: nil, present: [0..<8192])
    let segment = try #require(park(8192..<12_288, in: &state).starts.first)
    var actions = VersionActions()
    let isNew = state.learn(length: 8192, into: &actions)
    #expect(isNew)
    #expect(actions.wakes.map(\.range) == [8192..<12_288])
    #expect(state.isComplete)
    #expect(state.segments.first { $0.id == segment.id }?.end == 8192)
    // The length is learned only once.
    let isNewAgain = state.learn(length: 9000, into: &actions)
    #expect(!isNewAgain)
    #expect(state.length == 8192)
  }

  @Test("No length is less than what is present")
  func shorterLength() throws {
    var state = state(length: nil, present: [0..<4096, 8192..<12_288])
    var actions = VersionActions()
    let lengths = [Int64(12_287), 12_288].map { state.learn(length: $0, into: &actions) }
    #expect(lengths == [false, true])
    #expect(state.length == 12_288)
  }

  @Test("A body that ends before what is present is another try's twice, and then another file's")
  func shortBody() throws {
    var state = state(length: nil, present: [0..<Self.mebibyte])
    var actions = VersionActions()
    let codes = (0..<3).map { _ in state.ended(at: 4096, into: &actions)?.code }
    #expect(codes == [.invalidResponse, .invalidResponse, .stale])
    #expect(state.content.isEndedShort && state.length == nil)
    let failure = state.ended(at: Self.mebibyte, into: &actions)
    #expect(failure == nil)
    #expect(state.length == Self.mebibyte)
  }

  // MARK: Contradictions

  @Test("Who is contradicted again and again asks once a second, and at once after a while")
  func contradictions() {
    var contradictions = ContradictionCount()
    #expect(contradictions.delay(now: start) == .zero)
    for _ in 0..<8 { contradictions.note(now: start) }
    #expect(contradictions.delay(now: start) == .zero)
    var now = start
    var count = 8
    while now < start + .seconds(60) {
      contradictions.note(now: now)
      count += 1
      now += max(contradictions.delay(now: now), .milliseconds(1))
    }
    #expect(count <= 8 + 62 + 8, "\(count) in a minute")
    #expect(contradictions.delay(now: now + .seconds(2)) == .zero)
  }

  // MARK: Memory

  @Test("A version that nobody reads keeps no memory for requests that have ended")
  func memoryOfSegments() throws {
    var state = state(length: 64 * Self.mebibyte)
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    #expect(state.segments.capacity > 0)
    state.removeSegment(segment.id)
    #expect(state.segments.capacity == 0)
  }

  // MARK: The count of the last minute

  @Test("The requests of the last minute are counted, and forgotten a minute later")
  func meter() {
    var meter = RequestMeter()
    #expect(meter.count(second: 7) == 0)
    meter.note(3, second: 100)
    meter.note(1, second: 100)
    meter.note(5, second: 130)
    #expect(meter.count(second: 130) == 9)
    #expect(meter.count(second: 159) == 9)
    #expect(meter.count(second: 160) == 5)
    #expect(meter.count(second: 189) == 5)
    #expect(meter.count(second: 190) == 0)
    meter.note(2, second: 500)
    #expect(meter.count(second: 500) == 2)
    #expect(meter.count(second: 10_000) == 0)
    // A clock that is slow.
    meter.note(1, second: 20_000)
    meter.note(4, second: 19_990)
    #expect(meter.count(second: 20_059) == 5)
    #expect(meter.count(second: 20_060) == 0)
  }
}
