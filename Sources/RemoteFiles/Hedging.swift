internal import HTTPTransfer
internal import HTTPTransferCore

/// Hedges: where a read waits for a request that brings nothing, its bytes are asked for once more, over
/// another connection.
///
/// Whichever of the two brings something first goes on, and the other one is ended.
extension VersionState {
  /// The most that a hedge asks for: what comes behind is planned when the hedge has won.
  private static let greatestHedge: Int64 = 4 << 20

  /// How many round trips without a byte are no accident.
  private static let roundTripsBeforeHedge = 8.0
  private static let hedgeDelays = 0.5...4.0
  /// Where no round trip is known.
  private static let firstHedgeDelay = 2.0

  /// How long a request may bring nothing before it is hedged; half of the time after which it is given up,
  /// at most.
  private func hedgeDelay(patience: Duration) -> Duration {
    let seconds =
      measuredRoundTrip.map {
        min(
          max($0 * Self.roundTripsBeforeHedge, Self.hedgeDelays.lowerBound),
          Self.hedgeDelays.upperBound)
      } ?? Self.firstHedgeDelay
    return min(.seconds(seconds), patience / 2)
  }

  /// Hedges the requests that reads wait for in vain, `allowance` of them at most; `patience` is how long one
  /// may bring nothing before it is given up.
  mutating func planHedges(
    now: ContinuousClock.Instant, patience: Duration, allowance: Int,
    into actions: inout VersionActions
  ) {
    guard !isSequential, !isSuperseded, !isAwaitingLocation, permanentFailure == nil,
      retryAt.map({ $0 <= now }) ?? true
    else { return }
    let delay = hedgeDelay(patience: patience)
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
        segment.isSent, segment.heldUntil == nil, !segment.isWhole, !isHedged(segment),
        !segment.isThrottled,
        // One server alone is to bring it.
        segment.suspectPiece == nil, !segment.isHeldByDisk,
        now - segment.lastProgressAt >= delay
      else { continue }
      // What has arrived of it is stored when it ends.
      let start = max(hole.lowerBound, segment.position)
      let end = min(segment.end, max(wanted.upperBound, start + Self.greatestHedge))
      // All of it has arrived, or the rest is not wanted from there any more.
      guard start < end else { continue }
      actions.starts.append(
        addSegment(range: start..<end, isWhole: false, hedgeOf: segment.id, now: now))
      allowance -= 1
    }
  }

  private func isHedged(_ segment: Segment) -> Bool {
    segment.hedgeOf != nil || segments.contains { $0.hedgeOf == segment.id }
  }

  /// The segment at `index` has brought something: the request that was to bring the same, if there is one,
  /// need not any more.
  ///
  /// - Returns: that one, to be cancelled.
  mutating func endRival(ofSegmentAt index: Int) -> ExchangeID? {
    let id = segments[index].id
    let hedged = segments[index].hedgeOf
    guard
      let rival = segments.firstIndex(where: { $0.id == hedged || $0.hedgeOf == id })
    else { return nil }
    segments[index].hedgeOf = nil
    segments[rival].hedgeOf = nil
    // What comes of it all the same is not stored, and what it was to bring beyond is planned anew.
    segments[rival].end = segments[rival].position
    return segments[rival].transfer
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
