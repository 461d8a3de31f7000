import HTTPTransfer
import HTTPTransferCore
import Synchronization
import Testing

@testable import RemoteFiles

/// The waiters for the answer about a file, and the number of its requests.
@Suite final class FileProbeTests {
  private let start = ContinuousClock.now
  private var probe = FileProbe()
  private let failure = FileError(.timedOut, "no answer from the server")

  private func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }

  /// Adds a waiter whose deadline is `seconds` after the start.
  private func join(until seconds: Double, limit: Double? = nil) -> ProbeID? {
    let waiting = FileProbe.Waiting(answer: { _ in }, deadline: at(seconds))
    return probe.join(waiting, limit: limit.map { at($0) }, byteCount: 1) { 0 }
  }

  private func overdue(
    at seconds: Double, timeout: Double = 100, hasOther: Bool = false
  ) -> FileProbe.Overdue? {
    probe.overdue(
      now: at(seconds), timeout: .seconds(timeout), hasOther: hasOther,
      silenceTimeout: .seconds(5))
  }

  @Test("A waiter that joins as the question's time ends does not fail with the earlier ones")
  func joinsLate() throws {
    let disk = try VersionOnDisk(length: 1000)
    let file = disk.version.remoteFile
    let answers = Mutex(0)
    let now = ContinuousClock.now
    let early = FileProbe.Waiting(answer: { _ in answers.withLock { $0 += 100 } }, deadline: now)
    let late = FileProbe.Waiting(
      answer: { _ in answers.withLock { $0 += 1 } }, deadline: now + .seconds(60))
    let id = try #require(
      file.state.withLock { $0.probe.join(early, limit: nil, byteCount: 1) { 0 } })
    // After its deadline, but before any check.
    #expect(file.state.withLock { $0.probe.join(late, limit: nil, byteCount: 1) { 0 } } == nil)
    #expect(file.expire(now: now))
    #expect(answers.withLock { $0 } == 100)
    #expect(!file.expire(now: now + .seconds(61)))
    #expect(answers.withLock { $0 } == 101)
    file.prober.end(id, .failure(failure))
    #expect(answers.withLock { $0 } == 101)
  }

  @Test("A file gives its entry to another one only while nobody uses it or asks about it")
  func givesWay() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    let file = version.remoteFile
    file.state.withLock { $0.setFirst(version) }
    version.state.withLock { $0.openCount = 1 }
    #expect(!file.giveWay())
    version.state.withLock { $0.openCount = 0 }
    let waiting = FileProbe.Waiting(answer: { _ in }, deadline: .now + .seconds(60))
    let id = try #require(
      file.state.withLock { $0.probe.join(waiting, limit: nil, byteCount: 1) { 0 } })
    #expect(!file.giveWay())
    file.state.withLock {
      _ = $0.probe.end(id)
      $0.look = .late
    }
    #expect(!file.giveWay())
    #expect(!version.snapshot().isSuperseded)
    file.state.withLock { $0.look = .done }
    #expect(file.giveWay())
    #expect(version.snapshot().isSuperseded)
    #expect(file.current == nil)
  }

  @Test("A server counts as silent only if it had the time to answer")
  func silence() throws {
    let id = try #require(join(until: 8))
    probe.begin(id, now: at(4))
    #expect(overdue(at: 7.9) == nil)
    guard case .fail(id, isSilent: false)? = overdue(at: 8) else {
      Issue.record("not failed")
      return
    }
    guard case .fail(id, isSilent: true)? = overdue(at: 9) else {
      Issue.record("not silent")
      return
    }
    probe.awaitURL(id)
    #expect(probe.lateness.code == .unsigned)
    guard case .fail(id, isSilent: false)? = overdue(at: 20) else {
      Issue.record("a command that makes a URL is not a server")
      return
    }
  }

  @Test("A request that brings nothing is given up, once, unless only cached bytes wait for it")
  func givesUpRequests() throws {
    let id = try #require(join(until: 30, limit: 5))
    probe.begin(id, now: at(0))
    probe.started(id, as: ExchangeID(rawValue: 1))
    #expect(overdue(at: 4, timeout: 3) == nil, "it was not sent yet")
    probe.sent(id, now: at(1))
    #expect(overdue(at: 4, timeout: 3) == nil, "there are cached bytes")
    _ = join(until: 30)
    guard case .cancel? = overdue(at: 4, timeout: 3) else {
      Issue.record("not given up")
      return
    }
    #expect(overdue(at: 4, timeout: 3) == nil)
  }

  @Test("The version that is known so far is the answer when the first waiter gives up")
  func provisionalAnswer() throws {
    let disk = try VersionOnDisk(length: 1000)
    let id = try #require(join(until: 10))
    _ = join(until: 3)
    probe.answerProvisionally(id, disk.version, at: at(5))
    #expect(overdue(at: 2.9) == nil)
    guard case .answer(id, let version)? = overdue(at: 3) else {
      Issue.record("no answer")
      return
    }
    #expect(version === disk.version)
  }

  @Test("Each reason to ask again is bounded for one question, and starts over with the next one")
  func asksAgain() throws {
    for _ in 0..<2 {
      let id = try #require(join(until: 30))
      #expect(take { $0.takeNewURL(id) } == [true, false])
      #expect(take { $0.takeSecondOpinion(id) } == [true, false])
      #expect(!probe.wantsSecondOpinion(id))
      #expect(
        take(4) { $0.takeFreshRetry(id, after: .seconds(1), now: start) }
          == [true, true, false, false])
      let page = ContentVersion(completeLength: 7)
      #expect(
        take(4) { $0.doubts(page, to: id, isKnownStrong: false) } == [true, true, false, false])
      #expect(take { $0.doubts(page, to: id, isKnownStrong: true) } == [true, true])
      #expect(end(id))
      #expect(!end(id))
      #expect(take { $0.takeNewURL(id) } == [false, false], "the question has ended")
    }
  }

  @Test("Too fresh an answer is not asked for again after the deadline")
  func freshAtTheEnd() throws {
    let id = try #require(join(until: 1))
    #expect(take(1) { $0.takeFreshRetry(id, after: .seconds(1), now: start) } == [false])
  }

  @Test("Each other server is asked once before the first is asked again")
  func mirrors() throws {
    let id = try #require(join(until: 30))
    let error = FileError(.unavailable, "HTTP 503")
    func next(after mirror: Int) -> Bool {
      probe.takeNextMirror(id, after: mirror, error, now: start) { tried in
        (0..<3).first { !tried.contains($0) }
      }
    }
    #expect(next(after: 0))
    #expect(probe.isAsking(id, mirror: 1))
    #expect(!probe.isAsking(id, mirror: 0), "an answer of the first server is late")
    #expect(next(after: 1))
    #expect(!next(after: 2))
    let failures = probe.takeFailures(id) { 0 }
    #expect(failures.map(\.index) == [0, 1, 2])
    #expect(probe.mirror == 0)
    #expect(next(after: 0))
  }

  // The macros cannot call mutating methods.

  private func take(_ count: Int = 2, _ body: (inout FileProbe) -> Bool) -> [Bool] {
    (0..<count).map { _ in body(&probe) }
  }

  private func end(_ id: ProbeID) -> Bool { probe.end(id) != nil }
}
