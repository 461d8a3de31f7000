internal import HTTPTransferCore
internal import Synchronization

/// The servers that cannot be reached, by their origins, and since when.
///
/// A server that has just gone may be restarting, so reads wait for it. Once it has been gone for
/// ``FileSettings/outageTimeout``, reads fail at once, and one request at a time looks for its
/// return.
///
/// Lock order: `outages` is a leaf.
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

  private let outages = Mutex<[String: Outage]>([:])
  private let limit: Duration

  /// The interval between two requests that look for the return of a server.
  static let probeInterval = Duration.seconds(1)

  /// The longest time between two failures of one outage: a resolver may take 20 s to fail.
  private static let memory = Duration.seconds(30)

  /// - Parameter limit: how long a server must be unreachable to count as gone.
  init(limit: Duration) { self.limit = limit }

  /// Takes note of a failed request.
  ///
  /// - Returns: whether the server counts as gone, so that a retry would not help.
  func record(_ error: FileError, of origin: String, now: ContinuousClock.Instant) -> Bool {
    guard error.code == .unreachable || error.code == .disconnected else {
      if error.provesContact { recordContact(with: origin) }
      return false
    }
    return outages.withLock { outages in
      var outage = outages[origin] ?? Outage(since: now, seen: now, error: error)
      // The server may have been reachable while no request was sent.
      if !outage.isGone, now - outage.seen >= Self.memory { outage.since = now }
      outage.seen = now
      outage.error = error
      outage.isGone = outage.isGone || now - outage.since >= limit
      outages[origin] = outage
      return outage.isGone
    }
  }

  /// Takes note of an answer.
  func recordContact(with origin: String) {
    outages.withLock { if !$0.isEmpty { $0[origin] = nil } }
  }

  /// Why no request may be sent to `origin` now; nil if one may.
  func refusal(of origin: String, now: ContinuousClock.Instant) -> FileError? {
    outages.withLock { outages in
      guard let outage = outages[origin], outage.isGone else { return nil }
      if let probedAt = outage.probedAt, now - probedAt < Self.probeInterval {
        return outage.error
      }
      outages[origin]?.probedAt = now
      return nil
    }
  }
}
