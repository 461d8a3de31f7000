internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// The servers that cannot be reached, by their origins, and since when.
///
/// A server that has just gone may be restarting, so reads wait for it. Once it has been gone for
/// ``FileSettings/outageTimeout``, or for ``FileSettings/firstAnswerTimeout`` if it has never
/// answered in this mount, reads fail at once, and one request at a time looks for its return.
///
/// Lock order: `state` is a leaf.
final class HostOutages: Sendable {
  private struct Outage {
    var since: ContinuousClock.Instant
    /// The last failure.
    var seen: ContinuousClock.Instant
    var error: FileError
    /// When a request was last allowed, if the server counts as gone.
    var probedAt: ContinuousClock.Instant?
    var isGone = false
  }

  private struct State {
    var outages: [String: Outage] = [:]
    /// The origins that have answered in this mount.
    var known: Set<String> = []
  }

  private let state = Mutex(State())
  private let limit: Duration
  private let firstLimit: Duration

  /// The interval between two requests that look for the return of a server.
  static let probeInterval = Duration.seconds(1)

  /// The longest time between two failures of one outage: a resolver may take 20 s to fail.
  private static let memory = Duration.seconds(30)

  /// How many origins are remembered at most: redirects can lead to any number of them.
  static let maximumOriginCount = 4096

  /// - Parameters:
  ///   - limit: how long a server must be unreachable to count as gone.
  ///   - firstLimit: the same for a server that has never answered.
  init(limit: Duration, firstLimit: Duration) {
    self.limit = limit
    self.firstLimit = firstLimit
  }

  /// Takes note of a failed request.
  ///
  /// - Returns: whether the server that failed counts as gone, so that a retry would not help.
  func record(_ error: FileError, now: ContinuousClock.Instant) -> Bool {
    guard let origin = error.origin else { return false }
    guard error.isUnreachable else {
      if error.provesContact { recordContact(with: origin) }
      return false
    }
    return state.withLock { state in
      if state.outages[origin] == nil, state.outages.count >= Self.maximumOriginCount {
        state.outages = state.outages.filter { now - $0.value.seen < Self.memory }
        guard state.outages.count < Self.maximumOriginCount else { return false }
      }
      var outage = state.outages[origin] ?? Outage(since: now, seen: now, error: error)
      // The server may have been reachable while no request was sent.
      if !outage.isGone, now - outage.seen >= Self.memory { outage.since = now }
      outage.seen = now
      // Reads of a server that is gone fail with EIO, however its network behaves.
      outage.error = FileError(.unreachable, error.reason, origin: origin, isUnreachable: true)
      let limit = state.known.contains(origin) ? limit : firstLimit
      // Another attempt would come too late.
      let end = now + FileSettings.unreachableRetryInterval
      outage.isGone = outage.isGone || end - outage.since >= limit
      state.outages[origin] = outage
      return outage.isGone
    }
  }

  /// Takes note of an answer from `reached` to a request that was sent to `asked`.
  ///
  /// If the two differ, `asked` has redirected, and has answered too.
  func recordContact(asked: RemoteURL, reached: RemoteURL) {
    recordContact(with: reached.origin)
    if asked != reached { recordContact(with: asked.origin) }
  }

  /// Takes note of the end of a request that was sent to `asked`.
  ///
  /// If another origin has failed, `asked` has redirected there, and has answered.
  func recordEnd(_ completion: ExchangeCompletion, asked: RemoteURL) {
    if case .failed(let error) = completion, error.url.origin != asked.origin {
      recordContact(with: asked.origin)
    }
  }

  /// Takes note of an answer.
  func recordContact(with origin: String) {
    state.withLock { state in
      if !state.known.contains(origin), state.known.count < Self.maximumOriginCount {
        state.known.insert(origin)
      }
      if !state.outages.isEmpty { state.outages[origin] = nil }
    }
  }

  /// Whether `origin` has been unreachable for too long.
  func isGone(_ origin: String) -> Bool {
    state.withLock { $0.outages[origin]?.isGone == true }
  }

  /// Moves all outages by `delay`, during which the process was suspended.
  func postpone(by delay: Duration) {
    state.withLock { state in
      for origin in state.outages.keys {
        state.outages[origin]?.since += delay
        state.outages[origin]?.seen += delay
      }
    }
  }

  /// Why no request may be sent to `origin` now; nil if one may.
  func refusal(of origin: String, now: ContinuousClock.Instant) -> FileError? {
    state.withLock { state in
      guard let outage = state.outages[origin], outage.isGone else { return nil }
      if let probedAt = outage.probedAt, now - probedAt < Self.probeInterval {
        return outage.error
      }
      state.outages[origin]?.probedAt = now
      return nil
    }
  }
}
