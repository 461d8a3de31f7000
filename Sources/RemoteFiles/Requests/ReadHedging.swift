internal import HTTPTransferCore

/// Decides which requests of a mounted file are hedged: stalled ones that a read waits for.
struct ReadHedging {
  /// How long a request may stall before it is abandoned.
  let timeout: Duration
  /// How many hedges may be sent.
  let allowance: Int
  let now: ContinuousClock.Instant

  /// The first hedge of a stalled request that one of `parked` waits for.
  ///
  /// After each hedge that is sent, call it again for the next.
  func next(
    of segments: SegmentList, over line: LineEstimate, for parked: ParkedReads,
    in content: ContentMap
  ) -> PlannedRequest? {
    let planner = HedgePlanner(
      roundTrip: line.measuredRoundTrip, timeout: timeout)
    // A stalled request does not use up the slot of its hedge.
    guard segments.count < line.requestLimit + 1 else { return nil }
    for read in parked.reads {
      // All bytes of a piece are needed.
      let wanted = content.needed(for: read.range)
      guard let hole = content.absent(in: wanted).first,
        let segment = segments.first(where: {
          $0.storedEnd <= hole.lowerBound && hole.lowerBound < $0.end
            && $0.position < wanted.upperBound
        }),
        let range = planner.hedge(
          of: segment, among: segments, wanted: hole.lowerBound..<wanted.upperBound,
          now: now)
      else { continue }
      return PlannedRequest(range: range, hedgeOf: segment.id)
    }
    return nil
  }
}
