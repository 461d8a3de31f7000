internal import HTTPTransfer
internal import HTTPTransferCore

/// The requests for bytes of one version that are in flight, and what they have shown of its servers.
struct VersionRequests: Sendable {
  private(set) var segments = SegmentList()
  private(set) var line: LineEstimate
  private(set) var backoff = Backoff()
  private(set) var pacing = StreamPacing()
  /// Whether the server has ignored a range, so that only the whole can be asked for.
  private(set) var isSequential = false
  /// Whether the source is being asked where the bytes are: no request is sent meanwhile.
  private(set) var isAwaitingLocation = false
  /// How often in a row a range was answered with the whole, though ranges have worked.
  private var ignoredRangeCount = 0

  /// - Parameters:
  ///   - connections: the connections for read-ahead, where the user has set them.
  ///   - learned: how many have paid at the host before.
  init(connections: Int?, learned: Int?) {
    line = LineEstimate(connections: connections, learned: learned)
  }

  // MARK: Facts

  /// Whether nothing but the plan decides if a request is sent.
  func maySend(now: ContinuousClock.Instant) -> Bool {
    !isAwaitingLocation && !backoff.isPending(now: now)
  }

  /// Whether it is a rate limit that keeps bytes from coming.
  func isThrottled(now: ContinuousClock.Instant) -> Bool {
    line.wasThrottled(now: now) || segments.contains(where: \.isThrottled)
  }

  /// How many bytes are still to come for readers, of ranges that were asked for.
  var awaitedByteCount: Int64 {
    segments.reduce(0) { sum, segment in
      segment.isWhole || segment.isPrefetch
        ? sum : sum + max(0, segment.end - segment.storedEnd)
    }
  }

  // MARK: Entries

  /// Enters a request that is about to be sent, or has been; as it is then: whether somebody waits for it
  /// decides its turn at the server.
  mutating func add(
    _ request: PlannedRequest, for demand: VersionDemand, in content: ContentMap,
    now: ContinuousClock.Instant
  ) -> Segment {
    var segment = Segment(request, id: segments.nextID(), length: content.length, now: now)
    segment.wakeAt = demand.nextWake(by: segment, in: content)
    segments.append(segment)
    return segment
  }

  /// Enters a request whose head has come from the server `mirror`.
  mutating func adopt(
    _ request: PlannedRequest, as transfer: ExchangeID, by mirror: Int,
    for demand: VersionDemand, in content: ContentMap, now: ContinuousClock.Instant
  ) -> SegmentID {
    let id = add(request, for: demand, in: content, now: now).id
    for event in [.sentTo(mirror: mirror), .sentAs(transfer), .sent] as [SegmentEvent] {
      _ = note(event, of: id, now: now)
    }
    return id
  }

  /// Does what the planner says.
  mutating func apply(
    _ plan: FetchPlanner.Plan, isPrefetch: Bool, for demand: VersionDemand,
    in content: ContentMap, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    segments.apply(plan.cuts)
    for range in plan.starts {
      let request = PlannedRequest(range: range, isPrefetch: isPrefetch)
      actions.starts.append(add(request, for: demand, in: content, now: now))
    }
  }

  /// Sends other requests beside those that a read waits for in vain.
  mutating func sendHedges(
    _ hedging: ReadHedging, for demand: VersionDemand, in content: ContentMap,
    into actions: inout VersionActions
  ) {
    for _ in 0..<hedging.allowance {
      guard
        let request = hedging.next(of: segments, over: line, for: demand.parked, in: content)
      else { return }
      actions.starts.append(add(request, for: demand, in: content, now: hedging.now))
    }
  }

  /// A request has ended, well or not.
  mutating func remove(_ id: SegmentID) { segments.remove(id) }

  /// A request has ended by its server's doing: takes it out.
  ///
  /// - Returns: it, if it has brought next to nothing.
  mutating func removeFruitless(_ id: SegmentID) -> Segment? {
    segments.remove(id).flatMap { $0.isFruitful ? nil : $0 }
  }

  /// The request `id` has failed: where it was a hedge beside a request that goes on, nobody need know.
  mutating func dropFailedHedge(_ id: SegmentID) -> Bool { segments.dropFailedHedge(id) }

  /// Ends the requests that no read waits for, or those of them that prefetch.
  ///
  /// It leaves a stream of the whole that somebody may be reading: that would have to begin again.
  ///
  /// - Returns: the exchanges to cancel.
  mutating func endUnawaited(
    onlyPrefetch: Bool, by demand: VersionDemand, in content: ContentMap,
    now: ContinuousClock.Instant
  ) -> [ExchangeID] {
    let hasReader = demand.hasReader(now: now)
    let wanted = demand.parked.reads.map { content.clamped($0.range) }
    return end { segment in
      guard segment.isPrefetch || !onlyPrefetch, !(segment.isWhole && hasReader) else {
        return false
      }
      let missing = segment.storedEnd..<max(segment.storedEnd, segment.end)
      return !wanted.contains { $0.overlaps(missing) }
    }
  }

  /// Ends the requests of which `predicate` holds.
  ///
  /// - Returns: the exchanges to cancel.
  mutating func end(where predicate: (Segment) -> Bool) -> [ExchangeID] {
    segments.end(where: predicate)
  }

  // MARK: Events

  /// Something has become of the request of a segment.
  ///
  /// - Returns: whether that is still in flight.
  mutating func note(_ event: SegmentEvent, of id: SegmentID, now: ContinuousClock.Instant) -> Bool
  {
    if case .throttled = event { line.noteThrottled(now: now) }
    return segments.change(id) { $0.note(event, now: now) } != nil
  }

  /// A request on a reused connection took so long to be answered, in seconds.
  mutating func noteRoundTrip(_ seconds: Double) { line.noteRoundTrip(seconds) }

  /// The user has set another number of connections.
  mutating func follow(connections: Int?) { line.follow(connections: connections) }

  /// The complete length has become known: what is to come of bodies ends there.
  mutating func learn(length: Int64, for demand: VersionDemand, in content: ContentMap) {
    segments.changeAll { $0.learn(length: length) }
    for segment in segments { updateWake(of: segment.id, for: demand, in: content) }
  }

  mutating func postpone(by delay: Duration) {
    segments.changeAll { $0.postpone(by: delay) }
    backoff.postpone(by: delay)
  }

  /// Bytes before those that a segment is to bring have arrived up to `position`.
  mutating func skipped(
    _ id: SegmentID, to position: Int64, for demand: VersionDemand, in content: ContentMap,
    now: ContinuousClock.Instant
  ) {
    // Who has waited may have gone.
    updateWake(of: id, for: demand, in: content)
    segments.change(id) { if $0.isWaitedFor { $0.noteProgress(to: position, now: now) } }
  }

  /// What a request has brought up to `end` has been dealt with; `added` bytes of it were absent.
  ///
  /// - Returns: its segment, where it is in flight.
  mutating func stored(
    _ id: SegmentID, to end: Int64, added: Int64, now: ContinuousClock.Instant
  ) -> Segment? {
    backoff.noteStored(now: now)
    segments.change(id) { $0.stored(to: end, added: added) }
    guard let segment = segments[id] else { return nil }
    // Otherwise a server that sends a few bytes for each request, or the same bytes again and again,
    // could keep us asking for ever.
    if added > 0, segment.isFruitful { backoff.noteFruitful() }
    line.noteRate(of: segment, now: now)
    return segment
  }

  /// So many new bytes were stored; `idle` is how long the network thread has waited so far.
  mutating func noteYield(
    byteCount: Int64, idle: Double, isWaited: Bool, now: ContinuousClock.Instant
  ) {
    line.note(
      // What a limit of the user's lets pass says nothing about the line.
      byteCount: byteCount, active: segments.count, idle: idle,
      isWaited: isWaited && !isThrottled(now: now), now: now)
  }

  // MARK: Who waits for them

  /// Notes where the position of a segment next answers somebody who waits.
  mutating func updateWake(of id: SegmentID, for demand: VersionDemand, in content: ContentMap) {
    guard let segment = segments[id] else { return }
    let wakeAt = demand.nextWake(by: segment, in: content)
    segments.change(id) { $0.wakeAt = wakeAt }
  }

  /// A read has come to wait, perhaps for what some of them bring.
  mutating func serve(
    _ read: ParkedRead, for demand: VersionDemand, in content: ContentMap,
    into actions: inout VersionActions
  ) {
    for segment in segments where segment.end > read.range.lowerBound {
      raiseIfWaitedFor(segment, for: demand, in: content, into: &actions)
      // What it waits for may have arrived, with nothing more to come that would write it out.
      if segment.handedOverEnd < segment.position,
        segment.handedOverEnd < read.range.upperBound, read.range.lowerBound < segment.position
      {
        actions.flushes.append(segment.id)
      }
    }
  }

  /// An open has come to wait for the length, which the end of a stream tells.
  mutating func serveLengthWait(
    for demand: VersionDemand, in content: ContentMap, into actions: inout VersionActions
  ) {
    for segment in segments where segment.isWhole {
      raiseIfWaitedFor(segment, for: demand, in: content, into: &actions)
    }
  }

  private mutating func raiseIfWaitedFor(
    _ segment: Segment, for demand: VersionDemand, in content: ContentMap,
    into actions: inout VersionActions
  ) {
    updateWake(of: segment.id, for: demand, in: content)
    if !segment.isWaitedFor, segments[segment.id]?.isWaitedFor == true, !segment.isSent,
      let transfer = segment.transfer
    {
      actions.raises.append(transfer)
    }
  }

  /// What keeps bytes from reads, where it is not the server.
  func delayCause(now: ContinuousClock.Instant) -> String? {
    segments.contains(where: \.isHeldByDisk)
      ? "the disk of the cache does not take what has arrived"
      : isThrottled(now: now) ? "the rate limit holds them back" : nil
  }

  /// Gives up requests that bring nothing, and streams that nobody reads.
  ///
  /// - Returns: why the last of the former was given up.
  mutating func giveUpSilent(
    patience: Duration, sparePatience: (Int) -> Duration?, for demand: VersionDemand,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> FileError? {
    var last: FileError?
    for segment in segments {
      guard let transfer = segment.transfer else { continue }
      if pacing.isAbandoned(segment, by: demand, now: now) { actions.cancels.append(transfer) }
      var patience = patience
      if segment.isWaitedFor, let spare = sparePatience(segment.mirror) {
        patience = min(patience, spare)
      }
      guard segment.isSilent(for: patience, now: now) else { continue }
      let error = FileError(.timedOut, "the server stopped sending for \(patience)")
      last = error
      actions.silentMirrors.append((segment.mirror, error))
      actions.cancels.append(transfer)
    }
    return last
  }

  // MARK: What arrives

  /// Bytes up to `position` have arrived; nil if the segment is no longer wanted.
  mutating func advance(
    _ id: SegmentID, to position: Int64, unreadSince: ContinuousClock.Instant?,
    for demand: VersionDemand, in content: ContentMap, now: ContinuousClock.Instant
  ) -> WriterAdvice? {
    segments.change(id) { $0.advance(to: position, now: now) }
    guard let segment = segments[id],
      !isUnwanted(segment, unreadSince: unreadSince, by: demand, now: now)
    else { return nil }
    let mustFlush =
      segment.wakeAt.map { position >= $0 } ?? false || bringsFirstPage(segment, of: content)
    // Once is enough.
    if mustFlush { updateWake(of: id, for: demand, in: content) }
    let silentMirror = segment.hedgeOf.flatMap { segments[$0]?.mirror }
    return WriterAdvice(
      mustFlush: mustFlush, end: segment.end,
      isAhead: pacing.isAhead(segment, of: content, for: demand),
      // A trickle is no progress.
      rival: segment.lastProgressAt == now ? segments.endRival(of: id) : nil,
      silentMirror: silentMirror == segment.mirror ? nil : silentMirror)
  }

  /// Whether nobody reads a stream, which may have no end, and it has come for a while.
  private func isUnwanted(
    _ segment: Segment, unreadSince: ContinuousClock.Instant?, by demand: VersionDemand,
    now: ContinuousClock.Instant
  ) -> Bool {
    guard let unreadSince, !demand.isAwaited, !demand.isPrefetching else { return false }
    return segment.isWhole && segment.position > FileSettings.unreadStreamByteCount
      && now - unreadSince > FileSettings.unreadStreamPatience
  }

  /// Whether a segment brings the first page of a file of unknown length: it is stored at once, because `stat`
  /// can show nothing before.
  private func bringsFirstPage(_ segment: Segment, of content: ContentMap) -> Bool {
    content.length == nil && segment.isWhole && segment.handedOverEnd < ContentMap.pageByteCount
      && segment.position >= ContentMap.pageByteCount
  }

  // MARK: Streams

  /// Bounds how far may be read ahead, because memory must hold it; nil where the cache takes bytes again.
  mutating func limitReadAhead(to byteCount: Int64?) { pacing.limitReadAhead(to: byteCount) }

  /// Less is free on the disk under the cache than is to stay free, or not any more.
  mutating func noteDisk(isShort: Bool) { pacing.noteDisk(isShort: isShort) }

  /// Pauses a stream that is ahead of its reader until that comes near.
  ///
  /// - Returns: whether it still is ahead.
  mutating func pauseIfAhead(
    _ id: SegmentID, for demand: VersionDemand, in content: ContentMap,
    now: ContinuousClock.Instant
  ) -> Bool {
    guard let segment = segments[id], pacing.isAhead(segment, of: content, for: demand) else {
      return false
    }
    segments.change(id) { $0.awaitReader(now: now) }
    return true
  }

  /// Resumes a paused stream when its reader has come near.
  ///
  /// Ends it when a read waits for bytes that it has already passed, so that it can begin again.
  mutating func followReader(
    for demand: VersionDemand, in content: ContentMap, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    for segment in segments {
      guard segment.awaitsReaderSince != nil, let transfer = segment.transfer else { continue }
      switch pacing.decision(on: segment, of: content, for: demand) {
      case .stay: break
      case .end:
        segments.change(segment.id) {
          $0.stop()
          $0.endPause()
        }
        actions.cancels.append(transfer)
      case .resume:
        segments.change(segment.id) { $0.followReader(now: now) }
        actions.resumes.append(transfer)
      }
    }
  }

  // MARK: Answers

  /// The server has answered a range with the whole representation.
  ///
  /// - Returns: the exchanges to cancel, where the whole is taken from now on; nil where the range is to be
  ///   tried again.
  mutating func rangeIgnored(_ id: SegmentID, hasBytes: Bool) -> [ExchangeID]? {
    ignoredRangeCount += 1
    let haveRangesWorked = hasBytes || segments.contains { $0.handedOverEnd > $0.start }
    guard !haveRangesWorked || ignoredRangeCount > FetchConstants.doubtfulAnswerLimit, !isSequential
    else { return nil }
    isSequential = true
    // One stream brings all; the others would bring the same.
    let others = segments.filter { $0.id != id }.compactMap(\.transfer)
    segments.remove(id)
    return others
  }

  /// A request has brought all that it was to bring.
  mutating func forgetIgnoredRanges() { ignoredRangeCount = 0 }

  mutating func markSequential() { isSequential = true }

  mutating func markRanged() {
    guard !segments.isStreaming else { return }
    isSequential = false
    ignoredRangeCount = 0
  }

  mutating func awaitLocation() { isAwaitingLocation = true }

  mutating func endAwaitingLocation() { isAwaitingLocation = false }

  // MARK: Failures

  mutating func noteFruitless() { backoff.noteFruitless() }

  /// A request failed in a way that may pass.
  mutating func failed(
    _ error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant
  ) -> Backoff.Decision {
    let decision = backoff.failed(
      error, retryAfter: retryAfter, policy: policy, random: random, now: now)
    if case .retry = decision, error.code == .unavailable { line.stepDown(now: now) }
    return decision
  }

  /// Nobody waits any more for what was to be tried again.
  ///
  /// - Returns: after what delay to plan again.
  mutating func forgetBackoff(now: ContinuousClock.Instant) -> Duration? {
    backoff.forget(now: now)
  }
}
