import HTTPTransfer
import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// A second request in addition to one that delivers no bytes.
@Suite struct HedgingTests {
  private static let mebibyte: Int64 = 1 << 20
  private let start = ContinuousClock.now
  private let settings = FileSettings(stallTimeout: .seconds(15))

  /// A version with a read that waits for `range`, whose request the server has.
  private func waiting(
    for range: ByteRange = 0..<4096, roundTrip: Double? = 0.05
  ) throws -> (state: VersionState, segment: Segment) {
    var state = VersionState(length: 64 << 20, extents: ExtentSet(), connections: nil)
    if let roundTrip { state.recordRoundTrip(roundTrip) }
    var actions = VersionActions()
    state.park(parkedRead(range, since: start), into: &actions)
    state.plan(now: start, into: &actions)
    let segment = try #require(actions.starts.first)
    state.setExchange(try transferIDs(1)[0], of: segment.id)
    state.sent(segment.id, now: start)
    return (state, segment)
  }

  private func expire(
    _ state: inout VersionState, at seconds: Double, allowance: Int = 1
  ) -> VersionActions {
    var actions = VersionActions()
    state.expire(
      now: start + .seconds(seconds), settings: settings, hedgeAllowance: allowance, into: &actions)
    return actions
  }

  @Test(
    "A request that brings nothing for some round trips is hedged, once",
    arguments: [(0.05, 0.5), (0.2, 1.6), (10, 4), (nil, 2)] as [(Double?, Double)])
  func delay(roundTrip: Double?, seconds: Double) throws {
    var (state, segment) = try waiting(roundTrip: roundTrip)
    #expect(expire(&state, at: seconds - 0.01).starts.isEmpty)
    let hedge = try #require(expire(&state, at: seconds).starts.first)
    #expect(hedge.hedgeOf == segment.id)
    #expect(hedge.start..<hedge.end == 0..<4096)
    #expect(expire(&state, at: seconds + 1, allowance: 5).starts.isEmpty)
    #expect(state.segments.count == 2)
  }

  @Test("Without an allowance, and while the request is held back or not sent, nothing is hedged")
  func reasonsNot() throws {
    var (state, segment) = try waiting()
    #expect(expire(&state, at: 5, allowance: 0).starts.isEmpty)
    state.note(.held(until: start + .seconds(30)), of: segment.id, now: start)
    #expect(expire(&state, at: 5).starts.isEmpty)
    var actions = VersionActions()
    var unsent = VersionState(length: 64 << 20, extents: ExtentSet(), connections: nil)
    unsent.park(parkedRead(0..<4096, since: start), into: &actions)
    unsent.plan(now: start, into: &actions)
    #expect(expire(&unsent, at: 5).starts.isEmpty)
  }

  @Test("What has arrived and waits for the disk is not asked for again, nor its server given up")
  func slowDisk() throws {
    var (state, segment) = try waiting()
    _ = state.advance(segment.id, to: 2048, now: start)
    state.note(.awaitsStorage, of: segment.id, now: start)
    let paused = expire(&state, at: 20, allowance: 5)
    #expect(paused.starts.isEmpty && paused.cancels.isEmpty && paused.silentMirrors.isEmpty)
    _ = state.advance(segment.id, to: segment.end, now: start + .seconds(20))
    state.note(.handedOver(to: segment.end), of: segment.id, now: start)
    let arrived = expire(&state, at: 40, allowance: 5)
    #expect(arrived.starts.isEmpty && arrived.cancels.isEmpty && arrived.silentMirrors.isEmpty)
    // Also a request that was cut short, until its delivered bytes are stored.
    var (cut, short) = try waiting()
    _ = cut.advance(short.id, to: 2048, now: start)
    cut.note(.handedOver(to: 2048), of: short.id, now: start)
    cut.note(.ended, of: short.id, now: start)
    let stored = expire(&cut, at: 40, allowance: 5)
    #expect(stored.starts.isEmpty && stored.cancels.isEmpty && stored.silentMirrors.isEmpty)
    // A few bytes after a pause do not compensate for it.
    var (resumed, late) = try waiting(for: 0..<8192)
    _ = resumed.advance(late.id, to: 2048, now: start)
    resumed.note(.awaitsStorage, of: late.id, now: start)
    _ = resumed.advance(late.id, to: 2500, now: start + .seconds(20))
    #expect(expire(&resumed, at: 20.1).cancels.isEmpty)
    var (silent, other) = try waiting()
    _ = silent.advance(other.id, to: 2048, now: start)
    #expect(!expire(&silent, at: 20, allowance: 5).cancels.isEmpty)
  }

  @Test("What a rate limit holds back is neither hedged nor given up, until a piece of it has come")
  func throttled() throws {
    var (state, segment) = try waiting()
    state.note(.throttled, of: segment.id, now: start)
    #expect(state.requests.isThrottled(now: start + .seconds(40)))
    let patient = expire(&state, at: 40)
    #expect(patient.starts.isEmpty && patient.cancels.isEmpty)
    // From then on, the server is the cause of the silence.
    _ = state.advance(segment.id, to: 100, now: start + .seconds(42))
    #expect(!state.requests.isThrottled(now: start + .seconds(42)))
    #expect(expire(&state, at: 42.4).starts.isEmpty)
    #expect(expire(&state, at: 43).starts.count == 1)
    #expect(!expire(&state, at: 58).cancels.isEmpty)
  }

  @Test("What nobody waits for is not hedged")
  func readAhead() throws {
    var (state, segment) = try waiting()
    var actions = VersionActions()
    state.stored(segment.id, 0..<4096, now: start, into: &actions)
    state.removeSegment(segment.id)
    let ahead = state.addSegment(range: 4096..<Self.mebibyte, isWhole: false, now: start)
    state.sent(ahead.id, now: start)
    #expect(expire(&state, at: 5).starts.isEmpty)
  }

  @Test("The first of the two that brings something ends the other")
  func winner() throws {
    for hedgeWins in [true, false] {
      var (state, segment) = try waiting(for: 0..<(8 * Self.mebibyte))
      let hedges = expire(&state, at: 1).starts
      let hedge = try #require(hedges.first)
      #expect(hedge.end == 4 * Self.mebibyte || hedge.end == segment.end)
      let ids = try transferIDs(2)
      state.setExchange(ids[0], of: segment.id)
      state.setExchange(ids[1], of: hedge.id)
      let now = start + .seconds(1.2)
      let winner = hedgeWins ? hedge.id : segment.id
      let loser = hedgeWins ? segment.id : hedge.id
      let advice = state.advance(winner, to: 2048, now: now)
      #expect(advice?.rival == ids[hedgeWins ? 0 : 1])
      // Its late bytes are not stored.
      let late = state.advance(loser, to: 1024, now: now)
      #expect(late?.end == 0)
      // The rest of its range is requested again.
      var actions = VersionActions()
      state.removeSegment(loser)
      state.plan(now: now, into: &actions)
      let covered = ExtentSet(state.segments.map { $0.start..<$0.end })
      #expect(covered.contains(0..<(8 * Self.mebibyte)))
      let later = state.advance(winner, to: 4096, now: now)
      #expect(later?.rival == nil)
    }
  }

  @Test("A trickle does not end the hedge")
  func trickle() throws {
    var (state, segment) = try waiting(for: 0..<Self.mebibyte)
    _ = state.advance(segment.id, to: 1, now: start + .seconds(0.1))
    let hedges = expire(&state, at: 1).starts
    let hedge = try #require(hedges.first)
    let trickle = state.advance(segment.id, to: 2, now: start + .seconds(1.1))
    #expect(trickle?.rival == nil)
    let won = state.advance(hedge.id, to: 100, now: start + .seconds(1.2))
    #expect(won != nil)
  }

  @Test("A hedge that fails is forgotten while the other request goes on")
  func failure() throws {
    var (state, segment) = try waiting()
    let hedges = expire(&state, at: 1).starts
    let hedge = try #require(hedges.first)
    let other = state.dropFailedHedge(segment.id)
    #expect(!other)
    let dropped = state.dropFailedHedge(hedge.id)
    #expect(dropped)
    #expect(state.segments.map(\.id) == [segment.id])
    let again = try #require(expire(&state, at: 2).starts.first)
    state.removeSegment(segment.id)
    let last = state.dropFailedHedge(again.id)
    #expect(!last, "nobody else brings the bytes")
  }

  @Test("Hedges are one, and 5 % of the requests")
  func budget() {
    var budget = HedgeBudget()
    #expect(budget.allowance(at: ["http://a"], now: start) == 1)
    budget.recordRequests(1, hedges: 1)
    #expect(budget.allowance(at: ["http://a"], now: start) == 0)
    budget.recordRequests(18, hedges: 0)
    #expect(budget.allowance(at: ["http://a"], now: start) == 0)
    budget.recordRequests(1, hedges: 0)
    #expect(budget.allowance(at: ["http://a"], now: start) == 1)
  }

  @Test("A refusal forbids hedges at its server for a while, and at no other")
  func refusals() {
    var budget = HedgeBudget()
    budget.recordRefusal(by: "http://a", now: start)
    #expect(budget.allowance(at: ["http://a"], now: start + .seconds(29)) == 0)
    #expect(budget.allowance(at: ["http://a:81"], now: start + .seconds(29)) == 1)
    #expect(budget.allowance(at: ["http://a", "http://b"], now: start + .seconds(29)) == 1)
    budget.recordRefusal(by: "http://b", now: start + .seconds(20))
    #expect(budget.allowance(at: ["http://a", "http://b"], now: start + .seconds(29)) == 0)
    #expect(budget.allowance(at: ["http://a", "http://b"], now: start + .seconds(30)) == 1)
    #expect(budget.allowance(at: ["http://b"], now: start + .seconds(49)) == 0)
  }
}
