internal import HTTPTransfer
internal import HTTPTransferCore

/// What is known of a directory's names, and the question to its server, as a pure value.
///
/// Its methods say what is to be done; the owner does it after the lock is released.
struct ListingState {
  /// Gets the names.
  typealias Waiter = Probe<ListedNames>.Waiter

  /// What is set about listings.
  struct Settings {
    /// How long names are believed without asking.
    var timeToLive: Duration
    /// The deadline of who waits.
    var patience: Duration
  }

  private let settings: Settings
  private(set) var names: ListedNames?
  /// Until when the names are believed; nil where there are none.
  private var believedUntil: ContinuousClock.Instant?
  private var probe = Probe<ListedNames>()
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
    case ask(ProbeID)
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
    // Names that are there are not kept waiting for long by a server that does not answer.
    let patience =
      names == nil
      ? settings.patience : min(settings.patience, FileSettings.confirmationPatience)
    // All waiters share the deadline of the first.
    let waiting = Probe<ListedNames>.Waiting(
      answer: waiter, deadline: probe.deadline ?? now + patience)
    return probe.join(waiting, limit: nil).map { .ask($0) } ?? .joined
  }

  /// The tag to ask with: the names need not come again where it is still right.
  var entityTag: EntityTag? { names?.entityTag }

  func isAsking(_ id: ProbeID) -> Bool { probe.isAsking(id) }

  /// A request is being handed to the client.
  mutating func begin(_ id: ProbeID, now: ContinuousClock.Instant) { probe.begin(id, now: now) }

  mutating func started(_ id: ProbeID, as exchange: ExchangeID) { probe.started(id, as: exchange) }

  mutating func postpone(by delay: Duration) { probe.postpone(by: delay) }

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
    believedUntil = now + max(settings.timeToLive, Self.leastTimeToLive)
    return Conclusion(waiters: end.waiters.map(\.answer), result: .success(names))
  }

  /// The question has failed for good.
  ///
  /// A server that says no is believed; one that cannot be asked does not take the names away.
  mutating func failed(
    _ id: ProbeID, _ error: FileError, now: ContinuousClock.Instant
  ) -> Conclusion? {
    guard let end = probe.end(id) else { return nil }
    var conclusion = Conclusion(
      waiters: end.waiters.map(\.answer), result: .failure(error), exchange: end.exchange)
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
    after error: FileError, of id: ProbeID, retryAfter: Duration?, policy: RetryPolicy,
    random: Double, now: ContinuousClock.Instant
  ) -> Duration? {
    guard names == nil else { return nil }
    return probe.retryDelay(
      after: error, of: id, retryAfter: retryAfter, policy: policy, random: random, now: now)
  }

  /// The question whose time is up.
  func expired(now: ContinuousClock.Instant) -> ProbeID? {
    probe.isExpired(now: now) ? probe.id : nil
  }

  /// Whether the question's time will be up at `moment`.
  func ends(_ id: ProbeID, before moment: ContinuousClock.Instant) -> Bool {
    probe.ends(id, before: moment)
  }

  /// The question under way.
  var probeID: ProbeID? { probe.id }

  /// Gives the names up, unless the server is being asked whether they are still right; they are asked
  /// for when they are wanted again.
  mutating func forget() {
    guard probe.phase == .idle else { return }
    names = nil
    believedUntil = nil
  }

  /// Names may be that old in the kernel anyway.
  private static let leastTimeToLive = Duration.seconds(1)

  /// How long a server that could not be asked is left alone.
  private static let refreshPause = Duration.seconds(5)
}
