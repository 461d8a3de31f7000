import HTTPTransfer
import HTTPTransferCore
import Testing

@testable import RemoteFiles

/// The transitions of the probe that files and directories share, and its deadlines.
@Suite struct ProbeTests {
  fileprivate typealias Subject = Probe<Int>

  private static let start = ContinuousClock.now

  private static func at(_ seconds: Double) -> ContinuousClock.Instant {
    start + .seconds(seconds)
  }

  private static func waiting(until seconds: Double) -> Subject.Waiting {
    Subject.Waiting(answer: { _ in }, deadline: at(seconds))
  }

  /// Starts a probe for one waiter; the macros cannot call mutating methods.
  private static func ask(_ probe: inout Subject, until seconds: Double) throws -> ProbeID {
    let id = probe.join(waiting(until: seconds), limit: nil)
    return try #require(id)
  }

  /// The actions of a probe's owner, with the probe that it knows.
  enum Event: CaseIterable {
    case join, begin, started, held, connecting, sent, awaitURL, takeURL, takeUnanswered, retry
    case retryDelay, giveUp, takeLate, postpone, end

    fileprivate func happen(to probe: inout Subject, _ id: ProbeID) {
      switch self {
      case .join: _ = probe.join(ProbeTests.waiting(until: 30), limit: nil)
      case .begin: probe.begin(id, now: ProbeTests.start)
      case .started: probe.started(id, as: ExchangeID(rawValue: 1))
      case .held: probe.held(id, until: ProbeTests.start)
      case .connecting: probe.connecting(id, now: ProbeTests.start)
      case .sent: probe.sent(id, now: ProbeTests.start)
      case .awaitURL: probe.awaitURL(id)
      case .takeURL: _ = probe.takeURL()
      case .takeUnanswered: _ = probe.takeUnanswered(for: .zero, now: ProbeTests.start)
      case .retry: probe.retry(id)
      case .retryDelay: _ = ProbeTests.delay(&probe, id, .unavailable)
      case .giveUp: _ = ProbeTests.delay(&probe, id, .missing)
      case .takeLate: _ = probe.takeLate(now: ProbeTests.start)
      case .postpone: probe.postpone(by: .seconds(1))
      case .end: _ = probe.end(id)
      }
    }

    /// The phase after the event.
    fileprivate func next(after phase: Subject.Phase) -> Subject.Phase {
      switch (self, phase) {
      case (.join, .idle): .due
      case (_, .idle): .idle
      case (.begin, _): .asked
      case (.awaitURL, _): .awaitingURL
      case (.takeURL, .awaitingURL), (.retry, _), (.retryDelay, _): .due
      case (.end, _): .idle
      default: phase
      }
    }
  }

  /// A probe in `phase`, and its identifier; that of an ended one if there is none.
  private static func probe(in phase: Subject.Phase) throws -> (Subject, ProbeID) {
    var probe = Subject()
    let id = try ask(&probe, until: 20)
    switch phase {
    case .idle: _ = probe.end(id)
    case .due: break
    case .awaitingURL: probe.awaitURL(id)
    case .asked:
      probe.begin(id, now: start)
      probe.started(id, as: ExchangeID(rawValue: 1))
      probe.sent(id, now: start)
    }
    return (probe, id)
  }

  private static func delay(
    _ probe: inout Subject, _ id: ProbeID, _ code: FileError.Code, at seconds: Double = 0
  ) -> Duration? {
    probe.retryDelay(
      after: FileError(code, ""), of: id, unreachableLimit: .seconds(3),
      firstAnswerLimit: nil, retryAfter: nil, policy: RetryPolicy(), random: 0.5, now: at(seconds))
  }

  @Test(
    "Who has never had an answer waits for errors as long as for silence, and not for a refusal",
    arguments: [FileError.Code.unavailable, .invalidResponse, .rejected])
  func neverAnswered(code: FileError.Code) throws {
    func delay(
      _ probe: inout Subject, _ id: ProbeID, at seconds: Double, limit: Duration?,
      retryAfter: Duration? = nil
    ) -> Duration? {
      probe.retryDelay(
        after: FileError(code, ""), of: id, unreachableLimit: limit, firstAnswerLimit: limit,
        retryAfter: retryAfter, policy: RetryPolicy(), random: 0.5, now: Self.at(seconds))
    }
    var probe = Subject()
    var id = try Self.ask(&probe, until: 60)
    #expect((delay(&probe, id, at: 0, limit: .seconds(5)) == nil) == (code == .rejected))
    if code != .rejected {
      #expect(delay(&probe, id, at: 3, limit: .seconds(5)) != nil)
      #expect(delay(&probe, id, at: 5, limit: .seconds(5)) == nil)
      // The first time that the server names is kept, and no other.
      #expect(delay(&probe, id, at: 5, limit: .seconds(5), retryAfter: .seconds(9)) != nil)
      #expect(delay(&probe, id, at: 14, limit: .seconds(5), retryAfter: .seconds(9)) == nil)
      #expect(delay(&probe, id, at: 14, limit: .seconds(5)) == nil)
    }
    // A file that has had an answer waits until the deadline.
    probe = Subject()
    id = try Self.ask(&probe, until: 60)
    #expect(delay(&probe, id, at: 0, limit: nil) != nil)
    #expect(delay(&probe, id, at: 50, limit: nil) != nil)
  }

  @Test("Who has never had an answer does not wait longer for one, whatever the server names")
  func neverAnsweredForLong() throws {
    func delays(
      _ code: FileError.Code, retryAfter: Duration?, answerTime: Double = 0
    ) throws -> [Double] {
      var probe = Subject()
      let id = try Self.ask(&probe, until: 60)
      var delays: [Double] = []
      var seconds = 0.0
      while delays.count < 100 {
        probe.begin(id, now: Self.at(seconds))
        probe.sent(id, now: Self.at(seconds))
        seconds += answerTime
        let delay = probe.retryDelay(
          after: FileError(code, ""), of: id, unreachableLimit: .seconds(5),
          firstAnswerLimit: .seconds(5), retryAfter: retryAfter, policy: RetryPolicy(),
          random: 1, now: Self.at(seconds))
        guard let delay else { return delays + [seconds] }
        seconds += delay / .seconds(1)
        delays.append(seconds)
      }
      return delays
    }
    for code in [FileError.Code.unavailable, .invalidResponse, .disconnected, .exhausted] {
      for retryAfter in [Duration?.none, .zero, .seconds(1)] {
        let end = try #require(try delays(code, retryAfter: retryAfter).last)
        #expect((3.5...5).contains(end), "\(code), \(String(describing: retryAfter)): \(end) s")
      }
    }
    // The time of the answers counts, but one retry is made.
    let slow = try delays(.unavailable, retryAfter: nil, answerTime: 4.5)
    #expect(slow.count == 2 && (9...10).contains(slow[1]), "\(slow)")
  }

  @Test("A suspension does not count as time in which a server has failed")
  func suspendedFailures() throws {
    for code in [FileError.Code.unavailable, .unreachable] {
      var probe = Subject()
      let id = try Self.ask(&probe, until: 60)
      func delay(_ probe: inout Subject, at seconds: Double) -> Duration? {
        probe.retryDelay(
          after: FileError(code, ""), of: id, unreachableLimit: .seconds(5),
          firstAnswerLimit: .seconds(5), retryAfter: nil, policy: RetryPolicy(), random: 0.5,
          now: Self.at(seconds))
      }
      #expect(delay(&probe, at: 0) != nil)
      probe.postpone(by: .seconds(9))
      #expect(delay(&probe, at: 10) != nil)
      #expect(delay(&probe, at: 14) == nil)
    }
  }

  @Test("An answer between two refusals ends an outage")
  func answeredOutage() throws {
    var probe = Subject()
    let id = try Self.ask(&probe, until: 60)
    #expect(Self.delay(&probe, id, .unreachable, at: 0) != nil)
    #expect(Self.delay(&probe, id, .unavailable, at: 3) != nil)
    #expect(Self.delay(&probe, id, .unreachable, at: 4) != nil)
    #expect(Self.delay(&probe, id, .unreachable, at: 7) == nil)
  }

  @Test("Every event leads every phase to the phase that the table says")
  func transitions() throws {
    for phase in Subject.Phase.allCases {
      for event in Event.allCases {
        var (probe, id) = try Self.probe(in: phase)
        #expect(probe.phase == phase)
        event.happen(to: &probe, id)
        #expect(probe.phase == event.next(after: phase), "\(phase), \(event)")
      }
    }
  }

  @Test("What is said of an earlier question does not touch the one under way")
  func earlierQuestion() throws {
    let about: [Event] = [.begin, .started, .sent, .awaitURL, .retry, .retryDelay, .giveUp, .end]
    for phase in Subject.Phase.allCases where phase != .idle {
      for event in about {
        var (probe, earlier) = try Self.probe(in: .idle)
        let id = try Self.ask(&probe, until: 20)
        #expect(id != earlier)
        if phase == .awaitingURL { probe.awaitURL(id) }
        if phase == .asked { probe.begin(id, now: Self.start) }
        event.happen(to: &probe, earlier)
        #expect(probe.phase == phase, "\(event)")
        #expect(probe.isAsking(id))
        #expect(probe.exchange == nil)
        #expect(probe.ends(earlier, before: Self.start))
      }
    }
  }

  @Test("A request that its server has asked to hold says so until it connects")
  func held() throws {
    var (probe, id) = try Self.probe(in: .due)
    func reason(_ probe: Subject) -> WaitReason? {
      let use = WaitReason.SlotUse(count: 5, ownCount: 1, silence: .seconds(4))
      return probe.wait(now: Self.at(1), slotUse: { use })?.reason
    }
    probe.begin(id, now: Self.start)
    probe.held(id, until: Self.at(31))
    #expect(reason(probe) == .held(.seconds(30)))
    probe.connecting(id, now: Self.start)
    #expect(reason(probe) == .connecting(.seconds(1)))
    probe.held(id, until: Self.at(31))
    probe.retry(id)
    #expect(reason(probe) != .held(.seconds(30)))
  }

  @Test("One question has all waiters, and its end answers each of them once")
  func waiters() throws {
    var probe = Subject()
    let id = try Self.ask(&probe, until: 10)
    let joined = probe.join(Self.waiting(until: 20), limit: nil)
    #expect(joined == nil)
    #expect(probe.deadline == Self.at(20))
    #expect(probe.firstDeadline == Self.at(10))
    let late = probe.takeLate(now: Self.at(10))
    #expect(late.count == 1)
    #expect(!probe.isExpired(now: Self.at(19)))
    #expect(probe.isExpired(now: Self.at(20)))
    let end = probe.end(id)
    #expect(end?.waiters.count == 1)
    let again = probe.end(id)
    #expect(again == nil)
    #expect(!probe.isExpired(now: Self.at(20)))
  }

  @Test("Waiters with an older answer do not prolong a question among themselves")
  func limit() throws {
    var probe = Subject()
    _ = probe.join(Self.waiting(until: 5), limit: Self.at(5))
    _ = probe.join(Self.waiting(until: 9), limit: Self.at(9))
    #expect(probe.isLimited)
    #expect(probe.deadline == Self.at(5))
    _ = probe.join(Self.waiting(until: 30), limit: nil)
    #expect(!probe.isLimited)
    #expect(probe.deadline == Self.at(30))
  }

  @Test("A failure that may pass is retried until the deadline, an unreachable server less long")
  func retries() throws {
    var (probe, id) = try Self.probe(in: .asked)
    let isRetried = [
      Self.delay(&probe, id, .unavailable), Self.delay(&probe, id, .timedOut, at: 19.99),
      Self.delay(&probe, id, .unreachable, at: 1),
      Self.delay(&probe, id, .disconnected, at: 2),
      Self.delay(&probe, id, .unreachable, at: 9), Self.delay(&probe, id, .denied),
    ].map { $0 != nil }
    #expect(isRetried == [true, false, true, true, false, false])
    #expect(probe.exchange != nil, "its body may be arriving")
    probe.retry(id)
    #expect(probe.exchange == nil)
  }

  @Test("A suspended process moves all times of the question")
  func suspension() throws {
    var (probe, id) = try Self.probe(in: .asked)
    probe.postpone(by: .seconds(100))
    #expect(probe.deadline == Self.at(120))
    #expect(probe.firstDeadline == Self.at(120))
    #expect(!probe.hasWaited(for: .seconds(5), now: Self.at(104)))
    #expect(probe.hasWaited(for: .seconds(5), now: Self.at(105)))
    let early = probe.takeUnanswered(for: .seconds(5), now: Self.at(104))
    #expect(early == nil)
    let unanswered = probe.takeUnanswered(for: .seconds(5), now: Self.at(105))
    #expect(unanswered != nil)
    #expect(!probe.ends(id, before: Self.at(119)))
  }
}
