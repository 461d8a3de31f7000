internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// The servers that cannot be reached, by their origins, and since when.
///
/// A server that has just gone may be restarting, so reads wait for it. Once it has been gone for
/// ``FileSettings/outageTimeout``, or for ``FileSettings/firstAnswerTimeout`` if it has never
/// answered in this mount, one request at a time looks for its return, and all other reads fail at
/// once. If the server does not accept the connection within ``HopPermit/probeTimeout``, an
/// ``OutageScout`` goes on looking, because no read may wait that long.
///
/// Lock order: `state` is a leaf.
final class HostOutages: Sendable {
  fileprivate struct Outage {
    var since: ContinuousClock.Instant
    /// The last failure or connection.
    var seen: ContinuousClock.Instant
    var error: FileError
    /// When a request was last allowed, if the server counts as gone.
    var probedAt: ContinuousClock.Instant?
    var isGone = false
    /// Whether a scout looks for its return.
    var hasScout = false
  }

  private struct State {
    var outages: [String: Outage] = [:]
    /// The listed origins that have answered in this mount.
    var knownListed: Set<String> = []
    /// The same of origins to which others have redirected, at most ``maximumOriginCount``.
    var knownTargets: Set<String> = []

    func knows(_ origin: String) -> Bool {
      knownListed.contains(origin) || knownTargets.contains(origin)
    }
  }

  private let state = Mutex(State())
  private let limit: Duration
  private let firstLimit: Duration

  /// The interval between two requests that look for the return of a server.
  static let probeInterval = Duration.seconds(1)

  /// The longest time between two failures of one outage: a resolver may take 20 s to fail.
  private static let memory = Duration.seconds(30)

  /// How many origins that no list names are remembered at most: redirects can lead to any number
  /// of them.
  static let maximumOriginCount = 4096

  /// - Parameters:
  ///   - limit: how long a server must be unreachable to count as gone.
  ///   - firstLimit: the same for a server that has never answered.
  init(limit: Duration, firstLimit: Duration) {
    self.limit = limit
    self.firstLimit = firstLimit
  }

  /// Records a failed request.
  ///
  /// - Returns: whether the server that failed counts as gone, so that a retry would not help.
  func record(_ error: FileError, now: ContinuousClock.Instant) -> Bool {
    guard let origin = error.origin else { return false }
    switch error.contact {
    case .unreachable: break
    case .accepted:
      recordAcceptance(by: origin, now: now)
      return false
    case .refused, nil: return false
    }
    return state.withLock { state in
      if state.outages[origin] == nil, state.outages.count >= Self.maximumOriginCount {
        let oldest = state.outages.min { $0.value.seen < $1.value.seen }
        if let oldest { state.outages[oldest.key] = nil }
      }
      var outage = state.outages[origin] ?? Outage(since: now, seen: now, error: error)
      // The server may have been reachable while no request was sent.
      if !outage.isGone, now - outage.seen >= Self.memory { outage.since = now }
      outage.seen = now
      // Reads of a server that is gone fail with EIO, however its network behaves.
      outage.error = error.ofOutage
      let limit = state.knows(origin) ? limit : firstLimit
      // Another attempt would come too late.
      let end = now + FileSettings.unreachableRetryInterval
      outage.isGone = outage.isGone || end - outage.since >= limit
      state.outages[origin] = outage
      return outage.isGone
    }
  }

  /// Records an answer.
  ///
  /// - Parameters:
  ///   - origin: the server that has answered.
  ///   - isListed: whether a list names it, so that its number is bounded.
  func recordContact(with origin: String, isListed: Bool) {
    state.withLock { state in
      if isListed {
        if !state.knownListed.contains(origin) { state.knownListed.insert(origin) }
      } else if !state.knownTargets.contains(origin) {
        if state.knownTargets.count >= Self.maximumOriginCount { state.knownTargets = [] }
        state.knownTargets.insert(origin)
      }
      if !state.outages.isEmpty { state.outages[origin] = nil }
    }
  }

  /// Records a connection, on which the server may never answer.
  ///
  /// All requests are allowed again. If the next one fails, the outage goes on: a load balancer
  /// accepts connections for a server that is gone.
  private func recordAcceptance(by origin: String, now: ContinuousClock.Instant) {
    state.withLock { state in
      guard let outage = state.outages[origin] else { return }
      state.outages[origin]?.isGone = false
      state.outages[origin]?.seen = max(outage.seen, now)
    }
  }

  /// Whether `origin` has been unreachable for too long.
  func isGone(_ origin: String) -> Bool {
    state.withLock { $0.outages[origin]?.isGone == true }
  }

  /// Moves all outages by `delay`, during which the process was suspended.
  ///
  /// A failure may have been recorded since it has continued.
  func postpone(by delay: Duration, now: ContinuousClock.Instant) {
    state.withLock { state in
      for (origin, outage) in state.outages {
        state.outages[origin]?.since = min(outage.since + delay, now)
        state.outages[origin]?.seen = min(outage.seen + delay, now)
      }
    }
  }

  /// Whether a request may be sent to `url` now.
  func permit(to url: RemoteURL, now: ContinuousClock.Instant) -> HopPermit {
    state.withLock { state in
      guard let outage = state.outages[url.origin], outage.isGone else { return .granted }
      let isProbed = outage.probedAt.map { now - $0 < Self.probeInterval } ?? false
      if isProbed || outage.hasScout { return .refused(outage.refusal(of: url)) }
      state.outages[url.origin]?.probedAt = now
      return .probe
    }
  }

  /// The error of requests to `url` while its server is gone; nil if it is not.
  func refusal(of url: RemoteURL) -> ExchangeError? {
    state.withLock { state in
      guard let outage = state.outages[url.origin], outage.isGone else { return nil }
      return outage.refusal(of: url)
    }
  }

  // MARK: Scouts

  /// Whether to send a scout to the server of a failed request; once, until it ends.
  func beginScout(after error: ExchangeError) -> Bool {
    guard error.code == .connectionTimedOut else { return false }
    return state.withLock { state in
      guard let outage = state.outages[error.url.origin], outage.isGone, !outage.hasScout else {
        return false
      }
      state.outages[error.url.origin]?.hasScout = true
      return true
    }
  }

  func endScout(of origin: String) { state.withLock { $0.outages[origin]?.hasScout = false } }
}

extension HostOutages: HopGate {
  func permit(to url: RemoteURL, isRedirected: Bool) -> HopPermit { permit(to: url, now: .now) }

  func accepted(_ url: RemoteURL) { recordAcceptance(by: url.origin, now: .now) }

  func answered(_ url: RemoteURL) { recordContact(with: url.origin, isListed: false) }
}

extension HostOutages.Outage {
  fileprivate func refusal(of url: RemoteURL) -> ExchangeError {
    ExchangeError(code: .gone, url: url, detail: error.reason)
  }
}
