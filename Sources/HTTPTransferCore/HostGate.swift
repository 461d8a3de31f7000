/// Which origins have asked for no request before a moment (`Retry-After`, RFC 9110 §10.2.3).
///
/// A value without I/O: its owner asks it before it sends a request.
package struct HostGate: Sendable {
  private var openings: [String: ContinuousClock.Instant] = [:]

  /// A gate that is open for everybody.
  package init() {}

  /// Takes note of an answer that asks for a delay; a moment that is already later stays.
  ///
  /// - Parameters:
  ///   - origin: who has answered, as ``RemoteURL/normalizedOrigin`` has it.
  ///   - moment: when the next request may be sent.
  ///   - now: the present moment.
  package mutating func close(
    _ origin: String, until moment: ContinuousClock.Instant, now: ContinuousClock.Instant
  ) {
    // What has passed says nothing any more; so the table holds only who waits.
    openings = openings.filter { $0.value > now }
    guard moment > now else { return }
    openings[origin] = max(moment, openings[origin] ?? moment)
  }

  /// When the next request may be sent to `origin`; nil for now.
  package func opening(of origin: String, now: ContinuousClock.Instant) -> ContinuousClock.Instant?
  {
    guard let moment = openings[origin], moment > now else { return nil }
    return moment
  }
}
