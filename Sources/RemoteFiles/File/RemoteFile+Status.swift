internal import HTTPTransfer
internal import HTTPTransferCore
package import MountStatus
internal import Synchronization

extension RemoteFile {
  /// The complete length in bytes, nil while unknown.
  package var knownLength: Int64? { statusFacts.current?.length }

  /// The file's line in `.status`; uses memory only, never the network or the disk.
  ///
  /// - Parameters:
  ///   - passthrough: the versions whose cache files the kernel reads directly now.
  ///   - isNamed: whether its name and URL are wanted; sums do without.
  /// - Returns: the status of the file.
  package func status(passthrough: Set<VersionID>, isNamed: Bool = true) -> FileStatus {
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
    status.waitingOpen = waitingOpen(facts.probe, now: now)
    guard let version = facts.current else {
      let policy = context.policy.withLock { $0 }
      status.state =
        status.waitingOpen != nil
        ? .waiting
        : policy.isPaused
          ? .paused
          : policy.isPrefetched
            ? .prefetching : facts.statistics.lastError == nil ? .unknown : .failed
      return status
    }
    status.passthrough = passthrough.contains(version.id)
    status.validator = version.content.validatorDescription
    version.describe(now: now, in: &status)
    // The mean falls slowly: without a connection no bytes arrive.
    let speed = status.connections > 0 ? facts.statistics.speed.bytesPerSecond(now: now) : 0
    status.speedBytesPerSecond = Int64(speed)
    if facts.isDoubted {
      status.state = .stale
    } else if facts.statistics.isOffline, status.connections == 0, status.state != .complete {
      status.state = .offline
    }
    if let length = status.length, speed > 0 {
      status.etaSeconds = Double(max(0, length - status.cachedBytes)) / speed
    }
    return status
  }
}

extension RemoteFile {
  /// The look-up or open that has waited longest for the answer to a question to the server.
  private func waitingOpen(_ probe: FileProbe, now: ContinuousClock.Instant) -> WaitingOpen? {
    let wait = probe.wait(now: now) {
      let origin = context.servers.placeOrigin(ofMirror: probe.mirror ?? 0)
      return WaitReason.SlotUse(
        environment.client.use(of: origin), ownCount: 0, now: now)
    }
    return wait.map {
      WaitingOpen(waitedSeconds: $0.time / .seconds(1), reason: $0.reason.text)
    }
  }
}

extension MirrorSet.Mirror {
  /// The server's line in `.status`.
  fileprivate func status(now: ContinuousClock.Instant) -> MirrorStatus {
    var status = MirrorStatus(url: url.redacted, state: .untested)
    status.bytesPerSecond = rate.map { Int64($0) }
    switch standing {
    case .untested: break
    case .verified: status.state = .verified
    case .unproven: status.state = .unproven
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
  /// Fills in the fields that only the version knows.
  func describe(now: ContinuousClock.Instant, in status: inout FileStatus) {
    let (version, isPartlyUncached) = state.withLock { ($0.version, $0.isPartlyUncached) }
    VersionDescription(version: version, now: now) { [self] mirror in
      environment.client.use(of: file.servers.placeOrigin(ofMirror: mirror))
    }.fill(&status, isPartlyUncached: isPartlyUncached)
  }
}
