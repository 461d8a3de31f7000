internal import HTTPTransfer
internal import HTTPTransferCore

/// One question to a server at a time, and all callers that wait for its answer, as a pure value.
///
/// Each method takes the identifier of the question that it is about, and does nothing if that
/// question has ended. The owner carries out what a method returns, after it has released its lock.
///
/// | phase         | event                                    | next phase    |
/// |---------------|------------------------------------------|---------------|
/// | `idle`        | `join`: the caller sends the question    | `due`         |
/// | any other     | `join`: the caller waits with the others | the same      |
/// | any but idle  | `begin`                                  | `asked`       |
/// | any but idle  | `awaitURL`                               | `awaitingURL` |
/// | `awaitingURL` | `takeURL`                                | `due`         |
/// | any but idle  | `retry`, or `retryDelay` with a delay    | `due`         |
/// | any but idle  | `end`                                    | `idle`        |
///
/// No other method changes the phase.
struct Probe<Answer: Sendable>: Sendable {
  /// Receives the answer.
  typealias Waiter = @Sendable (Result<Answer, FileError>) -> Void

  /// A waiter and its own deadline: a waiter that joins late does not inherit an earlier deadline.
  struct Waiting: Sendable {
    let answer: Waiter
    var deadline: ContinuousClock.Instant
    var since = ContinuousClock.now
  }

  /// What the question waits for.
  enum Phase: Sendable, CaseIterable {
    /// There is no question. → `due`
    case idle
    /// A request must be sent, now or when a pause ends. → `asked`, `awaitingURL`, `idle`
    case due
    /// A command makes the URL for the request. → `due`, `idle`
    case awaitingURL
    /// A request was handed to the client. → `due` after a failure, `asked` if the response calls
    /// for another request, `awaitingURL` if that needs another URL, `idle`
    case asked
  }

  private struct Question {
    let id: ProbeID
    var phase = Phase.due
    var waiters: [Waiting]
    /// The last deadline of the waiters.
    var deadline: ContinuousClock.Instant
    /// When the question ends at the latest; nil unless all waiters have an older answer.
    var limit: ContinuousClock.Instant?
    /// When the first request was handed to the client.
    var askedAt: ContinuousClock.Instant?
    /// Until when the server of the last request, which has a slot, has asked for no request.
    var heldUntil: ContinuousClock.Instant?
    /// Since when the last request, which has a slot, waits for a connection.
    var connectingSince: ContinuousClock.Instant?
    /// When the last request was sent to the server.
    var sentAt: ContinuousClock.Instant?
    /// The pause before the next request, and the failure that caused it.
    var pause: (until: ContinuousClock.Instant, reason: String)?
    /// The last request; while the question is due, its body may still be arriving.
    var exchange: ExchangeID?
    var failureCount = 0
    var unreachableSince: ContinuousClock.Instant?
    /// When the first request that failed was sent, or later if that was long ago.
    var failingSince: ContinuousClock.Instant?
    /// The end of the first pause that the server has asked for.
    var namedEnd: ContinuousClock.Instant?

    /// Forgets how far the last request has come.
    mutating func forgetRequest() {
      heldUntil = nil
      connectingSince = nil
      sentAt = nil
    }
  }

  private var question: Question?
  private var lastID = 0

  var phase: Phase { question?.phase ?? .idle }

  /// The question under way, if any.
  var id: ProbeID? { question?.id }

  /// Until when callers wait for the answer.
  var deadline: ContinuousClock.Instant? { question?.deadline }

  /// The last request of the question.
  var exchange: ExchangeID? { question?.exchange }

  func isAsking(_ id: ProbeID) -> Bool { question?.id == id }

  // MARK: Waiters

  /// Adds a waiter.
  ///
  /// Waiters that have an older answer do not keep alive a question whose connection is silently
  /// dead: the next question goes out on another connection.
  ///
  /// - Parameters:
  ///   - waiting: the waiter.
  ///   - limit: when a question for this waiter alone ends at the latest; nil if the waiter has no
  ///     older answer.
  /// - Returns: the question that the caller must send; nil if one is under way.
  mutating func join(_ waiting: Waiting, limit: ContinuousClock.Instant?) -> ProbeID? {
    guard var question else {
      lastID += 1
      let id = ProbeID(rawValue: lastID)
      question = Question(id: id, waiters: [waiting], deadline: waiting.deadline, limit: limit)
      return id
    }
    question.waiters.append(waiting)
    if limit == nil { question.limit = nil }
    question.deadline = max(
      question.deadline, min(waiting.deadline, question.limit ?? waiting.deadline))
    self.question = question
    return nil
  }

  /// Removes and returns the waiters whose deadlines have passed.
  mutating func takeLate(now: ContinuousClock.Instant) -> [Waiting] {
    guard let question else { return [] }
    let late = question.waiters.filter { $0.deadline <= now }
    self.question?.waiters.removeAll { $0.deadline <= now }
    return late
  }

  /// The first deadline of the waiters.
  var firstDeadline: ContinuousClock.Instant? {
    question.map { $0.waiters.map(\.deadline).min() ?? $0.deadline }
  }

  // MARK: Requests

  /// Records that the owner hands a request to the client.
  mutating func begin(_ id: ProbeID, now: ContinuousClock.Instant) {
    guard isAsking(id) else { return }
    question?.phase = .asked
    question?.forgetRequest()
    question?.pause = nil
    if question?.askedAt == nil { question?.askedAt = now }
  }

  /// Records that the client knows the request as `exchange`.
  mutating func started(_ id: ProbeID, as exchange: ExchangeID) {
    if isAsking(id) { question?.exchange = exchange }
  }

  /// Records that the request is held until `moment`, because its server has asked for a pause.
  mutating func held(_ id: ProbeID, until moment: ContinuousClock.Instant) {
    if isAsking(id) { question?.heldUntil = moment }
  }

  /// Records that the request has a slot at its server, and that nothing holds it.
  mutating func connecting(_ id: ProbeID, now: ContinuousClock.Instant) {
    guard isAsking(id) else { return }
    question?.heldUntil = nil
    if question?.connectingSince == nil { question?.connectingSince = now }
  }

  /// Records that the client has sent the request.
  mutating func sent(_ id: ProbeID, now: ContinuousClock.Instant) {
    if isAsking(id) { question?.sentAt = now }
  }

  /// Makes the question wait for a URL.
  mutating func awaitURL(_ id: ProbeID) {
    if isAsking(id) { question?.phase = .awaitingURL }
  }

  /// Records that the signer has ended, with or without a URL.
  ///
  /// - Returns: the question that has waited for it.
  mutating func takeURL() -> ProbeID? {
    guard phase == .awaitingURL else { return nil }
    question?.phase = .due
    return question?.id
  }

  /// Takes the request if the server has sent no bytes within `timeout` after it was sent.
  ///
  /// The caller cancels it, and its receiver reports the failure.
  mutating func takeUnanswered(
    for timeout: Duration, now: ContinuousClock.Instant
  ) -> ExchangeID? {
    guard let exchange = question?.exchange, let sentAt = question?.sentAt,
      now - sentAt >= timeout
    else { return nil }
    question?.exchange = nil
    return exchange
  }

  // MARK: Retries

  /// Makes the question due again; the last request is over.
  mutating func retry(_ id: ProbeID) {
    guard isAsking(id) else { return }
    question?.phase = .due
    question?.exchange = nil
    question?.forgetRequest()
  }

  /// How long to wait before the question is sent again after `error`.
  ///
  /// With `unreachableLimit`, a server that cannot be reached is retried for that long only.
  /// `firstAnswerLimit` is for a file of which nothing is known: its failures are retried for that
  /// long only, or until the time that the server first names, and a rejected request is not
  /// repeated.
  ///
  /// - Returns: nil if a retry would not help, or not before the deadline; the caller then ends the
  ///   question.
  mutating func retryDelay(
    after error: FileError, of id: ProbeID, unreachableLimit: Duration?,
    firstAnswerLimit: Duration?, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant
  ) -> Duration? {
    guard isAsking(id) else { return nil }
    guard var question else { return nil }
    defer { self.question = question }
    question.failureCount += 1
    let pause = FileSettings.unreachableRetryInterval
    // A slow first answer leaves time for one more request.
    let spent = max(.zero, (firstAnswerLimit ?? .zero) - pause * 2)
    let failingSince = question.failingSince ?? max(question.sentAt ?? now, now - spent)
    question.failingSince = failingSince
    var delay = policy.delay(
      failures: question.failureCount, retryAfter: retryAfter, random: random)
    let isNamed = retryAfter.map { $0 > .zero } ?? false
    if isNamed, question.namedEnd == nil { question.namedEnd = now + delay }
    var end: ContinuousClock.Instant?
    switch error.code {
    case .unreachable, .disconnected, .exhausted:
      let since = question.unreachableSince ?? now
      question.unreachableSince = since
      end = unreachableLimit.map { since + $0 }
      if error.code == .unreachable { delay = min(delay, pause) }
    case .unavailable, .invalidResponse:
      question.unreachableSince = nil
      end = firstAnswerLimit.map { max(failingSince + $0, question.namedEnd ?? failingSince) }
    case .rejected:
      question.unreachableSince = nil
      if firstAnswerLimit != nil { return nil }
    case .timedOut, .unsigned: break
    case .missing, .denied, .stale, .refused, .corrupt, .tooManyFiles, .cacheFailed, .unmounted:
      return nil
    }
    if let end {
      // Another attempt after the limit would come too late.
      let last = end - pause
      if isNamed {
        guard now + delay <= end else { return nil }
      } else {
        guard now < last else { return nil }
        delay = min(delay, last - now)
      }
    }
    guard now + delay < question.deadline else { return nil }
    question.phase = .due
    question.pause = (now + delay, error.reason)
    return delay
  }

  // MARK: Timers

  /// Whether all deadlines have passed at `now`.
  func isExpired(now: ContinuousClock.Instant) -> Bool {
    question.map { $0.deadline <= now } ?? false
  }

  /// Whether the question has ended at `moment`, by its deadline or already.
  func ends(_ id: ProbeID, before moment: ContinuousClock.Instant) -> Bool {
    guard let question, question.id == id else { return true }
    return question.deadline <= moment
  }

  /// Whether the server has had `timeout` to answer.
  ///
  /// An expired deadline does not show that: the caller may have had little time left, and a
  /// question that waits for its URL, or for its turn, was not sent.
  func hasWaited(for timeout: Duration, now: ContinuousClock.Instant) -> Bool {
    guard phase != .awaitingURL, let askedAt = question?.askedAt else { return false }
    return now - askedAt >= timeout
  }

  /// Whether an older answer of all waiters limits the question.
  var isLimited: Bool { question?.limit != nil }

  /// Moves all deadlines by `delay`, during which no server could answer.
  mutating func postpone(by delay: Duration) {
    guard var question else { return }
    for index in question.waiters.indices { question.waiters[index].deadline += delay }
    question.deadline += delay
    question.limit = question.limit.map { $0 + delay }
    question.askedAt = question.askedAt.map { $0 + delay }
    question.sentAt = question.sentAt.map { $0 + delay }
    question.unreachableSince = question.unreachableSince.map { $0 + delay }
    question.failingSince = question.failingSince.map { $0 + delay }
    question.namedEnd = question.namedEnd.map { $0 + delay }
    self.question = question
  }

  // MARK: Status

  /// How long the first of the waiters has waited, and why; nil without waiters.
  func wait(
    now: ContinuousClock.Instant, slotUse: () -> WaitReason.SlotUse
  ) -> (time: Duration, reason: WaitReason)? {
    guard let question, let since = question.waiters.map(\.since).min() else { return nil }
    let reason: WaitReason =
      if question.phase == .awaitingURL {
        .locating
      } else if let pause = question.pause {
        .retrying(after: pause.reason, delay: max(.zero, pause.until - now))
      } else if let heldUntil = question.heldUntil {
        .held(heldUntil - now)
      } else if let sentAt = question.sentAt {
        .unanswered(now - sentAt, isHedged: false)
      } else if let connectingSince = question.connectingSince {
        .connecting(now - connectingSince)
      } else {
        .slot(slotUse())
      }
    return (now - since, reason)
  }

  // MARK: Completion

  /// The remains of a question that has ended.
  struct End: Sendable {
    /// The waiters, which the owner answers.
    let waiters: [Waiting]
    /// The last request.
    let exchange: ExchangeID?
  }

  /// Ends the question.
  mutating func end(_ id: ProbeID) -> End? {
    guard let question, question.id == id else { return nil }
    self.question = nil
    return End(waiters: question.waiters, exchange: question.exchange)
  }
}

/// Identifies one question to a server, so that an answer to an earlier one is not mistaken for its
/// own.
struct ProbeID: Hashable, Sendable {
  let rawValue: Int
}
