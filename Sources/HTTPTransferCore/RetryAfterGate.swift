/// The origins that asked for no request before a given moment (`Retry-After`, RFC 9110 §10.2.3).
///
/// A value without I/O: its owner asks it before it sends a request.
package struct RetryAfterGate: Sendable {
  private var openings: [String: ContinuousClock.Instant] = [:]

  /// A gate that is open for all origins.
  package init() {}

  /// Records an answer that asks for a delay; a later moment on record stays.
  ///
  /// - Parameters:
  ///   - origin: the origin of the answer, in the form of ``RemoteURL/normalizedOrigin``.
  ///   - moment: when the next request may be sent.
  ///   - now: the present moment.
  package mutating func close(
    _ origin: String, until moment: ContinuousClock.Instant, now: ContinuousClock.Instant
  ) {
    // Expired entries are useless; the table holds only closed origins.
    openings = openings.filter { $0.value > now }
    guard moment > now else { return }
    openings[origin] = max(moment, openings[origin] ?? moment)
  }

  /// When the next request may be sent to `origin`; nil if it may be sent now.
  package func opening(of origin: String, now: ContinuousClock.Instant) -> ContinuousClock.Instant?
  {
    guard let moment = openings[origin], moment > now else { return nil }
    return moment
  }
}
