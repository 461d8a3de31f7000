import HTTPTransfer
import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// The behaviour of a file's version when it is paused or prefetched.
@Suite struct VersionWishTests {
  private static let mebibyte: Int64 = 1 << 20
  private let start = ContinuousClock.now

  private func state(
    length: Int64? = 64 << 20, present: [ByteRange] = [], connections: Int? = nil
  ) -> VersionState {
    VersionState(length: length, extents: ExtentSet(present), connections: connections)
  }

  @discardableResult
  private func follow(
    _ policy: FetchPolicy, _ state: inout VersionState, connections: Int? = nil
  ) -> VersionActions {
    var actions = VersionActions()
    state.follow(policy, connections: connections, now: start, into: &actions)
    return actions
  }

  /// Counts a read, and plans.
  private func read(_ range: ByteRange, _ state: inout VersionState) -> VersionActions {
    var actions = VersionActions()
    state.note(range, now: start)
    state.plan(now: start, into: &actions)
    return actions
  }

  private func park(_ range: ByteRange, _ state: inout VersionState) -> VersionActions {
    var actions = VersionActions()
    state.note(range, now: start)
    state.park(parkedRead(range, since: start), into: &actions)
    state.plan(now: start, into: &actions)
    return actions
  }

  private let prefetch = FetchPolicy(isPrefetched: true, mayPrefetch: true)

  @Test("While paused nothing is read ahead, and what a read waits for is fetched")
  func pause() {
    var state = state(present: [0..<(2 << 20)], connections: 4)
    follow(FetchPolicy(isPaused: true), &state, connections: 4)
    #expect(read(0..<(1 << 20), &state).starts.isEmpty)
    #expect(read((1 << 20)..<(2 << 20), &state).starts.isEmpty)
    let actions = park((2 << 20)..<(2 << 20) + 4096, &state)
    #expect(actions.starts.map(\.start) == [2 * Self.mebibyte])
    #expect(actions.starts.map(\.end) == [2 * Self.mebibyte + 4096])
    // As soon as the pause ends, the read-ahead resumes.
    #expect(!follow(FetchPolicy(), &state, connections: 4).starts.isEmpty)
  }

  @Test("A pause ends read-ahead in flight, but not what a read waits for")
  func pauseInFlight() throws {
    var state = state(present: [0..<(2 << 20)], connections: 4)
    _ = read(0..<(1 << 20), &state)
    _ = read((1 << 20)..<(2 << 20), &state)
    _ = park((2 << 20)..<(2 << 20) + 4096, &state)
    #expect(state.segments.count > 1)
    follow(FetchPolicy(isPaused: true), &state, connections: 4)
    let going = state.segments.filter { $0.end > $0.position }
    #expect(going.count == 1)
    #expect(try #require(going.first).start <= 2 << 20)
  }

  @Test("A prefetched file is asked for from its first absent byte on, and grows connections")
  func prefetching() throws {
    var state = state(present: [0..<Self.mebibyte])
    let first = try #require(follow(prefetch, &state).starts.first)
    #expect(first.start == Self.mebibyte)
    #expect(first.isPrefetch)
    // Its turn is over: requests in flight continue, and no new ones begin.
    follow(FetchPolicy(isPrefetched: true), &state)
    #expect(state.segments.count == 1)
    var actions = VersionActions()
    _ = state.advance(first.id, to: first.end, now: start)
    state.stored(first.id, first.start..<first.end, now: start, into: &actions)
    state.removeSegment(first.id)
    state.plan(now: start, into: &actions)
    #expect(actions.starts.isEmpty)
    #expect(!follow(prefetch, &state).starts.isEmpty)
  }

  @Test("Prefetching gives way to a read of the same file")
  func demandFirst() throws {
    var state = state(connections: 2)
    follow(prefetch, &state, connections: 2)
    #expect(state.segments.count == 2)
    let far = 60 * Self.mebibyte
    let actions = park(far..<far + 4096, &state)
    #expect(actions.starts.map(\.start) == [far])
    // Without a reader, no request begins while it waits.
    state.removeSegment(state.segments[0].id)
    var later = VersionActions()
    state.plan(now: start, into: &later)
    #expect(!later.starts.contains { $0.isPrefetch })
  }

  @Test("What was being prefetched ends when that is taken back, what is read goes on")
  func cancel() {
    var state = state(connections: 2)
    follow(prefetch, &state, connections: 2)
    #expect(state.segments.allSatisfy { $0.end > $0.position })
    follow(FetchPolicy(), &state, connections: 2)
    #expect(state.segments.allSatisfy { $0.end == $0.position })
  }

  @Test("A file without ranges is prefetched as one stream")
  func sequential() throws {
    var state = state()
    state.markSingleStream()
    let actions = follow(prefetch, &state)
    #expect(actions.starts.count == 1)
    #expect(try #require(actions.starts.first).isWhole)
  }

  @Test("A file is not prefetched while memory must hold what arrives")
  func spilling() {
    var state = state()
    state.limitReadAhead(to: 1 << 20)
    #expect(follow(prefetch, &state).starts.isEmpty)
  }

  @Test("A new number of connections holds for what is planned from then on")
  func connections() {
    var state = state(connections: 1)
    follow(prefetch, &state, connections: 1)
    #expect(state.segments.count == 1)
    follow(prefetch, &state, connections: 5)
    #expect(state.segments.count == 5)
    #expect(state.line.target == 5)
    follow(prefetch, &state, connections: nil)
    #expect(state.line.target == 1)
  }

  @Test("A failure before the policy is not the prefetch's, one after it is")
  func failures() {
    var state = state()
    var actions = VersionActions()
    state.failParked(FileError(.missing, "HTTP 404"), now: start, into: &actions)
    follow(prefetch, &state)
    #expect(state.failures.ofPrefetch == nil)
    state.failParked(FileError(.missing, "HTTP 404"), now: start, into: &actions)
    follow(prefetch, &state)
    #expect(state.failures.ofPrefetch?.code == .missing)
  }
}
