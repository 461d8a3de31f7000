/// Decides which requests are hedged: if a request brings nothing for a while, its next bytes are
/// asked for once more, over another connection.
///
/// Whichever of the two brings something first continues, and the other one is ended.
package struct HedgePlanner: Sendable {
  /// How long a request may bring nothing before it is hedged.
  package let delay: Duration

  /// How many round trips without a byte are no accident.
  private static let roundTrips = 8.0
  private static let delays = 0.5...4.0
  /// The delay, in seconds, while no round trip is known.
  private static let firstDelay = 2.0
  /// The most that a hedge asks for beyond what a read waits for: the rest is planned when the hedge
  /// has won.
  private static let greatestHedge: Int64 = 4 << 20

  package init(delay: Duration) { self.delay = delay }

  /// - Parameters:
  ///   - roundTrip: the time from request to response in seconds, nil while unknown.
  ///   - patience: how long a request may bring nothing before it is given up.
  package init(roundTrip: Double?, patience: Duration) {
    let seconds = roundTrip.map {
      min(max($0 * Self.roundTrips, Self.delays.lowerBound), Self.delays.upperBound)
    }
    delay = min(.seconds(seconds ?? Self.firstDelay), patience / 2)
  }

  /// What a hedge of `segment` asks for.
  ///
  /// - Parameters:
  ///   - segment: the request.
  ///   - segments: all requests for the file.
  ///   - wanted: what is waited for, from the first absent byte on; nil for the next bytes.
  ///   - now: the time.
  /// - Returns: the bytes; nil if it gets no hedge.
  package func hedge<Segment: FetchSegment>(
    of segment: Segment, among segments: some Sequence<Segment>, wanted: ByteRange? = nil,
    now: ContinuousClock.Instant
  ) -> ByteRange? {
    guard segment.isHedgeable, now - segment.lastProgressAt >= delay, segment.hedgeOf == nil,
      !segments.contains(where: { $0.hedgeOf == segment.id })
    else { return nil }
    // What has arrived of it is stored when it ends.
    let start = max(wanted?.lowerBound ?? 0, segment.position)
    let end = min(segment.end, max(wanted?.upperBound ?? 0, start + Self.greatestHedge))
    // All of it has arrived, or the rest is not wanted from there any more.
    return start < end ? start..<end : nil
  }
}

extension Array where Element: FetchSegment {
  /// The segment at `index` has brought something: the request that was to bring the same, if there
  /// is one, need not any more.
  ///
  /// - Returns: the place of that one, which is to be cancelled.
  package mutating func endRival(ofSegmentAt index: Int) -> Int? {
    let (id, hedged) = (self[index].id, self[index].hedgeOf)
    guard let rival = firstIndex(where: { $0.id == hedged || $0.hedgeOf == id }) else { return nil }
    self[index].hedgeOf = nil
    self[rival].hedgeOf = nil
    // What comes of it all the same is not stored; what it was to bring beyond is planned again.
    self[rival].stop()
    return rival
  }
}
