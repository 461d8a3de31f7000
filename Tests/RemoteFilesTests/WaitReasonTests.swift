import HTTPTransfer
import HTTPTransferCore
import MountStatus
import Testing

@testable import RemoteFiles

/// The reasons that `.status` gives for a read that waits.
@Suite struct WaitReasonTests {
  private static let mebibyte: Int64 = 1 << 20
  private let start = ContinuousClock.now

  private func state(connections: Int? = nil) -> VersionState {
    VersionState(length: 64 << 20, extents: ExtentSet([]), connections: connections)
  }

  /// Parks a read and plans; returns the requests.
  @discardableResult
  private func park(_ range: ByteRange, in state: inout VersionState) -> [Segment] {
    var actions = VersionActions()
    state.park(parkedRead(range, since: start, timeout: .seconds(60)), into: &actions)
    state.plan(now: start, into: &actions)
    return actions.starts
  }

  private func reasons(
    in state: VersionState, after time: Duration = .zero, use: OriginUse? = nil
  ) -> [String] {
    let description = VersionDescription(version: state, now: start + time) { _ in use }
    return state.parked.reads.map { description.reason(for: $0).text }
  }

  @Test("A request without a slot waits for the server if that sends nothing to anybody")
  func slotsOfASilentServer() throws {
    var state = state()
    park(0..<4096, in: &state)
    let use = OriginUse(exchangeCount: 32, activeAt: start - .seconds(5))
    #expect(
      reasons(in: state, after: .seconds(4), use: use)
        == ["the server has sent nothing for 9 s; 32 requests wait for it"])
  }

  @Test("A request without a slot names the other files only if they have the slots")
  func slotsOfOthers() throws {
    var state = state()
    let first = try #require(park(0..<4096, in: &state).first)
    #expect(
      reasons(in: state, use: OriginUse(exchangeCount: 32, activeAt: start))
        == ["waiting for a free connection; other files use 32 of 32"])
    #expect(
      reasons(in: state) == ["waiting for a free connection; files of other servers use them"])
    state.note(.connecting, of: first.id, now: start)
    park(Self.mebibyte..<(Self.mebibyte + 4096), in: &state)
    #expect(
      reasons(in: state, use: OriginUse(exchangeCount: 1, activeAt: start))
        == [
          "connecting to the server",
          "waiting for a free connection; the file itself uses 1",
        ])
  }

  @Test("A request that waits for its connection says so, and counts as one")
  func connecting() throws {
    var state = state()
    let segment = try #require(park(0..<4096, in: &state).first)
    func connectionCount() -> Int {
      var status = FileStatus(name: "", url: "", state: .unknown)
      VersionDescription(version: state, now: start).fill(&status, isPartlyUncached: false)
      return status.connections
    }
    #expect(connectionCount() == 0)
    state.note(.connecting, of: segment.id, now: start)
    #expect(connectionCount() == 1)
    #expect(reasons(in: state) == ["connecting to the server"])
    #expect(reasons(in: state, after: .seconds(3)) == ["connecting to the server for 3 s"])
    state.sent(segment.id, now: start + .seconds(3))
    #expect(reasons(in: state, after: .seconds(3)) == ["request sent"])
    #expect(reasons(in: state, after: .seconds(5)) == ["request sent, no response for 2 s"])
  }

  @Test("A read beyond the file's own requests waits for the server that has stalled them all")
  func ownRequests() throws {
    var state = state(connections: 1)
    let segment = try #require(park(0..<4096, in: &state).first)
    #expect(park((32 * Self.mebibyte)..<(32 * Self.mebibyte + 4096), in: &state).isEmpty)
    state.note(.connecting, of: segment.id, now: start)
    state.sent(segment.id, now: start)
    _ = state.advance(segment.id, to: 1024, now: start)
    #expect(
      reasons(in: state) == ["downloading", "the request of the file brings other bytes first"])
    #expect(
      reasons(in: state, after: .seconds(9))
        == [
          "the server has sent nothing for 9 s",
          "the server has sent nothing for 9 s; the request of the file waits for it",
        ])
  }

  @Test("A read of which some bytes have arrived waits for the rest of its response")
  func partlyArrived() throws {
    var state = state()
    let segment = try #require(park(0..<(256 << 10), in: &state).first)
    state.sent(segment.id, now: start)
    _ = state.advance(segment.id, to: 65_536, now: start)
    #expect(reasons(in: state) == ["downloading"])
    #expect(reasons(in: state, after: .seconds(56)) == ["the server has sent nothing for 56 s"])
  }

  @Test("Bytes before a read have the units of other figures, and are not shown if there are none")
  func bytesBefore() {
    #expect(WaitReason.arriving(byteCountBefore: 0).text == "downloading")
    #expect(
      WaitReason.arriving(byteCountBefore: 501_200).text
        == "downloading, 489.5 KiB come before it")
    #expect(WaitReason.throttled(byteCountBefore: 0).text == "held back by the rate limit")
    #expect(
      WaitReason.throttled(byteCountBefore: 2 << 20).text
        == "held back by the rate limit, 2 MiB come before it")
    #expect(WaitReason.requestLimit(count: 0, silence: .zero).text == "its request follows")
    #expect(
      WaitReason.requestLimit(count: 32, silence: .zero).text
        == "all 32 requests of the file bring other bytes first")
  }

  @Test("An open says why it waits while its question is retried, and not after its deadline")
  func waitingOpen() throws {
    var probe = Probe<Int>()
    let since = ContinuousClock.now
    let waiting = Probe<Int>.Waiting(
      answer: { _ in }, deadline: since + .seconds(5), since: since)
    let asked = probe.join(waiting, limit: nil)
    let id = try #require(asked)
    func reason(after time: Duration) -> String? {
      let wait = probe.wait(now: since + time) {
        WaitReason.SlotUse(count: 8, ownCount: 0, silence: .zero)
      }
      #expect(wait == nil || wait?.time == time)
      return wait?.reason.text
    }
    probe.begin(id, now: since)
    #expect(reason(after: .zero) == "waiting for a free connection; other files use 8 of 8")
    probe.connecting(id, now: since)
    #expect(reason(after: .seconds(2)) == "connecting to the server for 2 s")
    probe.sent(id, now: since + .seconds(2))
    #expect(reason(after: .seconds(2)) == "request sent")
    let delay = probe.retryDelay(
      after: FileError(.unavailable, "HTTP 503"), of: id, unreachableLimit: nil,
      firstAnswerLimit: nil, retryAfter: nil, policy: RetryPolicy(), random: 0,
      now: since + .seconds(3))
    let milliseconds = Int((try #require(delay) / .milliseconds(1)).rounded())
    #expect(reason(after: .seconds(3)) == "retrying in \(milliseconds) ms after: HTTP 503")
    // The question continues for nobody.
    let late = probe.takeLate(now: since + .seconds(5))
    #expect(late.count == 1)
    #expect(reason(after: .seconds(5)) == nil)
  }
}
