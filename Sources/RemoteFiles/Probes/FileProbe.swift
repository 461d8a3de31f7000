internal import HTTPTransfer
internal import HTTPTransferCore

/// The question "what is this file now?", as a pure value: a ``Probe`` with the evidence so far.
///
/// An answer that proves nothing makes the file ask again. Each reason to ask again is bounded for
/// one question:
///
/// | the answer                              | asked again                               |
/// |-----------------------------------------|-------------------------------------------|
/// | contradicts cached bytes                | once (`takeSecondOpinion`)                |
/// | looks like another document             | `doubtfulAnswerLimit` times (`doubts`)    |
/// | is of the second of the file's change   | twice, a second later (`takeFreshRetry`)  |
/// | refuses the URL that a command has made | once, with another URL (`takeNewURL`)     |
/// | is a failure of one server              | at each other server (`takeNextMirror`)   |
/// | is a failure of all servers             | until the deadline (`retryDelay`)         |
struct FileProbe: Sendable {
  typealias Waiting = Probe<RemoteVersion>.Waiting

  private var probe = Probe<RemoteVersion>()
  private var evidence = Evidence()

  /// What the answers to one question have shown.
  private struct Evidence: Sendable {
    /// How much of the file's start the answer may bring.
    var byteCount: Int64 = 0
    /// Which of the file's servers is asked.
    var mirror = 0
    /// The servers that have failed since all of them were last asked.
    var failures: [(index: Int, error: FileError)] = []
    /// Whether an answer has contradicted the current version, and another one must confirm that.
    var isContradicted = false
    /// The version with which to answer at a moment before the deadline, if no better answer has
    /// come.
    var provisional: (version: RemoteVersion, at: ContinuousClock.Instant)?
    /// How many answers were rejected because they looked like another document, and the last of
    /// them.
    var doubtCount = 0
    var doubted: ContentVersion?
    /// How many answers were too fresh to prove anything.
    var freshCount = 0
    /// Whether the last URL was refused, and another one was made for this question.
    var hasNewURL = false
  }

  var isAsking: Bool { probe.id != nil }
  var id: ProbeID? { probe.id }
  var phase: Probe<RemoteVersion>.Phase { probe.phase }

  /// How long the first of the waiters has waited, and why; nil without waiters.
  func wait(
    now: ContinuousClock.Instant, slotUse: () -> WaitReason.SlotUse
  ) -> (time: Duration, reason: WaitReason)? {
    guard let wait = probe.wait(now: now, slotUse: slotUse) else { return nil }
    // The head has arrived.
    return evidence.provisional == nil ? wait : (wait.time, .arriving(byteCountBefore: 0))
  }

  /// The index of the server that is asked; nil if none is.
  var mirror: Int? { isAsking ? evidence.mirror : nil }

  func isAsking(_ id: ProbeID) -> Bool { probe.isAsking(id) }

  func isAsking(_ id: ProbeID, mirror: Int) -> Bool {
    probe.isAsking(id) && evidence.mirror == mirror
  }

  // MARK: Requests

  /// Adds a waiter, see ``Probe/join(_:limit:)``.
  ///
  /// A new question goes to the server that `mirror` chooses, and its answer may bring the file's
  /// first `byteCount` bytes.
  mutating func join(
    _ waiting: Waiting, limit: ContinuousClock.Instant?, byteCount: Int64, mirror: () -> Int
  ) -> ProbeID? {
    guard let id = probe.join(waiting, limit: limit) else { return nil }
    evidence = Evidence(byteCount: byteCount, mirror: mirror())
    return id
  }

  /// The byte count and the server of the request; nil if the question has ended.
  func request(_ id: ProbeID) -> (byteCount: Int64, mirror: Int)? {
    isAsking(id) ? (evidence.byteCount, evidence.mirror) : nil
  }

  mutating func begin(_ id: ProbeID, now: ContinuousClock.Instant) { probe.begin(id, now: now) }
  mutating func started(_ id: ProbeID, as exchange: ExchangeID) { probe.started(id, as: exchange) }
  mutating func held(_ id: ProbeID, until moment: ContinuousClock.Instant) {
    probe.held(id, until: moment)
  }
  mutating func connecting(_ id: ProbeID, now: ContinuousClock.Instant) {
    probe.connecting(id, now: now)
  }
  mutating func sent(_ id: ProbeID, now: ContinuousClock.Instant) { probe.sent(id, now: now) }
  mutating func awaitURL(_ id: ProbeID) { probe.awaitURL(id) }

  /// Takes the result of the signer: the URL was made, unless `hasFailed`.
  ///
  /// - Returns: the question that waits for it.
  mutating func takeURL(hasFailed: Bool) -> ProbeID? {
    guard let id = probe.takeURL() else { return nil }
    if !hasFailed { evidence.hasNewURL = true }
    return id
  }

  // MARK: Inconclusive responses

  /// Whether an answer that contradicts the current version must be confirmed by another one.
  func wantsSecondOpinion(_ id: ProbeID) -> Bool { isAsking(id) && !evidence.isContradicted }

  /// Records that an answer has contradicted the current version.
  mutating func takeSecondOpinion(_ id: ProbeID) -> Bool {
    guard wantsSecondOpinion(id) else { return false }
    evidence.isContradicted = true
    return true
  }

  /// Whether to reject the answer `content`, which looks like another document.
  ///
  /// A version with a strong validator is replaced only if the answers have one, too, the same each
  /// time: a page that stands in for a file has none.
  mutating func doubts(_ content: ContentVersion, to id: ProbeID, isKnownStrong: Bool) -> Bool {
    guard isAsking(id) else { return false }
    if isKnownStrong {
      guard content.strength == .strong else { return true }
      if let last = evidence.doubted, last.compare(content) != .same { evidence.doubtCount = 0 }
    }
    evidence.doubted = content
    guard evidence.doubtCount < FetchConstants.doubtfulAnswerLimit else { return false }
    evidence.doubtCount += 1
    return true
  }

  /// Whether the question may be sent again after `delay`, because its answer is from the same
  /// second in which the file was modified.
  mutating func takeFreshRetry(
    _ id: ProbeID, after delay: Duration, now: ContinuousClock.Instant
  ) -> Bool {
    guard evidence.freshCount < FetchConstants.freshAnswerLimit,
      !probe.ends(id, before: now + delay)
    else {
      return false
    }
    evidence.freshCount += 1
    probe.retry(id)
    return true
  }

  /// Whether the question, after a refusal of its URL, may be sent to another URL.
  mutating func takeNewURL(_ id: ProbeID) -> Bool {
    guard isAsking(id), !evidence.hasNewURL else { return false }
    evidence.hasNewURL = true
    return true
  }

  /// Makes `version` the answer at `moment`, unless the end of the body brings the length sooner.
  mutating func answerProvisionally(
    _ id: ProbeID, _ version: RemoteVersion, at moment: ContinuousClock.Instant
  ) {
    if isAsking(id) { evidence.provisional = (version, moment) }
  }

  // MARK: Failures

  /// Takes the next server after `mirror` has failed; `next` chooses it, given those already tried.
  ///
  /// - Returns: whether there is a server left to ask before the deadline.
  mutating func takeNextMirror(
    _ id: ProbeID, after mirror: Int, _ error: FileError, now: ContinuousClock.Instant,
    next: (Set<Int>) -> Int?
  ) -> Bool {
    guard isAsking(id) else { return false }
    evidence.failures.append((mirror, error))
    probe.retry(id)
    let tried = Set(evidence.failures.map(\.index))
    guard !probe.ends(id, before: now), let next = next(tried) else { return false }
    evidence.mirror = next
    return true
  }

  /// Takes the failures of all servers, which may then be asked again, `first` before the others.
  mutating func takeFailures(
    _ id: ProbeID, first: () -> Int?
  ) -> [(index: Int, error: FileError)] {
    guard isAsking(id) else { return [] }
    let failures = evidence.failures
    evidence.failures = []
    evidence.mirror = first() ?? evidence.mirror
    return failures
  }

  /// See the method of the same name of ``Probe``.
  mutating func retryDelay(
    after error: FileError, of id: ProbeID, unreachableLimit: Duration?,
    firstAnswerLimit: Duration?, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant
  ) -> Duration? {
    probe.retryDelay(
      after: error, of: id, unreachableLimit: unreachableLimit,
      firstAnswerLimit: firstAnswerLimit, retryAfter: retryAfter, policy: policy, random: random,
      now: now)
  }

  /// Whether the question has ended at `moment`, by its deadline or already.
  func ends(_ id: ProbeID, before moment: ContinuousClock.Instant) -> Bool {
    probe.ends(id, before: moment)
  }

  // MARK: Timers

  /// The action that is due because of the time.
  enum Overdue {
    /// Answer with the version that is known so far.
    case answer(ProbeID, RemoteVersion)
    /// Fail the question. `isSilent` means that the server had `silenceTimeout` to answer.
    case fail(ProbeID, isSilent: Bool)
    /// Cancel the request; its receiver reports the failure.
    case cancel(ExchangeID)
  }

  /// The action that is due at `now`.
  ///
  /// A request may stall for `timeout` after it was sent. `hasOther` says whether another server
  /// can be asked immediately. A server counts as silent after `silenceTimeout`.
  mutating func overdue(
    now: ContinuousClock.Instant, timeout: Duration, hasOther: Bool, silenceTimeout: Duration
  ) -> Overdue? {
    guard let id = probe.id else { return nil }
    if let provisional = evidence.provisional,
      min(provisional.at, probe.firstDeadline ?? provisional.at) <= now
    {
      return .answer(id, provisional.version)
    }
    if probe.isExpired(now: now) {
      return .fail(id, isSilent: probe.hasWaited(for: silenceTimeout, now: now))
    }
    guard !probe.isLimited || hasOther, evidence.provisional == nil else { return nil }
    return probe.takeUnanswered(for: timeout, now: now).map { .cancel($0) }
  }

  /// The error for waiters whose deadlines have passed.
  var lateness: FileError {
    phase == .awaitingURL
      ? FileError(.unsigned, "the URL command has not answered in time")
      : FileError(.timedOut, "no answer from the server")
  }

  /// Removes and returns the waiters whose deadlines have passed.
  mutating func takeLate(now: ContinuousClock.Instant) -> [Waiting] { probe.takeLate(now: now) }

  mutating func postpone(by delay: Duration) { probe.postpone(by: delay) }

  /// Ends the question.
  mutating func end(_ id: ProbeID) -> Probe<RemoteVersion>.End? {
    guard let end = probe.end(id) else { return nil }
    evidence = Evidence()
    return end
  }
}
