internal import HTTPTransfer
internal import HTTPTransferCore

/// What reads are told that wait in vain, and which requests are given up.
extension VersionState {
  /// Fails every read that waits, and remembers that for a moment.
  mutating func failParked(
    _ error: FileError, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    lastFailure = error
    prefetchFailure = error
    let reads = parked.removeAll { _ in true }
    remember(reads.map(\.range), error, now: now)
    actions.failures += reads.map { ($0, error) }
    missLength(now: now, into: &actions)
    forgetBackoff(now: now, into: &actions)
  }

  /// Nobody waits any more for what was to be tried again: who comes next does not wait for it either,
  /// unless request after request has been in vain.
  private mutating func forgetBackoff(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    failureCount = 0
    retryAt = nil
    guard isFruitless else { return }
    retryAt = now + Self.fruitlessInterval
    actions.retryAfter = Self.fruitlessInterval
  }

  /// Whether so many requests in a row brought nothing that only few more are sent, slowly, however
  /// often somebody reads.
  var isFruitless: Bool { fruitlessCount >= Self.fruitlessLimit }

  private static let fruitlessLimit = 16
  private static let fruitlessInterval = Duration.seconds(1)
  /// How many requests are in flight then: one that hangs does not keep the others back.
  static let fruitlessRequestLimit = 4

  /// Takes out every read that waits: those who asked have gone.
  mutating func dropParked(into actions: inout VersionActions) {
    let error = FileError(.unmounted, "the file was closed")
    actions.failures += parked.removeAll { _ in true }.map { ($0, error) }
  }

  /// Another version has taken this one's place: what is present stays readable by its handles.
  mutating func supersede(into actions: inout VersionActions) {
    isSuperseded = true
    let error = FileError(.stale, "the remote file has changed since it was opened")
    actions.failures += parked.removeAll { _ in true }.map { ($0, error) }
    endLengthWaits(into: &actions)
    actions.cancels += segments.compactMap(\.transfer)
  }

  /// Another version has taken this one's place, of which nothing waits and nothing is in flight.
  mutating func supersedeUnused() { isSuperseded = true }

  /// The server has confirmed this version after all.
  mutating func reinstate() { isSuperseded = false }

  /// Every further read of absent bytes fails at once; where the bytes are known to be wrong, every read.
  mutating func failForGood(_ error: FileError) { permanentFailure = error }

  mutating func forgetPermanentFailure() { permanentFailure = nil }

  /// The process was suspended for `delay`: time during which no server could answer does not count.
  mutating func postpone(by delay: Duration) {
    parked.postpone(by: delay)
    for index in lengthWaits.indices { lengthWaits[index].deadline += delay }
    for index in segments.indices { segments[index].lastProgressAt += delay }
    unreachableSince = unreachableSince.map { $0 + delay }
  }

  /// Fails the reads whose time is up, gives up requests that bring nothing, and before that sends
  /// others beside them, `hedgeAllowance` at most.
  ///
  /// `sparePatience` says how long a request to a server may bring nothing while a read waits for it; nil
  /// where no other server can be asked.
  mutating func expire(
    now: ContinuousClock.Instant, settings: FileSettings, hedgeAllowance: Int = 0,
    sparePatience: (Int) -> Duration? = { _ in nil }, into actions: inout VersionActions
  ) {
    let late = parked.removeAll { $0.deadline <= now }
    if !late.isEmpty {
      let isHeldByDisk = segments.contains(where: \.isHeldByDisk)
      let reason =
        isHeldByDisk
        ? "the disk of the cache does not take what has arrived"
        : isThrottled(now: now)
          ? "the rate limit holds them back"
          : lastFailure.map { "last failure: \($0.reason)" } ?? "the server sends nothing"
      // Not where the time was spent on something else than waiting for a server.
      let kept = lastFailure.map(\.code).flatMap {
        $0 == .invalidResponse || $0 == .unsigned ? $0 : nil
      }
      let error = FileError(
        kept ?? .timedOut,
        "no bytes within \(settings.readTimeout): \(reason)")
      remember(late.map(\.range), error, now: now)
      actions.failures += late.map { ($0, error) }
      if parked.isEmpty { forgetBackoff(now: now, into: &actions) }
    }
    failReadsOutOfReach(now: now, into: &actions)
    missLength(now: now, where: { $0.deadline <= now }, into: &actions)
    let patience = settings.responsePatience
    planHedges(now: now, patience: patience, allowance: hedgeAllowance, into: &actions)
    for segment in segments {
      if isAbandoned(segment, now: now), let transfer = segment.transfer {
        actions.cancels.append(transfer)
      }
      var patience = patience
      if segment.isWaitedFor, let spare = sparePatience(segment.mirror) {
        patience = min(patience, spare)
      }
      guard segment.isSent || segment.firstByteAt != nil, !segment.isHeldByDisk,
        !segment.isThrottled, segment.awaitsReaderSince == nil
      else { continue }
      guard now - segment.lastProgressAt >= patience else { continue }
      guard let transfer = segment.transfer else { continue }
      let error = FileError(.timedOut, "the server stopped sending for \(patience)")
      lastFailure = error
      actions.silentMirrors.append((segment.mirror, error))
      actions.cancels.append(transfer)
    }
  }

  /// Fails the reads that the stream of the whole cannot come to before their deadline, not even
  /// twice as fast: to wait would only take time.
  private mutating func failReadsOutOfReach(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    guard length != nil, let stream = segments.first(where: \.isWhole),
      let firstByteAt = stream.firstByteAt, now - firstByteAt >= Self.paceInterval,
      let rate = stream.rate(now: now)
    else { return }
    let far = parked.removeAll { read in
      let reach = 2 * rate * ((read.deadline - now) / .seconds(1))
      return Double(read.range.lowerBound - stream.position) > reach
    }
    guard !far.isEmpty else { return }
    let error = FileError(
      .unavailable,
      "the server gives no ranges, and what comes before would take longer than the read timeout")
    lastFailure = error
    remember(far.map(\.range), error, now: now)
    actions.failures += far.map { ($0, error) }
  }

  /// How long a stream runs before its pace is believed.
  private static let paceInterval = Duration.seconds(1)

  private mutating func remember(
    _ ranges: [ByteRange], _ error: FileError, now: ContinuousClock.Instant
  ) {
    recentFailures.removeAll { $0.until <= now }
    let until = now + FileSettings.failureMemory
    // Neighbours are one entry: a storm of failed reads must not become a long list.
    let merged = ExtentSet(ranges).extents.prefix(256)
    recentFailures += merged.map { RecentFailure(range: $0, error: error, until: until) }
  }

  /// Whether nothing is in flight, and no open waits.
  var isUnused: Bool { segments.isEmpty && lengthWaits.isEmpty }

  /// Whether time alone can change something here.
  var needsWatch: Bool { !parked.isEmpty || !segments.isEmpty || !lengthWaits.isEmpty }
}
