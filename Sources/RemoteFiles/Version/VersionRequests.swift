internal import HTTPTransfer
internal import HTTPTransferCore

/// The requests of one version in flight, and what they have shown about its servers.
struct VersionRequests: Sendable {
  private(set) var segments = SegmentList()
  private(set) var line: LineEstimate
  private(set) var backoff = Backoff()
  private(set) var pacing = StreamPacing()
  /// Whether the server has ignored a range, so that only the whole can be requested.
  private(set) var isSingleStream = false
  /// Whether the source is being asked for the location of the bytes; meanwhile no request is sent.
  private(set) var isAwaitingLocation = false
  /// How many ranges in a row were answered with the whole, though ranges have worked.
  private var ignoredRangeCount = 0

  /// Creates the state without requests.
  ///
  /// - Parameters:
  ///   - connections: the connections for read-ahead, if the user has set them.
  ///   - learned: how many have paid at the host before.
  init(connections: Int?, learned: Int?) {
    line = LineEstimate(connections: connections, learned: learned)
  }

  // MARK: Properties

  /// Whether only the plan decides if a request is sent.
  func maySend(now: ContinuousClock.Instant) -> Bool {
    !isAwaitingLocation && !backoff.isPending(now: now)
  }

  /// Whether a rate limit delays bytes.
  func isThrottled(now: ContinuousClock.Instant) -> Bool {
    line.wasThrottled(now: now) || segments.contains(where: \.isThrottled)
  }

  /// How many requested bytes of ranges are still to arrive for readers.
  var awaitedByteCount: Int64 {
    segments.reduce(0) { sum, segment in
      segment.isWhole || segment.isPrefetch
        ? sum : sum + max(0, segment.end - segment.storedEnd)
    }
  }

  // MARK: Entries

  /// Enters a request that is about to be sent, or has been.
  ///
  /// Its state at that time decides its turn at the server: whether a read waits for it.
  mutating func add(
    _ request: PlannedRequest, for demand: VersionDemand, in content: ContentMap,
    now: ContinuousClock.Instant
  ) -> Segment {
    var segment = Segment(request, id: segments.nextID(), length: content.length, now: now)
    segment.wakeAt = demand.nextWake(by: segment, in: content)
    segments.append(segment)
    return segment
  }

  /// Enters a request whose head has arrived from the server `mirror`.
  mutating func adopt(
    _ request: PlannedRequest, as exchange: ExchangeID, by mirror: Int,
    for demand: VersionDemand, in content: ContentMap, now: ContinuousClock.Instant
  ) -> SegmentID {
    let id = add(request, for: demand, in: content, now: now).id
    for event in [.sentTo(mirror: mirror), .sentAs(exchange), .sent] as [SegmentEvent] {
      _ = note(event, of: id, now: now)
    }
    return id
  }

  /// Carries out a plan.
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

  /// Sends hedges of the stalled requests that a read waits for.
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

  /// Removes a request that has ended, successfully or not.
  mutating func remove(_ id: SegmentID) { segments.remove(id) }

  /// Removes a request that its server has ended.
  ///
  /// - Returns: the request, if it has brought almost no bytes.
  mutating func removeFruitless(_ id: SegmentID) -> Segment? {
    segments.remove(id).flatMap { $0.isFruitful ? nil : $0 }
  }

  /// Removes the failed request `id` if it hedges a request that is still in flight.
  mutating func dropFailedHedge(_ id: SegmentID) -> Bool { segments.dropFailedHedge(id) }

  /// Ends the requests that no read waits for; with `onlyPrefetch`, only those that prefetch.
  ///
  /// A stream of the whole is left if it may have a reader: it would have to begin again.
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

  /// Ends the requests that match `predicate`.
  ///
  /// - Returns: the exchanges to cancel.
  mutating func end(where predicate: (Segment) -> Bool) -> [ExchangeID] {
    segments.end(where: predicate)
  }

  // MARK: Events

  /// Records an event of a segment's request.
  ///
  /// - Returns: whether the segment is still in flight.
  mutating func note(_ event: SegmentEvent, of id: SegmentID, now: ContinuousClock.Instant) -> Bool
  {
    if case .throttled = event { line.recordThrottled(now: now) }
    return segments.change(id) { $0.note(event, now: now) } != nil
  }

  /// Records the seconds that a request on a reused connection took to be answered.
  mutating func recordRoundTrip(_ seconds: Double) { line.recordRoundTrip(seconds) }

  /// Adopts another number of connections from the user.
  mutating func follow(connections: Int?) { line.follow(connections: connections) }

  /// Records the complete length, which limits the bodies in flight.
  mutating func learn(length: Int64, for demand: VersionDemand, in content: ContentMap) {
    segments.changeAll { $0.learn(length: length) }
    for segment in segments { updateWake(of: segment.id, for: demand, in: content) }
  }

  mutating func postpone(by delay: Duration) {
    segments.changeAll { $0.postpone(by: delay) }
  }

  /// Records bytes up to `position` that arrived before the range of a segment.
  mutating func skipped(
    _ id: SegmentID, to position: Int64, for demand: VersionDemand, in content: ContentMap,
    now: ContinuousClock.Instant
  ) {
    // The read that waited may have ended.
    updateWake(of: id, for: demand, in: content)
    segments.change(id) { if $0.isWaitedFor { $0.recordProgress(to: position, now: now) } }
  }

  /// Records that bytes of a request up to `end` have been handled; `added` of them were absent.
  ///
  /// - Returns: its segment, if it is in flight.
  mutating func stored(
    _ id: SegmentID, to end: Int64, added: Int64, now: ContinuousClock.Instant
  ) -> Segment? {
    segments.change(id) { $0.stored(to: end, added: added) }
    guard let segment = segments[id] else { return nil }
    // Otherwise a server that sends a few bytes for each request, or the same bytes again and
    // again, could cause endless requests.
    if added > 0, segment.isFruitful { backoff.recordFruitful() }
    line.recordRate(of: segment, now: now)
    return segment
  }

  /// Records new bytes; `idle` is how long the network thread has waited so far.
  mutating func recordYield(
    byteCount: Int64, idle: Double, isWaited: Bool, now: ContinuousClock.Instant
  ) {
    line.note(
      // A rate that the user has limited says nothing about the connection.
      byteCount: byteCount, active: segments.count, idle: idle,
      isWaited: isWaited && !isThrottled(now: now), now: now)
  }

  // MARK: Waiters

  /// Updates the position at which a segment next answers a waiting read or open.
  mutating func updateWake(of id: SegmentID, for demand: VersionDemand, in content: ContentMap) {
    guard let segment = segments[id] else { return }
    let wakeAt = demand.nextWake(by: segment, in: content)
    segments.change(id) { $0.wakeAt = wakeAt }
  }

  /// Records a read that waits, perhaps for bytes of these requests.
  mutating func serve(
    _ read: ParkedRead, for demand: VersionDemand, in content: ContentMap,
    into actions: inout VersionActions
  ) {
    for segment in segments where segment.end > read.range.lowerBound {
      raiseIfWaitedFor(segment, for: demand, in: content, into: &actions)
      // Its bytes may have arrived, without further ones that would cause them to be written out.
      if segment.enqueuedEnd < segment.position,
        segment.enqueuedEnd < read.range.upperBound, read.range.lowerBound < segment.position
      {
        actions.flushes.append(segment.id)
      }
    }
  }

  /// Records an open that waits for the length, which the end of a stream shows.
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
      let exchange = segment.exchange
    {
      actions.raises.append(exchange)
    }
  }

  /// What delays the bytes of reads, if it is not the server.
  func delayCause(now: ContinuousClock.Instant) -> String? {
    segments.contains(where: \.isHeldByDisk)
      ? "the disk of the cache does not take what has arrived"
      : isThrottled(now: now) ? "the rate limit holds them back" : nil
  }

  /// Abandons stalled requests, and streams without readers.
  ///
  /// - Returns: why the last stalled one was abandoned.
  mutating func giveUpSilent(
    timeout: Duration, spareTimeout: (Int) -> Duration?, for demand: VersionDemand,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> FileError? {
    var last: FileError?
    for segment in segments {
      guard let exchange = segment.exchange else { continue }
      if pacing.isAbandoned(segment, by: demand, now: now) { actions.cancels.append(exchange) }
      var timeout = timeout
      if segment.isWaitedFor, let spare = spareTimeout(segment.mirror) {
        timeout = min(timeout, spare)
      }
      guard segment.isSilent(for: timeout, now: now) else { continue }
      let error = FileError(.timedOut, "the server stopped sending for \(timeout)")
      last = error
      actions.silentMirrors.append((segment.mirror, error))
      actions.cancels.append(exchange)
    }
    return last
  }

  // MARK: Receiving

  /// Records the arrival of bytes up to `position`; nil if the segment is no longer wanted.
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

  /// Whether a stream, which may have no end, has run for a while without a reader.
  private func isUnwanted(
    _ segment: Segment, unreadSince: ContinuousClock.Instant?, by demand: VersionDemand,
    now: ContinuousClock.Instant
  ) -> Bool {
    guard let unreadSince, !demand.isAwaited, !demand.isPrefetching else { return false }
    return segment.isWhole && segment.position > FileSettings.unreadStreamByteCount
      && now - unreadSince > FileSettings.unreadStreamTimeout
  }

  /// Whether a segment brings the first page of a file of unknown length.
  ///
  /// That page is stored immediately, because before it `stat` can show no size.
  private func bringsFirstPage(_ segment: Segment, of content: ContentMap) -> Bool {
    content.length == nil && segment.isWhole && segment.enqueuedEnd < ContentMap.pageByteCount
      && segment.position >= ContentMap.pageByteCount
  }

  // MARK: Streams

  /// Limits read-ahead, because memory must hold it; nil if the cache stores bytes again.
  mutating func limitReadAhead(to byteCount: Int64?) { pacing.limitReadAhead(to: byteCount) }

  /// Records whether the disk under the cache has less free space than it must keep.
  mutating func recordDisk(isShort: Bool) { pacing.recordDisk(isShort: isShort) }

  /// Pauses a stream that is ahead of its reader until the reader comes near.
  ///
  /// - Returns: whether it is still ahead.
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

  /// Resumes paused streams whose readers have come near.
  ///
  /// A stream is ended if a read waits for bytes that it has already passed, so that it can begin
  /// again.
  mutating func followReader(
    for demand: VersionDemand, in content: ContentMap, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    for segment in segments {
      guard segment.awaitsReaderSince != nil, let exchange = segment.exchange else { continue }
      switch pacing.decision(on: segment, of: content, for: demand) {
      case .stay: break
      case .end:
        segments.change(segment.id) {
          $0.stop()
          $0.endPause()
        }
        actions.cancels.append(exchange)
      case .resume:
        segments.change(segment.id) { $0.followReader(now: now) }
        actions.resumes.append(exchange)
      }
    }
  }

  // MARK: Responses

  /// Handles an answer that brings the whole representation instead of a range.
  ///
  /// - Returns: the exchanges to cancel, if the whole is taken from now on; nil if the range is to
  ///   be tried again.
  mutating func rangeIgnored(_ id: SegmentID, hasBytes: Bool) -> [ExchangeID]? {
    ignoredRangeCount += 1
    let haveRangesWorked = hasBytes || segments.contains { $0.enqueuedEnd > $0.start }
    guard !haveRangesWorked || ignoredRangeCount > FetchConstants.doubtfulAnswerLimit,
      !isSingleStream
    else { return nil }
    isSingleStream = true
    // One stream brings all bytes; the others would bring the same.
    let others = segments.filter { $0.id != id }.compactMap(\.exchange)
    segments.remove(id)
    return others
  }

  /// Forgets ignored ranges, because a request has brought all of its bytes.
  mutating func forgetIgnoredRanges() { ignoredRangeCount = 0 }

  mutating func markSingleStream() { isSingleStream = true }

  mutating func markRanged() {
    guard !segments.isStreaming else { return }
    isSingleStream = false
    ignoredRangeCount = 0
  }

  mutating func awaitLocation() { isAwaitingLocation = true }

  mutating func endAwaitingLocation() { isAwaitingLocation = false }

  // MARK: Failures

  mutating func recordFruitless() { backoff.recordFruitless() }

  /// Records a request that failed for a reason that may be temporary.
  mutating func failed(
    _ error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant
  ) -> Backoff.Decision {
    let decision = backoff.failed(
      error, retryAfter: retryAfter, policy: policy, random: random, now: now)
    if case .retry = decision, error.code == .unavailable { line.stepDown(now: now) }
    return decision
  }

  /// Ends the backoff, because no read waits for the retry any more.
  ///
  /// - Returns: the delay before the next plan, if there is one.
  mutating func forgetBackoff(now: ContinuousClock.Instant) -> Duration? {
    backoff.forget(now: now)
  }
}
