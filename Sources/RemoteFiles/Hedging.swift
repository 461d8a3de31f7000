internal import HTTPTransfer
internal import HTTPTransferCore

/// Which requests of a mounted file are hedged: those that a read waits for in vain.
extension VersionState {
  /// Hedges the requests that reads wait for in vain, `allowance` of them at most; `patience` is how
  /// long one may bring nothing before it is given up.
  mutating func planHedges(
    now: ContinuousClock.Instant, patience: Duration, allowance: Int,
    into actions: inout VersionActions
  ) {
    guard !isSequential, !isSuperseded, !isAwaitingLocation, permanentFailure == nil,
      retryAt.map({ $0 <= now }) ?? true
    else { return }
    let planner = HedgePlanner(roundTrip: measuredRoundTrip, patience: patience)
    var allowance = allowance
    for read in parked.reads {
      guard allowance > 0, hasPlaceForHedge else { return }
      // Of a piece every byte is waited for.
      let wanted = pieces?.wholePieces(around: clamped(read.range)) ?? clamped(read.range)
      guard let hole = absent(in: wanted).first,
        let segment = segments.first(where: {
          $0.storedEnd <= hole.lowerBound && hole.lowerBound < $0.end
            && $0.position < wanted.upperBound
        }),
        let range = planner.hedge(
          of: segment, among: segments, wanted: hole.lowerBound..<wanted.upperBound, now: now)
      else { continue }
      actions.starts.append(
        addSegment(range: range, isWhole: false, hedgeOf: segment.id, now: now))
      allowance -= 1
    }
  }

  /// The request `id` has failed.
  ///
  /// - Returns: whether it was a hedge beside a request that goes on, so that nobody need know.
  mutating func dropFailedHedge(_ id: SegmentID) -> Bool {
    guard let hedged = segments.first(where: { $0.id == id })?.hedgeOf,
      segments.contains(where: { $0.id == hedged })
    else { return false }
    removeSegment(id)
    return true
  }
}
