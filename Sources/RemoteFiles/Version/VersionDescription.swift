internal import HTTPTransfer
internal import HTTPTransferCore
internal import MountStatus

/// The `.status` of one version.
struct VersionDescription {
  let version: VersionState
  let now: ContinuousClock.Instant
  /// How all files use the slots of a server, by its index among the file's servers.
  var originUse: (_ mirror: Int) -> OriginUse? = { _ in nil }

  /// Fills in the fields that only the version knows.
  func fill(_ status: inout FileStatus, isPartlyUncached: Bool) {
    let content = version.content
    status.length = content.length
    // Bytes that memory holds because the cache cannot store them are dropped when there is no
    // reader.
    status.cachedBytes = content.extents.byteCount - content.spilledByteCount
    status.connections = segments.count { $0.stage != .queued }
    status.waitingReads = version.parked.reads.map { read in
      WaitingRead(
        offset: read.range.lowerBound, byteCount: read.range.byteCount,
        waitedSeconds: (now - read.since) / .seconds(1), reason: reason(for: read).text)
    }
    status.state = fileState(isPartlyUncached: isPartlyUncached)
  }

  private var segments: SegmentList { version.segments }

  private func fileState(isPartlyUncached: Bool) -> FileState {
    if version.isComplete && !isPartlyUncached { return .complete }
    if version.isSuperseded { return .stale }
    if version.failures.permanent != nil { return .failed }
    let isFlowing = segments.contains {
      $0.isThrottled || $0.firstByteAt != nil && now - $0.lastProgressAt < WaitReason.silence
    }
    let policy = version.policy
    let isBackground =
      policy.isPrefetched && !policy.isPaused && !version.demand.hasReader(now: now)
    if isFlowing {
      return version.requests.isSingleStream
        ? .streaming : isBackground ? .prefetching : .downloading
    }
    if !version.parked.isEmpty { return .waiting }
    if isBackground { return .prefetching }
    if segments.isEmpty { return policy.isPaused ? .paused : .idle }
    return .downloading
  }

  /// Why `read` has not been answered yet.
  func reason(for read: ParkedRead) -> WaitReason {
    if let retryAt = version.requests.backoff.retryAt, now < retryAt {
      return .retrying(after: version.failures.last?.reason ?? "a failure", delay: retryAt - now)
    }
    let absent = version.absent(in: version.clamped(read.range))
    let hole = absent.first ?? read.range
    if version.pieces != nil, absent.isEmpty { return .hashing }
    if version.requests.isAwaitingLocation { return .locating }
    let isArrived = segments.contains { segment in
      let end = segment.isHeldByDisk ? segment.end : segment.enqueuedEnd
      return segment.storedEnd <= hole.lowerBound && hole.lowerBound < end
    }
    if isArrived { return .storing }
    guard
      let segment = segments.first(where: {
        // Bytes that have arrived may wait in memory for those after them.
        $0.storedEnd <= hole.lowerBound && hole.lowerBound < $0.end
      })
    else { return .requestLimit(count: segments.count, silence: silence) }
    return reason(of: segment, at: hole.lowerBound)
  }

  /// Why a request has not brought the byte at `offset` yet.
  private func reason(of segment: Segment, at offset: Int64) -> WaitReason {
    if let moment = segment.heldUntil { return .held(moment - now) }
    let time = now - segment.lastProgressAt
    if segment.firstByteAt == nil {
      switch segment.stage {
      case .queued: return .slot(slotUse(for: segment))
      case .connecting: return .connecting(time)
      case .sent: break
      }
    }
    let before = max(0, offset - segment.position)
    if segment.isThrottled { return .throttled(byteCountBefore: before) }
    let isHedged = segments.contains { $0.hedgeOf == segment.id }
    guard segment.firstByteAt != nil else { return .unanswered(time, isHedged: isHedged) }
    return time >= WaitReason.silence
      ? .silent(time, isHedged: isHedged) : .arriving(byteCountBefore: before)
  }

  /// How long no request of the version has brought anything.
  private var silence: Duration {
    segments.filter(\.isSent).map { now - $0.lastProgressAt }.min() ?? .zero
  }

  private func slotUse(for segment: Segment) -> WaitReason.SlotUse {
    WaitReason.SlotUse(
      originUse(segment.mirror),
      ownCount: segments.count { $0.stage != .queued && $0.mirror == segment.mirror }, now: now)
  }
}
