/// A request in flight for a part of a file.
@usableFromInline package protocol FetchSegment {
  associatedtype ID: Equatable
  var id: ID { get }
  /// The first byte requested.
  var start: Int64 { get }
  /// The next byte to arrive.
  var position: Int64 { get }
  /// The end of the request; it moves down when another request fetches the rest.
  var end: Int64 { get }
  var firstByteAt: ContinuousClock.Instant? { get }
  /// When the request was sent, or last brought more than a trickle.
  var lastProgressAt: ContinuousClock.Instant { get }
  /// The request that this one hedges, by requesting the same next bytes.
  ///
  /// Nil if this is no hedge, or once either of the two has brought bytes.
  var hedgeOf: ID? { get set }
  /// Whether only the server delays the next byte, and any server may bring that byte.
  var isHedgeable: Bool { get }
  /// Stops the request at its current position: no more bytes are wanted.
  mutating func stop()
}

extension FetchSegment {
  /// Bytes per second since the first byte; nil until the rate is meaningful.
  package func rate(now: ContinuousClock.Instant) -> Double? {
    guard let firstByteAt else { return nil }
    let seconds = (now - firstByteAt) / .seconds(1)
    guard seconds > FetchConstants.minimumRateInterval else { return nil }
    return Double(position - start) / seconds
  }
}
