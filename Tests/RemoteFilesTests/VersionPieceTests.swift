import HTTPTransfer
import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// The decisions of a file's version whose list has hashes of its pieces.
@Suite struct VersionPieceTests {
  private static let piece: Int64 = 1 << 20
  private let start = ContinuousClock.now

  private func state(pieces count: Int = 8) throws -> VersionState {
    let length = Self.piece * Int64(count)
    var state = VersionState(length: length, extents: ExtentSet(), connections: nil)
    let hashes = try #require(
      PieceHashes(
        algorithm: .sha1, pieceByteCount: Self.piece,
        digests: Array(repeating: [UInt8](repeating: 0, count: 20), count: count)))
    state.check(hashes)
    return state
  }

  private func park(_ range: ByteRange, in state: inout VersionState) -> VersionActions {
    var actions = VersionActions()
    state.park(parkedRead(range, since: start), into: &actions)
    state.plan(now: start, into: &actions)
    return actions
  }

  private func store(
    _ range: ByteRange, of segment: Segment, in state: inout VersionState
  ) -> VersionActions {
    var actions = VersionActions()
    _ = state.advance(segment.id, to: range.upperBound, now: start)
    state.stored(segment.id, range, now: start, into: &actions)
    return actions
  }

  private func settle(
    _ check: PieceTable.Check, matches: Bool, trusted: [Int], in state: inout VersionState
  ) -> VersionActions {
    var actions = VersionActions()
    _ = state.settle(check, matches: matches, trusted: trusted, now: start, into: &actions)
    return actions
  }

  @Test("Very many wrong pieces, which nobody waits for, cost no more than their number")
  func manyWrongPieces() throws {
    /// The time to find that so many pieces are wrong.
    func time(of count: Int) throws -> Duration {
      var state = try state(pieces: count)
      let segment = try #require(park(0..<4096, in: &state).starts.first)
      state.setMirror(0, of: segment.id)
      let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
      state.removeSegment(segment.id)
      _ = settle(check, matches: false, trusted: [0], in: &state)
      var actions = VersionActions()
      let stream = state.addSegment(
        PlannedRequest(range: Self.piece..<Self.piece * Int64(count)), now: start)
      var checks: [PieceTable.Check] = []
      for index in 1..<Int64(count) {
        let range = index * Self.piece..<(index + 1) * Self.piece
        checks += store(range, of: stream, in: &state).checks
      }
      #expect(checks.count == count - 1)
      return ContinuousClock().measure {
        for check in checks {
          _ = state.settle(check, matches: false, trusted: [0], now: start, into: &actions)
        }
      }
    }
    // To look at all wrong pieces after each would take several seconds.
    #expect(try time(of: 4000) < .seconds(1))
  }

  @Test("A read asks for its whole piece, and sees it when its hash is right, not before")
  func wholePiece() throws {
    var state = try state()
    let segment = try #require(park(5000..<6000, in: &state).starts.first)
    #expect(segment.start..<segment.end == 0..<Self.piece)
    #expect(store(0..<8192, of: segment, in: &state).wakes.isEmpty)
    let arrived = store(8192..<Self.piece, of: segment, in: &state)
    #expect(arrived.wakes.isEmpty)
    #expect(state.extents.isEmpty)
    if case .absent = state.attempt(5000..<6000, now: start) {} else { Issue.record("visible") }
    let check = try #require(arrived.checks.first)
    state.removeSegment(segment.id)
    #expect(settle(check, matches: true, trusted: [0], in: &state).wakes.count == 1)
    #expect(state.extents.extents == [0..<Self.piece])
  }

  @Test("What has arrived and is being hashed is not asked for again")
  func noSecondRequest() throws {
    var state = try state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    _ = store(0..<Self.piece, of: segment, in: &state)
    state.removeSegment(segment.id)
    #expect(park(4096..<8192, in: &state).starts.isEmpty)
    #expect(state.absent(in: 0..<Self.piece).isEmpty)
  }

  @Test("A wrong piece is fetched again as a whole, from another server than the one that lied")
  func anotherServer() throws {
    var state = try state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    state.setMirror(1, of: segment.id)
    let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
    state.removeSegment(segment.id)
    let actions = settle(check, matches: false, trusted: [0, 1], in: &state)
    let again = try #require(actions.starts.first)
    #expect(actions.starts.count == 1)
    #expect(again.start..<again.end == 0..<Self.piece)
    #expect(again.suspect?.excludedMirrors == [1])
    #expect(state.extents.isEmpty)
    // One request while it is in flight.
    #expect(park(4096..<8192, in: &state).starts.isEmpty)
    state.setMirror(0, of: again.id)
    let second = try #require(store(0..<Self.piece, of: again, in: &state).checks.first)
    #expect(settle(second, matches: true, trusted: [0], in: &state).wakes.count == 2)
  }

  @Test(
    "What an ended request still brings of a wrong piece is not held against the one that is asked")
  func lateBytes() throws {
    var state = try state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    state.setMirror(1, of: segment.id)
    let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
    let actions = settle(check, matches: false, trusted: [0, 1], in: &state)
    let again = try #require(actions.starts.first)
    state.setMirror(0, of: again.id)
    for isEnded in [false, true] {
      if isEnded { state.removeSegment(segment.id) }
      _ = store(0..<8192, of: segment, in: &state)
      #expect(state.absent(in: 0..<Self.piece) == [0..<Self.piece])
    }
    let second = try #require(store(0..<Self.piece, of: again, in: &state).checks.first)
    #expect(state.pieces?.culprit(of: second, matches: false, trusted: [0, 2]) == 0)
    #expect(settle(second, matches: true, trusted: [0, 2], in: &state).wakes.count == 1)
  }

  @Test("Memory holds nothing of a piece that was wrong, or that is asked for anew")
  func wrongInMemory() throws {
    var state = try state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
    state.removeSegment(segment.id)
    _ = state.beginSpill(into: try SpillFile())
    state.recordSpilled([0..<Self.piece])
    // None of it is present yet.
    #expect(state.content.spilledByteCount == 0)
    #expect(!state.content.isInCache)
    let again = try #require(
      settle(check, matches: false, trusted: [0], in: &state).starts.first)
    #expect(state.spill?.extents.isEmpty == true)

    _ = store(0..<8192, of: again, in: &state)
    state.recordSpilled([0..<8192])
    state.removeSegment(again.id)
    var actions = VersionActions()
    state.plan(now: start, into: &actions)
    #expect(actions.starts.count == 1)
    #expect(state.spill?.extents.isEmpty == true)
  }

  @Test("Of a piece that the record has, memory holds only what is known to be right")
  func recordedMeanwhile() throws {
    var state = try state()
    let segment = try #require(park(0..<(3 * Self.piece), in: &state).starts.first)
    _ = state.beginSpill(into: try SpillFile())
    let half = Self.piece / 2
    let whole = Self.piece..<(2 * Self.piece)
    for range in [0..<half, whole, (2 * Self.piece)..<(2 * Self.piece + half)] {
      let checks = store(range, of: segment, in: &state).checks
      state.recordSpilled([range])
      for check in checks { _ = settle(check, matches: true, trusted: [0], in: &state) }
    }

    state.setCached(ExtentSet())
    // Bytes that are only in memory are not lost.
    #expect(state.extents.extents == [Self.piece..<(2 * Self.piece)])
    #expect(state.content.spilledByteCount == Self.piece)
    #expect(state.pieces?.arrived.byteCount == Self.piece)

    state.setCached(ExtentSet([0..<Self.piece]))
    #expect(state.extents.extents == [0..<(2 * Self.piece)])
    #expect(
      state.pieces?.arrived.extents == [(2 * Self.piece)..<(2 * Self.piece + half)])
    #expect(state.spill?.extents.extents == [Self.piece..<(2 * Self.piece + half)])
  }

  @Test("Bytes that are lost while they are hashed are asked for again")
  func lostWhileHashed() throws {
    var state = try state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
    state.removeSegment(segment.id)
    state.forget(4096..<8192)
    let actions = settle(check, matches: false, trusted: [0], in: &state)
    #expect(actions.starts.count == 1)
    #expect(actions.failures.isEmpty)
    #expect(state.pieces?.failureCount(ofPiece: 0) == 0)
  }

  @Test("A request for a wrong piece that is cut begins anew")
  func cutAgain() throws {
    var state = try state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
    state.removeSegment(segment.id)
    let again = try #require(
      settle(check, matches: false, trusted: [0], in: &state).starts.first)
    #expect(store(0..<8192, of: again, in: &state).starts.isEmpty)
    state.removeSegment(again.id)
    var actions = VersionActions()
    state.plan(now: start, into: &actions)
    #expect(actions.starts.map { $0.start..<$0.end } == [0..<Self.piece])
  }

  @Test("A single server that brings a wrong piece twice fails its reads, and no others")
  func lost() throws {
    var state = try state()
    var segment = try #require(park(0..<4096, in: &state).starts.first)
    for _ in 0..<2 {
      let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
      state.removeSegment(segment.id)
      let actions = settle(check, matches: false, trusted: [0], in: &state)
      if let next = actions.starts.first {
        segment = next
      } else {
        #expect(actions.failures.map(\.error.code) == [.corrupt])
      }
    }
    if case .failed(let error) = state.attempt(0..<4096, now: start) {
      #expect(error.readErrno == 5)
    } else {
      Issue.record("not failed")
    }
    #expect(park(Self.piece..<(Self.piece + 1), in: &state).starts.count == 1)
    state.beginReading(.usual)
    if case .absent = state.attempt(0..<4096, now: start) {} else { Issue.record("not tried anew") }
  }

  @Test("A stream of the whole is not begun again while what has arrived is being hashed")
  func stream() throws {
    var state = try state(pieces: 1)
    state.markSingleStream()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    #expect(segment.isWhole)
    let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
    state.removeSegment(segment.id)
    var actions = VersionActions()
    state.plan(now: start, into: &actions)
    #expect(actions.starts.isEmpty)
    #expect(settle(check, matches: false, trusted: [0], in: &state).starts.map(\.isWhole) == [true])
  }

  @Test("The requests to a server whose bytes are wrong are ended, and others are not")
  func endRequests() throws {
    var state = try state()
    let culprit = try #require(park(0..<4096, in: &state).starts.first)
    let other = try #require(park(Self.piece..<(Self.piece + 1), in: &state).starts.first)
    state.setMirror(1, of: culprit.id)
    state.setExchange(ExchangeID(rawValue: 7), of: culprit.id)
    state.setExchange(ExchangeID(rawValue: 8), of: other.id)
    var actions = VersionActions()
    state.endRequests(to: 1, into: &actions)
    #expect(actions.cancels == [ExchangeID(rawValue: 7)])
    // Its bytes until then are discarded.
    #expect(state.advance(culprit.id, to: 4096, now: start)?.end == 0)
    #expect(state.advance(other.id, to: Self.piece + 1, now: start)?.end == 2 * Self.piece)
  }

  @Test("Of a whole that is wrong nothing is shown, though the first bytes may come anew")
  func wrongChecksum() throws {
    var state = VersionState(length: 100, extents: ExtentSet([0..<100]), connections: nil)
    state.failForGood(.wrongChecksum)
    if case .failed(let error) = state.attempt(0..<10, now: start) {
      #expect(error.code == .corrupt)
    } else {
      Issue.record("shown")
    }
  }

  @Test("A wrong piece that the record has brought meanwhile is not asked for again")
  func suspectIsPresent() throws {
    var state = try state()
    let segment = try #require(park(0..<4096, in: &state).starts.first)
    let check = try #require(store(0..<Self.piece, of: segment, in: &state).checks.first)
    state.removeSegment(segment.id)
    let again = try #require(
      settle(check, matches: false, trusted: [0], in: &state).starts.first)
    state.setCached(ExtentSet([0..<Self.piece]))
    state.removeSegment(again.id)
    // The read waits only for the next piece.
    let starts = park((Self.piece - 4096)..<(Self.piece + 4096), in: &state).starts
    #expect(starts.map { $0.start..<$0.end } == [Self.piece..<(2 * Self.piece)])
  }

  @Test("Two readers of two pieces do not have each other's piece given up")
  func twoReaders() throws {
    var state = try state()
    let half = Self.piece / 2
    let first = (Self.piece - 4096)..<Self.piece
    state.note(0..<half, now: start)
    state.note((3 * Self.piece)..<(3 * Self.piece + half), now: start)
    #expect(state.demand.mustKeep(first, of: state.content, now: start))
    let later = (4 * Self.piece - 4096)..<(4 * Self.piece)
    #expect(state.demand.mustKeep(later, of: state.content, now: start))
    // The bytes that they have read may be dropped.
    #expect(!state.demand.mustKeep(0..<4096, of: state.content, now: start))
    // A third reader replaces the one that has been idle longest.
    state.note((5 * Self.piece)..<(5 * Self.piece + half), now: start)
    #expect(!state.demand.mustKeep(first, of: state.content, now: start))
  }
}
