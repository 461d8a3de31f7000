internal import HTTPTransfer
internal import HTTPTransferCore

/// What is known of a directory's names, and the question to its server, as a pure value.
///
/// Its methods say what is to be done; the owner does it after the lock is released.
struct ListingState {
  /// One who waits for the names.
  typealias Waiter = @Sendable (Result<ListedNames, FileError>) -> Void

  /// What is set about listings.
  struct Settings {
    /// How long names are believed without asking.
    var timeToLive: Duration
    /// The deadline of who waits.
    var patience: Duration
  }

  private struct Question {
    let id: ListingQuestionID
    var waiters: [Waiter]
    var deadline: ContinuousClock.Instant
    var exchange: ExchangeID?
    var failureCount = 0
    var unreachableSince: ContinuousClock.Instant?
  }

  private let settings: Settings
  private(set) var names: ListedNames?
  /// Until when the names are believed; nil where there are none.
  private var believedUntil: ContinuousClock.Instant?
  private var question: Question?
  private var lastQuestion = 0
  private var recentFailure: (error: FileError, until: ContinuousClock.Instant)?
  /// When the names were last wanted.
  private(set) var usedAt = ContinuousClock.now

  init(settings: Settings) { self.settings = settings }

  // MARK: Asking

  /// What is to be done for one who wants the names.
  enum Answer {
    /// Answer at once.
    case known(Result<ListedNames, FileError>)
    /// Ask the server; the waiter is kept.
    case ask(ListingQuestionID)
    /// The question is under way; the waiter is kept.
    case joined
  }

  /// Takes one who wants the names; a server that is known not to answer now is not asked again where
  /// there are some.
  mutating func want(
    now: ContinuousClock.Instant, isSilent: Bool, _ waiter: @escaping Waiter
  ) -> Answer {
    usedAt = now
    if let names, let believedUntil, now < believedUntil || isSilent {
      return .known(.success(names))
    }
    if let recentFailure, now < recentFailure.until { return .known(.failure(recentFailure.error)) }
    if question != nil {
      question?.waiters.append(waiter)
      return .joined
    }
    lastQuestion += 1
    let id = ListingQuestionID(rawValue: lastQuestion)
    // Names that are there are not kept waiting for long by a server that does not answer.
    let patience =
      names == nil
      ? settings.patience : min(settings.patience, FileSettings.confirmationPatience)
    question = Question(id: id, waiters: [waiter], deadline: now + patience)
    return .ask(id)
  }

  /// The tag to ask with: the names need not come again where it is still right.
  var entityTag: EntityTag? { names?.entityTag }

  func isAsking(_ id: ListingQuestionID) -> Bool { question?.id == id }

  mutating func sent(_ id: ListingQuestionID, as exchange: ExchangeID) {
    if question?.id == id { question?.exchange = exchange }
  }

  mutating func postpone(by delay: Duration) { question?.deadline += delay }

  // MARK: Answers

  /// Who is to be told what, and which exchange to cancel.
  struct Conclusion {
    var waiters: [Waiter] = []
    var result: Result<ListedNames, FileError>
    /// Why the names are those of before.
    var refreshFailure: FileError?
    var exchange: ExchangeID?
  }

  /// The server has listed `names`, or, where that is nil, said that they are as before.
  ///
  /// - Returns: nil where the question has been answered already.
  mutating func answered(
    _ id: ListingQuestionID, _ names: ListedNames?, now: ContinuousClock.Instant
  ) -> Conclusion? {
    guard let question, question.id == id else { return nil }
    guard let names = names ?? self.names else {
      return failed(
        id, FileError(.invalidResponse, "HTTP 304 to a request without a condition"), now: now)
    }
    self.question = nil
    self.names = names
    recentFailure = nil
    believedUntil = now + max(settings.timeToLive, Self.leastTimeToLive)
    return Conclusion(waiters: question.waiters, result: .success(names))
  }

  /// The question has failed for good.
  ///
  /// A server that says no is believed; one that cannot be asked does not take the names away.
  mutating func failed(
    _ id: ListingQuestionID, _ error: FileError, now: ContinuousClock.Instant
  ) -> Conclusion? {
    guard let question, question.id == id else { return nil }
    self.question = nil
    var conclusion = Conclusion(
      waiters: question.waiters, result: .failure(error), exchange: question.exchange)
    switch error.code {
    case .missing, .denied, .unmounted: forget()
    default:
      guard let names else { break }
      believedUntil = now + min(max(settings.timeToLive, Self.leastTimeToLive), Self.refreshPause)
      conclusion.result = .success(names)
      conclusion.refreshFailure = error
      return conclusion
    }
    recentFailure = (error, now + FileSettings.failureMemory)
    return conclusion
  }

  /// How long to wait before the question is put again after `error`; nil where that would not help.
  mutating func delay(
    after error: FileError, of id: ListingQuestionID, retryAfter: Duration?, policy: RetryPolicy,
    random: Double, now: ContinuousClock.Instant
  ) -> Duration? {
    guard question?.id == id, names == nil else { return nil }
    question?.exchange = nil
    question?.failureCount += 1
    guard let question else { return nil }
    switch error.code {
    case .unreachable, .disconnected:
      let since = question.unreachableSince ?? now
      self.question?.unreachableSince = since
      guard now - since < FileSettings.unreachablePatience else { return nil }
    case .timedOut, .invalidResponse, .unavailable, .unsigned: break
    case .missing, .denied, .stale, .refused, .corrupt, .tooManyFiles, .cacheFailed, .unmounted:
      return nil
    }
    let delay = policy.delay(
      failures: question.failureCount, retryAfter: retryAfter, random: random)
    return now + delay < question.deadline ? delay : nil
  }

  /// The question whose time is up.
  func expired(now: ContinuousClock.Instant) -> ListingQuestionID? {
    question.flatMap { $0.deadline <= now ? $0.id : nil }
  }

  /// Whether the question's time will be up at `moment`.
  func ends(_ id: ListingQuestionID, before moment: ContinuousClock.Instant) -> Bool {
    guard let question, question.id == id else { return true }
    return question.deadline <= moment
  }

  var questionID: ListingQuestionID? { question?.id }

  /// Gives the names up, unless the server is being asked whether they are still right; they are asked
  /// for when they are wanted again.
  mutating func forget() {
    guard question == nil else { return }
    names = nil
    believedUntil = nil
  }

  /// Names may be that old in the kernel anyway.
  private static let leastTimeToLive = Duration.seconds(1)

  /// How long a server that could not be asked is left alone.
  private static let refreshPause = Duration.seconds(5)
}

/// Names one question of one directory to its server.
struct ListingQuestionID: Hashable, Sendable {
  let rawValue: Int
}
