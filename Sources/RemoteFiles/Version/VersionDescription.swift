internal import HTTPTransferCore
internal import MountStatus

/// The `.status` of one version.
struct VersionDescription {
  let version: VersionState
  let now: ContinuousClock.Instant

  /// Fills in the fields that only the version knows.
  func fill(_ status: inout FileStatus, isPartlyUncached: Bool) {
    let content = version.content
    status.length = content.length
    // Bytes that memory holds because the cache cannot store them are dropped when there is no
    // reader.
    status.cachedBytes = content.extents.byteCount - content.spilledByteCount
    status.connections = segments.count
    status.waitingReads = version.parked.reads.map { read in
      WaitingRead(
        offset: read.range.lowerBound, byteCount: read.range.byteCount,
        waitedSeconds: (now - read.since) / .seconds(1), reason: reason(for: read))
    }
    status.state = fileState(isPartlyUncached: isPartlyUncached)
  }

  private var segments: SegmentList { version.segments }

  /// How long a response may be silent before the status shows that a read waits for it.
  private static let silence = Duration.seconds(1)

  private func fileState(isPartlyUncached: Bool) -> FileState {
    if version.isComplete && !isPartlyUncached { return .complete }
    if version.isSuperseded { return .stale }
    if version.failures.permanent != nil { return .failed }
    let isFlowing = segments.contains {
      $0.isThrottled || $0.firstByteAt != nil && now - $0.lastProgressAt < Self.silence
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

  /// Why `read` has not been answered yet, for people.
  private func reason(for read: ParkedRead) -> String {
    if let retryAt = version.requests.backoff.retryAt, now < retryAt {
      let delay = Int(((retryAt - now) / .milliseconds(1)).rounded())
      return "retrying in \(delay) ms after: \(version.failures.last?.reason ?? "a failure")"
    }
    let absent = version.absent(in: version.clamped(read.range))
    let hole = absent.first ?? read.range
    if version.pieces != nil, absent.isEmpty { return "its piece is being hashed" }
    if version.requests.isAwaitingLocation { return "asking where the file is now" }
    let isArrived = segments.contains { segment in
      let end = segment.isHeldByDisk ? segment.end : segment.enqueuedEnd
      return segment.storedEnd <= hole.lowerBound && hole.lowerBound < end
    }
    if isArrived { return "waiting for the disk of the cache" }
    guard
      let segment = segments.first(where: {
        $0.position <= hole.lowerBound && hole.lowerBound < $0.end
      })
    else { return "waiting for a free connection" }
    if let moment = segment.heldUntil {
      let seconds = Int(((moment - now) / .seconds(1)).rounded(.up))
      return "the server has asked for no request for \(max(0, seconds)) s"
    }
    guard segment.isSent || segment.firstByteAt != nil else {
      return "waiting for a free connection"
    }
    let before = hole.lowerBound - segment.position
    if segment.isThrottled {
      guard before > 0 else { return "held back by the rate limit" }
      return "held back by the rate limit, \(before) bytes come before it"
    }
    let silent = Int((now - segment.lastProgressAt) / .seconds(1))
    let isHedged = segments.contains { $0.hedgeOf == segment.id }
    let also = isHedged ? "; asked again over another connection" : ""
    guard segment.firstByteAt != nil else {
      return silent < 1 ? "request sent" : "request sent, no response for \(silent) s\(also)"
    }
    if now - segment.lastProgressAt >= Self.silence {
      return "the server has sent nothing for \(silent) s\(also)"
    }
    return "downloading, \(before) bytes come before it"
  }
}
