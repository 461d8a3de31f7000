/// Decides which requests are hedged: if a request stalls for a while, its next bytes are requested
/// a second time, over another connection.
///
/// The first of the two that brings bytes continues; the other one is ended.
package struct HedgePlanner: Sendable {
  /// How long a request may bring no byte before it is hedged.
  package let delay: Duration

  /// How many round trips without a byte count as a stall.
  private static let roundTrips = 8.0
  private static let delays = 0.5...4.0
  /// The delay in seconds while the round trip time is unknown.
  private static let firstDelay = 2.0
  /// The most that a hedge requests beyond the bytes that a read waits for; the rest is planned
  /// once the hedge has won.
  private static let maximumHedge: Int64 = 4 << 20

  package init(delay: Duration) { self.delay = delay }

  /// - Parameters:
  ///   - roundTrip: the time from request to response in seconds; nil while unknown.
  ///   - timeout: how long a request may bring no byte before it is dropped.
  package init(roundTrip: Double?, timeout: Duration) {
    let seconds = roundTrip.map {
      min(max($0 * Self.roundTrips, Self.delays.lowerBound), Self.delays.upperBound)
    }
    delay = min(.seconds(seconds ?? Self.firstDelay), timeout / 2)
  }

  /// The bytes that a hedge of `segment` requests.
  ///
  /// - Parameters:
  ///   - segment: the request.
  ///   - segments: all requests for the file.
  ///   - wanted: the bytes that a read waits for, from the first absent one on; nil for the next
  ///     bytes.
  ///   - now: the time.
  /// - Returns: the bytes; nil if the segment gets no hedge.
  package func hedge<Segment: FetchSegment>(
    of segment: Segment, among segments: some Sequence<Segment>, wanted: ByteRange? = nil,
    now: ContinuousClock.Instant
  ) -> ByteRange? {
    guard segment.isHedgeable, now - segment.lastProgressAt >= delay, segment.hedgeOf == nil,
      !segments.contains(where: { $0.hedgeOf == segment.id })
    else { return nil }
    // The bytes of the segment that have arrived are stored when it ends.
    let start = max(wanted?.lowerBound ?? 0, segment.position)
    let end = min(segment.end, max(wanted?.upperBound ?? 0, start + Self.maximumHedge))
    // Empty: all bytes have arrived, or the rest is no longer wanted from there.
    return start < end ? start..<end : nil
  }
}

extension Array where Element: FetchSegment {
  /// Ends the rival of the segment at `index`, which has brought bytes.
  ///
  /// - Returns: the index of the rival, which the caller cancels; nil if there is none.
  @inlinable package mutating func endRival(ofSegmentAt index: Int) -> Int? {
    let (id, hedged) = (self[index].id, self[index].hedgeOf)
    // By index, because this runs for every piece of a body: a loop over the elements copies them.
    guard let rival = indices.first(where: { self[$0].id == hedged || self[$0].hedgeOf == id })
    else { return nil }
    self[index].hedgeOf = nil
    self[rival].hedgeOf = nil
    // Late bytes of the rival are not stored; the bytes beyond are planned again.
    self[rival].stop()
    return rival
  }
}
