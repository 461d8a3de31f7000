internal import HTTPTransfer
internal import HTTPTransferCore

/// The known names of a directory, and the question to its server, as a pure value.
///
/// Its methods return the actions to take; the owner takes them after the lock is released.
struct ListingState {
  /// Receives the names.
  typealias Waiter = Probe<ListedNames>.Waiter

  /// The settings for listings.
  struct Settings {
    /// How long names count as current without a request.
    var timeToLive: Duration
    /// How long a waiter waits at most.
    var timeout: Duration
  }

  private let settings: Settings
  private(set) var names: ListedNames?
  /// Until when the names count as current; nil if there are none.
  private var believedUntil: ContinuousClock.Instant?
  private var probe = Probe<ListedNames>()
  private var recentFailure: (error: FileError, until: ContinuousClock.Instant)?
  /// Why the last request has failed; nil if the server has answered since.
  private(set) var failure: FileError?
  /// When the names were last requested.
  private(set) var usedAt = ContinuousClock.now

  init(settings: Settings) { self.settings = settings }

  // MARK: Requests

  /// The action to take for a caller that wants the names.
  enum Answer {
    /// Answer immediately.
    case known(Result<ListedNames, FileError>)
    /// Ask the server; the waiter is kept.
    case ask(ProbeID)
    /// The question is under way; the waiter is kept.
    case joined
  }

  /// Takes a caller that wants the names; a server that is known to be silent is not asked if there
  /// are names.
  mutating func want(
    now: ContinuousClock.Instant, isSilent: Bool, _ waiter: @escaping Waiter
  ) -> Answer {
    usedAt = now
    if let names, let believedUntil, now < believedUntil || isSilent {
      return .known(.success(names))
    }
    if let recentFailure, now < recentFailure.until { return .known(.failure(recentFailure.error)) }
    // If there are names, callers do not wait long for a server that does not answer.
    let timeout =
      names == nil
      ? settings.timeout : min(settings.timeout, FileSettings.confirmationTimeout)
    // All waiters share the deadline of the first.
    let waiting = Probe<ListedNames>.Waiting(
      answer: waiter, deadline: probe.deadline ?? now + timeout)
    return probe.join(waiting, limit: nil).map { .ask($0) } ?? .joined
  }

  /// The tag of the known names for a conditional request.
  var entityTag: EntityTag? { names?.entityTag }

  func isAsking(_ id: ProbeID) -> Bool { probe.isAsking(id) }

  /// Records that a request is being handed to the client.
  mutating func begin(_ id: ProbeID, now: ContinuousClock.Instant) { probe.begin(id, now: now) }

  mutating func started(_ id: ProbeID, as exchange: ExchangeID) { probe.started(id, as: exchange) }

  mutating func postpone(by delay: Duration) { probe.postpone(by: delay) }

  // MARK: Responses

  /// The waiters to answer, their answer, and the exchange to cancel.
  struct Conclusion {
    var waiters: [Waiter] = []
    var result: Result<ListedNames, FileError>
    /// Why the server could not confirm or replace the names.
    var refreshFailure: FileError?
    var exchange: ExchangeID?
  }

  /// Takes the server's answer: `names`, or nil if the known ones are confirmed.
  ///
  /// - Returns: nil if the question has been answered already.
  mutating func answered(
    _ id: ProbeID, _ names: ListedNames?, now: ContinuousClock.Instant
  ) -> Conclusion? {
    guard isAsking(id) else { return nil }
    guard let names = names ?? self.names else {
      return failed(
        id, FileError(.invalidResponse, "HTTP 304 to a request without a condition"), now: now)
    }
    guard let end = probe.end(id) else { return nil }
    self.names = names
    recentFailure = nil
    failure = nil
    believedUntil = now + max(settings.timeToLive, Self.minimumTimeToLive)
    return Conclusion(waiters: end.waiters.map(\.answer), result: .success(names))
  }

  /// Takes the permanent failure of the question.
  ///
  /// A server's refusal drops the names; a server that cannot be asked does not.
  mutating func failed(
    _ id: ProbeID, _ error: FileError, now: ContinuousClock.Instant
  ) -> Conclusion? {
    guard let end = probe.end(id) else { return nil }
    failure = error
    var conclusion = Conclusion(
      waiters: end.waiters.map(\.answer), result: .failure(error), exchange: end.exchange)
    switch error.code {
    case .missing, .denied, .unmounted: forget()
    default:
      guard let names else { break }
      believedUntil = now + min(max(settings.timeToLive, Self.minimumTimeToLive), Self.refreshPause)
      conclusion.result = .success(names)
      conclusion.refreshFailure = error
      return conclusion
    }
    recentFailure = (error, now + FileSettings.failureMemory)
    return conclusion
  }

  /// How long to wait before the question is sent again after `error`; nil if a retry would not
  /// help.
  ///
  /// A server that has never listed the directory is asked again for `limit` only.
  mutating func delay(
    after error: FileError, of id: ProbeID, limit: Duration, retryAfter: Duration?,
    policy: RetryPolicy, random: Double, now: ContinuousClock.Instant
  ) -> Duration? {
    guard names == nil else { return nil }
    if isAsking(id) { failure = error }
    return probe.retryDelay(
      after: error, of: id, unreachableLimit: limit, firstAnswerLimit: limit,
      retryAfter: retryAfter, policy: policy, random: random, now: now)
  }

  /// The question whose time is up, if any.
  func expired(now: ContinuousClock.Instant) -> ProbeID? {
    probe.isExpired(now: now) ? probe.id : nil
  }

  /// Whether the question's time will be up at `moment`.
  func ends(_ id: ProbeID, before moment: ContinuousClock.Instant) -> Bool {
    probe.ends(id, before: moment)
  }

  /// The question under way.
  var probeID: ProbeID? { probe.id }

  /// Drops the names until they are requested again, unless a question is under way.
  mutating func forget() {
    guard probe.phase == .idle else { return }
    names = nil
    believedUntil = nil
  }

  /// The kernel may keep names for that long anyway.
  private static let minimumTimeToLive = Duration.seconds(1)

  /// How long a server that could not be asked gets no further question.
  private static let refreshPause = Duration.seconds(5)
}
