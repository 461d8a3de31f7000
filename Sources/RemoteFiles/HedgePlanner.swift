internal import HTTPTransferCore

/// Hedges: where a read waits for a request that brings nothing, its bytes are asked for once more, over
/// another connection.
///
/// Whichever of the two brings something first goes on, and the other one is ended.
struct HedgePlanner {
  /// The most that a hedge asks for: what comes behind is planned when the hedge has won.
  private static let greatestHedge: Int64 = 4 << 20

  /// How many round trips without a byte are no accident.
  private static let roundTripsBeforeHedge = 8.0
  private static let hedgeDelays = 0.5...4.0
  /// Where no round trip is known.
  private static let firstHedgeDelay = 2.0

  /// How long a request may bring nothing before it is given up.
  let patience: Duration
  /// How many hedges may be sent.
  let allowance: Int
  let now: ContinuousClock.Instant

  /// How long a request may bring nothing before it is hedged; half of the time after which it is given up,
  /// at most.
  private func delay(_ line: LineEstimate) -> Duration {
    let seconds =
      line.measuredRoundTrip.map {
        min(
          max($0 * Self.roundTripsBeforeHedge, Self.hedgeDelays.lowerBound),
          Self.hedgeDelays.upperBound)
      } ?? Self.firstHedgeDelay
    return min(.seconds(seconds), patience / 2)
  }

  /// The first hedge of a request that a read of `version` waits for in vain; after each one that is sent,
  /// ask again for the next.
  func next(for version: VersionState) -> PlannedRequest? {
    let delay = delay(version.line)
    // A request that brings nothing does not take the place of its hedge.
    guard version.segments.count < version.line.requestLimit + 1 else { return nil }
    for read in version.parked.reads {
      // Of a piece every byte is waited for.
      let wanted = version.content.needed(for: read.range)
      guard let hole = version.content.absent(in: wanted).first,
        let segment = version.segments.first(where: {
          $0.storedEnd <= hole.lowerBound && hole.lowerBound < $0.end
            && $0.position < wanted.upperBound
        }),
        isHedgeable(segment, among: version.segments, after: delay)
      else { continue }
      // What has arrived of it is stored when it ends.
      let start = max(hole.lowerBound, segment.position)
      let end = min(segment.end, max(wanted.upperBound, start + Self.greatestHedge))
      // Else all of it has arrived, or the rest is not wanted from there any more.
      if start < end { return PlannedRequest(range: start..<end, hedgeOf: segment.id) }
    }
    return nil
  }

  private func isHedgeable(
    _ segment: Segment, among segments: SegmentList, after delay: Duration
  ) -> Bool {
    segment.isSent && segment.heldUntil == nil && !segment.isWhole && !segments.isHedged(segment)
      && !segment.isThrottled
      // One server alone is to bring it.
      && segment.suspect == nil && !segment.isHeldByDisk && now - segment.lastProgressAt >= delay
  }
}
