import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// A file whose length is known only at the end of its body.
@Suite struct GrowingFileTests {
  private let start = ContinuousClock.now

  private func state(present: [ByteRange] = []) -> VersionState {
    VersionState(length: nil, extents: ExtentSet(present), connections: nil)
  }

  private func presentByteCount(_ attempt: ReadAttempt) -> Int? {
    if case .present(let byteCount) = attempt { byteCount } else { nil }
  }

  // MARK: The size

  @Test("It shows the pages that are stored, and never fewer")
  func size() throws {
    var state = state()
    #expect(state.show() == 0)
    let segment = state.addSegment(range: 0..<Int64.max, isWhole: true, now: start)
    // Bytes cannot be shown before they are stored.
    #expect(state.advance(segment.id, to: 4095, now: start)?.mustFlush == false)
    #expect(state.advance(segment.id, to: 5000, now: start)?.mustFlush == true)
    #expect(state.show() == 0)
    var actions = VersionActions()
    state.note(.handedOver(to: 5000), of: segment.id, now: start)
    state.stored(segment.id, 0..<5000, now: start, into: &actions)
    #expect(state.show() == 4096)
    #expect(state.advance(segment.id, to: 9000, now: start)?.mustFlush == false)
    state.forget(0..<5000)
    #expect(state.show() == 4096)
  }

  @Test("A read of what was shown gets all of it, or waits")
  func shown() {
    var state = state(present: [0..<9000])
    #expect(presentByteCount(state.attempt(4096..<20_000, now: start)) == 4904)
    #expect(state.show() == 8192)
    #expect(presentByteCount(state.attempt(4096..<20_000, now: start)) == 4904)
    #expect(presentByteCount(state.attempt(8192..<12_288, now: start)) == 808)
    // The cache has lost bytes.
    state.forget(6000..<9000)
    for range in [4096..<8192, 4096..<20_000, 0..<131_072] as [ByteRange] {
      #expect(presentByteCount(state.attempt(range, now: start)) == nil)
      #expect(!state.content.canAnswer(range))
    }
    #expect(presentByteCount(state.attempt(4096..<6000, now: start)) == 1904)
    state.setCached(ExtentSet([0..<8192]))
    #expect(presentByteCount(state.attempt(4096..<20_000, now: start)) == 4096)
    // The file is at least as long as its shown part.
    state.forget(0..<8192)
    var actions = VersionActions()
    #expect(!state.learn(length: 8191, into: &actions))
    #expect(state.learn(length: 8192, into: &actions))
  }

  // MARK: Opens

  private func wait(_ state: inout VersionState, at time: Duration = .zero) -> VersionActions? {
    var actions = VersionActions()
    let wait = LengthWait(answer: {}, deadline: start + time + .seconds(5))
    return state.awaitLength(wait, now: start + time, into: &actions) ? actions : nil
  }

  @Test("An open waits for the length, and begins the stream whose end tells it")
  func open() throws {
    var state = state(present: [0..<1000])
    let actions = try #require(wait(&state))
    let segment = try #require(actions.starts.first)
    #expect(segment.isWhole && segment.isWaitedFor && !segment.isPrefetch)
    #expect(state.needsWatch)
    var later = VersionActions()
    state.expire(now: start + .seconds(4), settings: FileSettings(), into: &later)
    #expect(later.lengthAnswers.isEmpty)
    #expect(state.learn(length: 5000, into: &later))
    #expect(later.lengthAnswers.count == 1)
    #expect(state.demand.lengthWaits.isEmpty)
    #expect(state.segments.first?.isWaitedFor == false)
    // The length is known.
    #expect(wait(&state) == nil)
  }

  @Test("It waits for 5 s, and who comes in the next second does not wait")
  func late() throws {
    var state = state()
    _ = try #require(wait(&state))
    var actions = VersionActions()
    state.expire(now: start + .seconds(5), settings: FileSettings(), into: &actions)
    #expect(actions.lengthAnswers.count == 1)
    #expect(wait(&state, at: .milliseconds(5900)) == nil)
    #expect(wait(&state, at: .milliseconds(6100)) != nil)
  }

  @Test("It goes on where the server fails, the file changes or the stream waits for a reader")
  func inVain() throws {
    var state = state()
    _ = try #require(wait(&state))
    var actions = VersionActions()
    state.failParked(FileError(.missing, "test"), now: start, into: &actions)
    #expect(actions.lengthAnswers.count == 1)

    state = self.state()
    _ = try #require(wait(&state))
    actions = VersionActions()
    state.supersede(into: &actions)
    #expect(actions.lengthAnswers.count == 1)
    #expect(wait(&state, at: .seconds(2)) == nil)

    state = self.state()
    let segment = try #require(wait(&state)?.starts.first)
    state.setExchange(try transferIDs(1)[0], of: segment.id)
    state.limitReadAhead(to: 4 << 20)
    _ = state.advance(segment.id, to: 5 << 20, now: start)
    actions = VersionActions()
    #expect(state.awaitsReader(segment.id, now: start, into: &actions))
    #expect(actions.lengthAnswers.count == 1)
    #expect(wait(&state, at: .seconds(2)) == nil)
  }

  @Test("A suspended process does not use up the time")
  func suspended() throws {
    var state = state()
    _ = try #require(wait(&state))
    state.postpone(by: .seconds(60))
    var actions = VersionActions()
    state.expire(now: start + .seconds(60), settings: FileSettings(), into: &actions)
    #expect(actions.lengthAnswers.isEmpty)
  }
}
