import HTTPTransfer
import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// A stream of the whole file that only memory can hold waits for its reader.
@Suite struct StreamPacingTests {
  private static let mebibyte: Int64 = 1 << 20
  private static let length = 96 * mebibyte
  private let start = ContinuousClock.now

  /// A stream of `position` bytes, all of them present, and a reader that has read `read` of them.
  private func stream(
    at position: Int64, read: Int64, limit: Int64? = 4 << 20
  ) throws -> (state: VersionState, id: SegmentID) {
    var state = VersionState(length: Self.length, extents: ExtentSet(), connections: nil)
    state.markSingleStream()
    state.limitReadAhead(to: limit)
    let segment = state.addSegment(range: 0..<Self.length, isWhole: true, now: start)
    state.setExchange(try transferIDs(1)[0], of: segment.id)
    var actions = VersionActions()
    state.note(0..<read, now: start)
    _ = state.advance(segment.id, to: position, now: start)
    state.stored(segment.id, 0..<position, now: start, into: &actions)
    return (state, segment.id)
  }

  @Test("It is to pause when it is more than 4 MiB ahead, and only while memory must hold it")
  func pauses() throws {
    for (position, read, limit, pauses) in [
      (5 * Self.mebibyte, 0, Optional(4 * Self.mebibyte), true),
      (5 * Self.mebibyte, 2 * Self.mebibyte, 4 * Self.mebibyte, false),
      (50 * Self.mebibyte, 0, nil, false),
    ] as [(Int64, Int64, Int64?, Bool)] {
      var (state, id) = try stream(at: position, read: read, limit: limit)
      var actions = VersionActions()
      #expect(
        state.advance(id, to: position, now: start)?.isAhead == pauses)
      #expect(state.awaitsReader(id, now: start, into: &actions) == pauses)
    }
  }

  @Test("Where the disk has hardly any room left, it is to pause when it is more than 64 MiB ahead")
  func pausesForTheDisk() throws {
    let ahead = 65 * Self.mebibyte
    var (state, id) = try stream(at: ahead, read: 0, limit: nil)
    var actions = VersionActions()
    #expect(!state.awaitsReader(id, now: start, into: &actions))
    state.recordDisk(isShort: true)
    #expect(state.advance(id, to: ahead, now: start)?.isAhead == true)
    #expect(state.awaitsReader(id, now: start, into: &actions))
    state.note(0..<(32 * Self.mebibyte), now: start)
    state.plan(now: start, into: &actions)
    #expect(actions.resumes.isEmpty)
    state.note((32 * Self.mebibyte)..<(33 * Self.mebibyte), now: start)
    state.plan(now: start, into: &actions)
    #expect(actions.resumes.count == 1)
    #expect(!state.awaitsReader(id, now: start, into: &actions))
  }

  @Test("It goes on when the reader comes near; its pace is that of the time in which it ran")
  func goesOn() throws {
    var (state, id) = try stream(at: 5 * Self.mebibyte, read: 0)
    var actions = VersionActions()
    #expect(state.awaitsReader(id, now: start, into: &actions))
    let later = start + .seconds(60)
    state.note(0..<(2 * Self.mebibyte), now: later)
    state.plan(now: later, into: &actions)
    #expect(actions.resumes.isEmpty)
    state.note((2 * Self.mebibyte)..<(3 * Self.mebibyte), now: later)
    state.plan(now: later, into: &actions)
    #expect(actions.resumes.count == 1)
    #expect(state.segments[0].awaitsReaderSince == nil)
    #expect(state.segments[0].firstByteAt == later)
    // The server was not silent: we did not receive.
    #expect(state.segments[0].lastProgressAt == later)
  }

  @Test("A paused stream is not taken for a silent one, and goes on for a read beyond it at once")
  func readBeyond() throws {
    var (state, id) = try stream(at: 5 * Self.mebibyte, read: 0)
    var actions = VersionActions()
    #expect(state.awaitsReader(id, now: start, into: &actions))
    let later = start + .seconds(15)
    state.expire(now: later, settings: FileSettings(), into: &actions)
    #expect(actions.cancels.isEmpty)
    state.park(
      parkedRead((5 * Self.mebibyte)..<(6 * Self.mebibyte), since: later), into: &actions)
    state.plan(now: later, into: &actions)
    #expect(actions.resumes.count == 1)
  }

  @Test("It does not pause within a piece that a read waits for: that is shown as a whole")
  func withinPiece() throws {
    var (state, id) = try stream(at: 5 * Self.mebibyte, read: 4096)
    let byteCount = 16 * Self.mebibyte
    let hashes = try #require(
      PieceHashes(
        algorithm: .sha1, pieceByteCount: byteCount,
        digests: Array(
          repeating: [UInt8](repeating: 0, count: 20), count: Int(Self.length / byteCount))))
    state.setCached(ExtentSet())
    state.check(hashes)
    var actions = VersionActions()
    state.park(parkedRead(0..<4096), into: &actions)
    #expect(!state.awaitsReader(id, now: start, into: &actions))
    #expect(state.advance(id, to: 15 * Self.mebibyte, now: start)?.isAhead == false)
    // The next segment has no reader yet.
    #expect(state.advance(id, to: 21 * Self.mebibyte, now: start)?.isAhead == true)
  }

  @Test("It ends, to begin again, where a read wants what it has brought and memory has given up")
  func readBehind() throws {
    var (state, id) = try stream(at: 5 * Self.mebibyte, read: 0)
    var actions = VersionActions()
    #expect(state.awaitsReader(id, now: start, into: &actions))
    state.forget(0..<Self.mebibyte)
    state.park(parkedRead(0..<4096), into: &actions)
    state.plan(now: start, into: &actions)
    #expect(actions.cancels.count == 1)
    #expect(actions.resumes.isEmpty)
  }

  @Test("It ends where its reader has not come for long: others may wait for its place")
  func idle() throws {
    var (state, id) = try stream(at: 5 * Self.mebibyte, read: 0)
    var actions = VersionActions()
    #expect(state.awaitsReader(id, now: start, into: &actions))
    state.note(0..<4096, now: start + .seconds(15))
    state.expire(now: start + .seconds(30), settings: FileSettings(), into: &actions)
    #expect(actions.cancels.isEmpty)
    state.expire(now: start + .seconds(36), settings: FileSettings(), into: &actions)
    #expect(actions.cancels.count == 1)
  }

  @Test("It ends a while after the last handle is closed")
  func abandoned() throws {
    var (state, id) = try stream(at: 5 * Self.mebibyte, read: 0)
    var actions = VersionActions()
    #expect(state.awaitsReader(id, now: start, into: &actions))
    _ = state.endReading()
    state.expire(now: start + .seconds(1), settings: FileSettings(), into: &actions)
    #expect(actions.cancels.isEmpty)
    state.expire(now: start + .seconds(4), settings: FileSettings(), into: &actions)
    #expect(actions.cancels.count == 1)
  }
}
