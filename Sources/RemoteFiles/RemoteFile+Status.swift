internal import HTTPTransferCore
public import MountStatus
internal import Synchronization

extension RemoteFile {
  /// The complete length in bytes, nil while unknown.
  public var knownLength: Int64? { statusFacts.current?.length }

  /// The file's line in `.status`; memory only, never the network or the disk.
  ///
  /// - Parameters:
  ///   - passthrough: the versions whose cache files the kernel reads itself now.
  ///   - isNamed: whether its name and URL are wanted; sums do without.
  /// - Returns: what is known of the file.
  public func status(passthrough: Set<VersionID>, isNamed: Bool = true) -> FileStatus {
    let now = ContinuousClock.now
    let facts = statusFacts
    let source = source
    var status = FileStatus(
      name: isNamed ? source.path : "", url: isNamed ? source.url.redacted : "", state: .unknown)
    status.pinned = isPinned
    status.rateLimitBytesPerSecond = rateLimit.bytesPerSecond
    status.fetchedBytes = facts.statistics.fetchedByteCount
    status.damagedBytes = facts.statistics.damagedByteCount
    status.requests = facts.statistics.requestCount
    status.requestsLastMinute = Int64(
      facts.statistics.requests.count(second: MonotonicSeconds.sinceStart))
    status.retries = facts.statistics.retryCount
    status.lastError = facts.statistics.lastError
    status.mirrors = mirrors.flatMap { board in
      let servers = board.snapshot.mirrors
      return servers.count > 1 || servers.contains(where: \.isRefused)
        ? servers.map { $0.status(now: now) } : nil
    }
    guard let version = facts.current else {
      let wishes = wishes.withLock { $0 }
      status.state =
        facts.isAsking
        ? .waiting
        : wishes.isPaused
          ? .paused
          : wishes.isPrefetched
            ? .prefetching : facts.statistics.lastError == nil ? .unknown : .failed
      return status
    }
    status.passthrough = passthrough.contains(version.id)
    let speed = facts.statistics.speed.bytesPerSecond(now: now)
    status.speedBytesPerSecond = Int64(speed)
    status.validator = version.content.validatorDescription
    version.describe(now: now, in: &status)
    if facts.isDoubted {
      status.state = .stale
    } else if facts.statistics.isOffline, status.connections == 0, status.state != .complete {
      status.state = .offline
    }
    if let length = status.length, speed > 0, status.connections > 0 {
      status.etaSeconds = Double(max(0, length - status.cachedBytes)) / speed
    }
    return status
  }
}

extension MirrorSet.Mirror {
  /// The server's line in `.status`.
  fileprivate func status(now: ContinuousClock.Instant) -> MirrorStatus {
    var status = MirrorStatus(url: url.redacted, state: .untried)
    status.bytesPerSecond = rate.map { Int64($0) }
    switch standing {
    case .untried: break
    case .agreed: status.state = .agreed
    case .similar: status.state = .similar
    case .refused(let reason), .excluded(let reason):
      status.state = .refused
      status.reason = reason
      return status
    }
    if let restsUntil, now < restsUntil {
      status.state = .resting
      status.reason = failure
    }
    return status
  }
}

extension RemoteVersion {
  /// Fills in what only the version knows.
  func describe(now: ContinuousClock.Instant, in status: inout FileStatus) {
    let (state, isPartlyUncached) = self.state.withLock { ($0.version, $0.isPartlyUncached) }
    let spilledByteCount = state.spilledByteCount
    status.length = state.length
    // What memory holds, because the cache does not take it, goes when nobody reads it.
    status.cachedBytes = state.extents.byteCount - spilledByteCount
    status.connections = state.segments.count
    status.waitingReads = state.parked.reads.map { read in
      WaitingRead(
        offset: read.range.lowerBound, byteCount: read.range.byteCount,
        waitedSeconds: (now - read.since) / .seconds(1),
        reason: state.reason(for: read, now: now))
    }
    status.state = state.fileState(now: now, isPartlyUncached: isPartlyUncached)
  }
}

extension VersionState {
  /// How long a response may be silent before a read is said to wait for it, in seconds.
  private static let silence = Duration.seconds(1)

  fileprivate func fileState(now: ContinuousClock.Instant, isPartlyUncached: Bool) -> FileState {
    if isComplete && !isPartlyUncached { return .complete }
    if isSuperseded { return .stale }
    if permanentFailure != nil { return .failed }
    let isFlowing = segments.contains {
      $0.isThrottled || $0.firstByteAt != nil && now - $0.lastProgressAt < Self.silence
    }
    let isBackground = wishes.isPrefetched && !wishes.isPaused && !hasReader(now: now)
    if isFlowing { return isSequential ? .streaming : isBackground ? .prefetching : .downloading }
    if !parked.isEmpty { return .waiting }
    if isBackground { return .prefetching }
    if segments.isEmpty { return wishes.isPaused ? .paused : .idle }
    return .downloading
  }

  /// Why `read` is not answered yet, for people.
  fileprivate func reason(for read: ParkedRead, now: ContinuousClock.Instant) -> String {
    if let retryAt, now < retryAt {
      let delay = Int(((retryAt - now) / .milliseconds(1)).rounded())
      return "retrying in \(delay) ms after: \(lastFailure?.reason ?? "a failure")"
    }
    let hole = absent(in: clamped(read.range)).first ?? read.range
    if pieces != nil, absent(in: clamped(read.range)).isEmpty { return "its piece is being hashed" }
    if isAwaitingLocation { return "asking where the file is now" }
    let isArrived = segments.contains { segment in
      let end = segment.isHeldByDisk ? segment.end : segment.handedOverEnd
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
