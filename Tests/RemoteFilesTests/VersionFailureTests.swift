import HTTPTransfer
import HTTPTransferCore
import HTTPTypes
import Testing

@testable import RemoteFiles

/// The reactions of a file's version to failures: retries, deadlines, the arrival of another
/// version.
@Suite struct VersionFailureTests {
  private static let mebibyte: Int64 = 1 << 20
  private let start = ContinuousClock.now
  private let policy = RetryPolicy()

  private func state(length: Int64? = 64 << 20, present: [ByteRange] = []) -> VersionState {
    VersionState(length: length, extents: ExtentSet(present), connections: nil)
  }

  @discardableResult
  private func park(
    _ range: ByteRange, in state: inout VersionState, at time: Duration = .zero,
    timeout: Duration = .seconds(60)
  ) -> VersionActions {
    var actions = VersionActions()
    state.park(parkedRead(range, since: start + time, timeout: timeout), into: &actions)
    state.plan(now: start + time, into: &actions)
    return actions
  }

  private func plan(_ state: inout VersionState, at time: Duration) -> [Segment] {
    var actions = VersionActions()
    state.plan(now: start + time, into: &actions)
    return actions.starts
  }

  private func code(_ attempt: ReadAttempt) -> FileError.Code? {
    if case .failed(let error) = attempt { error.code } else { nil }
  }

  private func isAbsent(_ attempt: ReadAttempt) -> Bool {
    if case .absent = attempt { true } else { false }
  }

  // MARK: Retries

  private func retry(
    _ state: inout VersionState, _ code: FileError.Code, at time: Duration,
    retryAfter: Duration? = nil
  ) -> VersionActions {
    var actions = VersionActions()
    state.retryLater(
      after: FileError(code, "test"), retryAfter: retryAfter, policy: policy, random: 0,
      now: start + time, into: &actions)
    return actions
  }

  @Test("After a failure nothing is asked for until the delay has passed")
  func backoff() throws {
    var state = state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    state.removeSegment(segment.id)
    #expect(retry(&state, .unavailable, at: .zero).retryAfter == .milliseconds(50))
    #expect(plan(&state, at: .milliseconds(49)).isEmpty)
    #expect(plan(&state, at: .milliseconds(50)).map { $0.start..<$0.end } == [0..<4096])
    #expect(state.parked.reads.count == 1)
  }

  @Test("Delays grow with failures in a row, and begin anew after a success")
  func growingBackoff() throws {
    var state = state()
    park(0..<4096, in: &state)
    #expect(retry(&state, .unavailable, at: .zero).retryAfter == .milliseconds(50))
    #expect(retry(&state, .unavailable, at: .seconds(1)).retryAfter == .milliseconds(100))
    #expect(retry(&state, .unavailable, at: .seconds(2)).retryAfter == .milliseconds(200))
    let segment = try #require(state.segments.first)
    var actions = VersionActions()
    state.stored(segment.id, 0..<4096, now: start + .seconds(3), into: &actions)
    #expect(retry(&state, .unavailable, at: .seconds(4)).retryAfter == .milliseconds(50))
  }

  @Test("Requests that fail together are one failure")
  func commonFailure() {
    var state = state()
    park(0..<4096, in: &state)
    #expect(retry(&state, .unavailable, at: .zero).retryAfter != nil)
    for _ in 0..<10 {
      #expect(retry(&state, .unavailable, at: .milliseconds(10)).retryAfter == nil)
    }
    #expect(state.requests.backoff.failureCount == 1)
  }

  @Test("A server's delay is obeyed")
  func retryAfter() {
    var state = state()
    park(0..<4096, in: &state)
    let actions = retry(&state, .unavailable, at: .zero, retryAfter: .seconds(7))
    #expect(actions.retryAfter == .seconds(7))
    #expect(plan(&state, at: .seconds(6)).isEmpty)
  }

  @Test("Reads wait for a server that cannot be reached, which is asked again every second")
  func unreachable() {
    var state = state()
    park(0..<4096, in: &state)
    for second in 0..<30 {
      let actions = retry(&state, .unreachable, at: .seconds(second * 2))
      #expect(actions.failures.isEmpty)
      #expect(actions.retryAfter.map { $0 <= .seconds(1) } == true)
    }
    #expect(!state.parked.isEmpty)
  }

  @Test("A server that answers again is unreachable from then on anew")
  func reachableAgain() throws {
    var state = state()
    let segment = try #require(park(0..<8192, in: &state).starts.first)
    #expect(retry(&state, .unreachable, at: .zero).failures.isEmpty)
    var actions = VersionActions()
    state.stored(segment.id, 0..<4096, now: start + .seconds(3), into: &actions)
    #expect(retry(&state, .unreachable, at: .seconds(4)).failures.isEmpty)
    #expect(state.parked.reads.count == 1)
  }

  // MARK: Failures

  @Test("A failure answers further reads of its bytes for a moment, and no others")
  func failureMemory() {
    var state = state()
    park(0..<131_072, in: &state)
    park(131_072..<262_144, in: &state)
    var actions = VersionActions()
    state.failParked(FileError(.denied, "HTTP 403"), now: start, into: &actions)
    #expect(actions.failures.map(\.read.range) == [0..<131_072, 131_072..<262_144])
    #expect(actions.failures.allSatisfy { $0.error.code == .denied })
    #expect(state.parked.isEmpty)
    let soon = start + .milliseconds(999)
    #expect(code(state.attempt(4096..<8192, now: soon)) == .denied)
    #expect(code(state.attempt(262_143..<262_145, now: soon)) == .denied)
    #expect(isAbsent(state.attempt(262_144..<266_240, now: soon)))
    #expect(isAbsent(state.attempt(4096..<8192, now: start + .seconds(1))))
  }

  @Test("Bytes that are present are read in spite of a failure")
  func presentBytes() {
    var state = state(present: [4096..<8192])
    park(0..<12_288, in: &state)
    var actions = VersionActions()
    state.failParked(FileError(.denied, "HTTP 403"), now: start, into: &actions)
    if case .present(let byteCount) = state.attempt(4096..<8192, now: start) {
      #expect(byteCount == 4096)
    } else {
      Issue.record("the bytes are present")
    }
  }

  @Test("A permanent failure answers every read of absent bytes and ends all planning")
  func permanentFailure() {
    var state = state()
    state.failForGood(FileError(.unmounted, "unmounted"))
    #expect(code(state.attempt(0..<1, now: start + .seconds(1000))) == .unmounted)
    #expect(park(0..<4096, in: &state).starts.isEmpty)
  }

  // MARK: Timers

  @Test("A read fails at its own deadline; others wait on")
  func deadlines() {
    var state = state()
    park(0..<4096, in: &state, timeout: .seconds(2))
    park(8192..<12_288, in: &state, timeout: .seconds(5))
    var actions = VersionActions()
    state.expire(now: start + .seconds(1.9), settings: FileSettings(), into: &actions)
    #expect(actions.failures.isEmpty)
    state.expire(now: start + .seconds(2), settings: FileSettings(), into: &actions)
    #expect(actions.failures.map(\.read.range) == [0..<4096])
    #expect(actions.failures.map(\.error.code) == [.timedOut])
    #expect(actions.failures.first?.error.reason.contains("sends nothing") == true)
    #expect(state.parked.reads.map(\.range) == [8192..<12_288])
    // The kernel requests the failed pages again, one by one.
    #expect(code(state.attempt(0..<4096, now: start + .seconds(2.5))) == .timedOut)
    #expect(isAbsent(state.attempt(8192..<12_288, now: start + .seconds(2.5))))
  }

  @Test(
    "What happened last is named when a read's time is up",
    arguments: [
      (.unavailable, .timedOut), (.invalidResponse, .invalidResponse), (.timedOut, .timedOut),
    ] as [(FileError.Code, FileError.Code)])
  func lastFailure(last: FileError.Code, expected: FileError.Code) {
    var state = state()
    park(0..<4096, in: &state, timeout: .seconds(2))
    _ = retry(&state, last, at: .zero)
    var actions = VersionActions()
    state.expire(now: start + .seconds(2), settings: FileSettings(), into: &actions)
    #expect(actions.failures.map(\.error.code) == [expected])
    #expect(actions.failures.first?.error.reason.contains("last failure: test") == true)
  }

  @Test("A request that brings nothing more for long is given up, one that does is not")
  func stalls() throws {
    let ids = try transferIDs(2)
    var state = state()
    let silent = try #require(park(0..<4096, in: &state).starts.first)
    let busy = try #require(park(Self.mebibyte..<(Self.mebibyte + 8192), in: &state).starts.first)
    state.setExchange(ids[0], of: silent.id)
    state.setExchange(ids[1], of: busy.id)
    let settings = FileSettings(stallTimeout: .seconds(15))
    _ = state.advance(silent.id, to: 1, now: start)
    _ = state.advance(busy.id, to: Self.mebibyte + 1, now: start)
    _ = state.advance(busy.id, to: Self.mebibyte + 1025, now: start + .seconds(10))
    var actions = VersionActions()
    state.expire(now: start + .seconds(14.9), settings: settings, into: &actions)
    #expect(actions.cancels.isEmpty)
    state.expire(now: start + .seconds(15), settings: settings, into: &actions)
    #expect(actions.cancels == [ids[0]])
    #expect(state.failures.last?.code == .timedOut)
  }

  @Test("A trickle is given up like silence, unless it is the end that it brings")
  func trickle() throws {
    let ids = try transferIDs(2)
    var state = state()
    let slow = try #require(park(0..<4096, in: &state).starts.first)
    let ending = try #require(park(Self.mebibyte..<(Self.mebibyte + 4096), in: &state).starts.first)
    state.setExchange(ids[0], of: slow.id)
    state.setExchange(ids[1], of: ending.id)
    _ = state.advance(slow.id, to: 1, now: start)
    _ = state.advance(ending.id, to: ending.end - 10, now: start)
    for second in 1...14 {
      _ = state.advance(slow.id, to: 1 + Int64(second), now: start + .seconds(second))
    }
    _ = state.advance(ending.id, to: ending.end, now: start + .seconds(14))
    var actions = VersionActions()
    state.expire(now: start + .seconds(15), settings: FileSettings(), into: &actions)
    #expect(actions.cancels == [ids[0]])
  }

  @Test("While the process was suspended no deadline ran")
  func suspension() throws {
    let ids = try transferIDs(1)
    var state = state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    state.setExchange(ids[0], of: segment.id)
    state.sent(segment.id, now: start)
    state.postpone(by: .seconds(600))
    var actions = VersionActions()
    state.expire(now: start + .seconds(600 + 14.9), settings: FileSettings(), into: &actions)
    #expect(actions.cancels.isEmpty && actions.failures.isEmpty)
    state.expire(now: start + .seconds(600 + 15), settings: FileSettings(), into: &actions)
    #expect(actions.cancels == ids)
  }

  @Test("Who comes after everybody has given up does not wait for their backoff")
  func forgottenBackoff() throws {
    var state = state()
    for _ in 0..<6 {
      let segment = try #require(park(0..<4096, in: &state).starts.first)
      state.removeSegment(segment.id)
      var actions = VersionActions()
      state.retryLater(
        after: FileError(.unavailable, "test"), retryAfter: nil, policy: RetryPolicy(), random: 0,
        now: start, into: &actions)
      state.failParked(FileError(.unavailable, "test"), now: start, into: &actions)
    }
    let actions = park(8192..<12_288, in: &state)
    #expect(actions.starts.count == 1)
  }

  @Test(
    "A response that does not begin is given up in time for another one",
    arguments: [(600, 15), (60, 15), (5, 1.25), (2, 1), (0.5, 1)])
  func slowHead(readTimeout: Double, limit: Double) throws {
    let ids = try transferIDs(1)
    var state = state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    state.setExchange(ids[0], of: segment.id)
    // While it waits for a connection, the server is not at fault.
    var early = VersionActions()
    state.expire(now: start + .seconds(limit), settings: FileSettings(), into: &early)
    #expect(early.cancels.isEmpty)
    state.sent(segment.id, now: start)
    let settings = FileSettings(readTimeout: .seconds(readTimeout), stallTimeout: .seconds(15))
    let due = start + .seconds(limit)
    var actions = VersionActions()
    state.expire(now: due - .milliseconds(1), settings: settings, into: &actions)
    #expect(actions.cancels.isEmpty)
    state.expire(now: due, settings: settings, into: &actions)
    #expect(actions.cancels == ids)
  }

  // MARK: Another version

  @Test("A version that is superseded fails its reads as stale and stays readable where present")
  func supersede() throws {
    let ids = try transferIDs(1)
    var state = state(present: [0..<4096])
    let segment = try #require(park(4096..<8192, in: &state).starts.first)
    state.setExchange(ids[0], of: segment.id)
    park(8192..<12_288, in: &state)
    var actions = VersionActions()
    state.supersede(into: &actions)
    #expect(actions.failures.map(\.error.code) == [.stale, .stale])
    #expect(actions.cancels == ids)
    #expect(state.parked.isEmpty)
    // Bytes in flight are no longer accepted.
    #expect(state.advance(segment.id, to: 5000, now: start) == nil)
    #expect(code(state.attempt(4096..<8192, now: start)) == .stale)
    if case .present = state.attempt(0..<4096, now: start) {
    } else {
      Issue.record("cached bytes of an open handle stay readable")
    }
    #expect(plan(&state, at: .zero).isEmpty)
  }

  // MARK: Servers without ranges

  @Test("Without ranges one request brings the whole, and wakes reads as it goes")
  func sequential() throws {
    var state = state(length: 1_000_000)
    state.markSingleStream()
    let segment = try #require(park(500_000..<504_096, in: &state).starts.first)
    #expect(segment.isWhole)
    #expect(segment.start..<segment.end == 0..<1_000_000)
    #expect(park(0..<4096, in: &state).starts.isEmpty)
    #expect(state.advance(segment.id, to: 4096, now: start)?.mustFlush == true)
    var actions = VersionActions()
    state.stored(segment.id, 0..<4096, now: start, into: &actions)
    #expect(actions.wakes.map(\.range) == [0..<4096])
    #expect(actions.starts.isEmpty)
    state.stored(segment.id, 4096..<504_096, now: start, into: &actions)
    #expect(actions.wakes.map(\.range) == [0..<4096, 500_000..<504_096])
    // After its end, no bytes are requested without a waiting read.
    state.removeSegment(segment.id)
    #expect(plan(&state, at: .seconds(1)).isEmpty)
  }

  @Test("Without ranges a read out of the stream's reach fails early, a nearer one waits")
  func outOfReach() throws {
    var state = state(length: 1 << 30)
    state.markSingleStream()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    park(3_000_000..<3_004_096, in: &state)
    park(1_000_000_000..<1_000_004_096, in: &state)
    // 100 kB per second: 3 MB arrive within a minute, 1 GB does not.
    _ = state.advance(segment.id, to: 1, now: start)
    _ = state.advance(segment.id, to: 50_000, now: start + .milliseconds(500))
    var actions = VersionActions()
    state.expire(now: start + .milliseconds(500), settings: FileSettings(), into: &actions)
    #expect(actions.failures.isEmpty)
    _ = state.advance(segment.id, to: 100_000, now: start + .seconds(1))
    state.expire(now: start + .seconds(1), settings: FileSettings(), into: &actions)
    #expect(actions.failures.map(\.read.range) == [1_000_000_000..<1_000_004_096])
    #expect(actions.failures.first?.error.code == .unavailable)
    #expect(actions.cancels.isEmpty)
  }

  @Test("A body of unknown length wakes a read with its first byte, and all reads at its end")
  func unknownLength() throws {
    var state = state(length: nil)
    state.markSingleStream()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    #expect(segment.isWhole)
    #expect(segment.end == .max)
    park(1000..<5096, in: &state)
    park(1_000_000..<1_004_096, in: &state)
    #expect(state.advance(segment.id, to: 1, now: start)?.mustFlush == true)
    var actions = VersionActions()
    state.stored(segment.id, 0..<1, now: start, into: &actions)
    #expect(actions.wakes.map(\.range) == [0..<4096])
    _ = state.advance(segment.id, to: 2000, now: start)
    actions = VersionActions()
    state.stored(segment.id, 1..<2000, now: start, into: &actions)
    #expect(actions.wakes.map(\.range) == [1000..<5096])
    actions = VersionActions()
    _ = state.learn(length: 2000, into: &actions)
    #expect(state.length == 2000)
    #expect(actions.wakes.map(\.range) == [1_000_000..<1_004_096])
    #expect(state.isComplete)
  }

  @Test("A server that begins before the range is not silent while a read waits for it")
  func skippedBytes() throws {
    var state = state()
    let segment = try #require(park(15_728_640..<15_732_736, in: &state).starts.first)
    state.setExchange(try transferIDs(1)[0], of: segment.id)
    state.sent(segment.id, now: start)
    for second in 1...40 {
      let now = start + .seconds(second)
      state.skipped(segment.id, to: Int64(second) * 100_000, now: now)
      var actions = VersionActions()
      state.expire(now: now, settings: FileSettings(), hedgeAllowance: 1, into: &actions)
      #expect(actions.cancels.isEmpty && actions.starts.isEmpty && actions.failures.isEmpty)
    }
    // It does not count as a rate either.
    #expect(state.segments.first?.rate(now: start + .seconds(41)) == nil)
    // The reader has gone, so no more bytes are needed.
    var actions = VersionActions()
    state.dropParked(into: &actions)
    for second in 41...60 {
      state.skipped(segment.id, to: Int64(second) * 100_000, now: start + .seconds(second))
    }
    state.expire(now: start + .seconds(60), settings: FileSettings(), into: &actions)
    #expect(actions.cancels.count == 1)
  }
}
