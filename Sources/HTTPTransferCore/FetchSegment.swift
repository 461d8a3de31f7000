/// A request in flight for a part of a file.
package protocol FetchSegment {
  associatedtype ID: Equatable
  var id: ID { get }
  /// The first byte asked for.
  var start: Int64 { get }
  /// The next byte to arrive.
  var position: Int64 { get }
  /// Where it is to end; moved down when the rest is fetched otherwise.
  var end: Int64 { get }
  var firstByteAt: ContinuousClock.Instant? { get }
  /// When it was asked for, or last brought more than a trickle.
  var lastProgressAt: ContinuousClock.Instant { get }
  /// The request whose next bytes it asks for a second time; nil if it is no hedge, or once either
  /// has brought something.
  var hedgeOf: ID? { get set }
  /// Whether nothing but its server delays its next byte, and any server may bring that.
  var isHedgeable: Bool { get }
  /// Nothing more is wanted of it: it ends where it has come to.
  mutating func stop()
}

extension FetchSegment {
  /// Bytes per second since the first byte, nil until it means something.
  package func rate(now: ContinuousClock.Instant) -> Double? {
    guard let firstByteAt else { return nil }
    let seconds = (now - firstByteAt) / .seconds(1)
    guard seconds > FetchConstants.leastRateInterval else { return nil }
    return Double(position - start) / seconds
  }
}
