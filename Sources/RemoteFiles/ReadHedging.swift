internal import HTTPTransferCore

/// Which requests of a mounted file are hedged: those that a read waits for in vain.
struct ReadHedging {
  /// How long a request may bring nothing before it is given up.
  let patience: Duration
  /// How many hedges may be sent.
  let allowance: Int
  let now: ContinuousClock.Instant

  /// The first hedge of a request that one of `parked` waits for in vain; after each one that is sent, ask
  /// again for the next.
  func next(
    of segments: SegmentList, over line: LineEstimate, for parked: ParkedReads,
    in content: ContentMap
  ) -> PlannedRequest? {
    let planner = HedgePlanner(
      roundTrip: line.measuredRoundTrip, patience: patience)
    // A request that brings nothing does not take the place of its hedge.
    guard segments.count < line.requestLimit + 1 else { return nil }
    for read in parked.reads {
      // Of a piece every byte is waited for.
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
