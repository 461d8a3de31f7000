internal import HTTPTransfer
internal import HTTPTransferCore

/// The state of one version of a remote file: present bytes, requests in flight, waiting reads.
///
/// It is a value without I/O: its methods change it under the owner's lock, and return the actions
/// to take after the lock is released. Reads and segments have identifiers; the owner finds the
/// objects.
struct VersionState: Sendable {
  private(set) var content: ContentMap
  private(set) var demand = VersionDemand()
  private(set) var requests: VersionRequests
  private(set) var failures = VersionFailures()

  /// Creates a state without reads or requests.
  ///
  /// - Parameters:
  ///   - length: the complete length in bytes; nil if it is unknown.
  ///   - extents: the present bytes.
  ///   - connections: the connections for read-ahead, if the user has set them.
  ///   - learned: how many have paid at the host before.
  init(length: Int64?, extents: ExtentSet, connections: Int?, learned: Int? = nil) {
    content = ContentMap(length: length, extents: extents)
    requests = VersionRequests(connections: connections, learned: learned)
  }

  /// Makes bytes that arrive wait until they match their hash in `hashes`; needs the length.
  mutating func check(_ hashes: PieceHashes) { content.check(hashes) }

  // MARK: Properties

  var length: Int64? { content.length }
  var extents: ExtentSet { content.extents }
  var pieces: PieceTable? { content.pieces }
  var spill: Spill? { content.spill }
  var isComplete: Bool { content.isComplete }
  var parked: ParkedReads { demand.parked }
  var policy: FetchPolicy { demand.policy }
  var segments: SegmentList { requests.segments }
  var line: LineEstimate { requests.line }
  var pacing: StreamPacing { requests.pacing }
  var isSuperseded: Bool { failures.isSuperseded }

  func clamped(_ range: ByteRange) -> ByteRange { content.clamped(range) }
  func absent(in range: ByteRange) -> [ByteRange] { content.absent(in: range) }

  /// Whether every byte is present of a file that the user wants prefetched.
  var isPrefetched: Bool { isComplete && policy.isPrefetched }

  /// The first part of `range` that is neither present nor on its way.
  func firstUnrequested(in range: ByteRange) -> ByteRange? {
    absent(in: clamped(range)).first { !segments.brings($0.lowerBound) }
  }

  /// Whether no request is in flight, and no open waits.
  var isUnused: Bool { segments.isEmpty && demand.lengthWaits.isEmpty }

  /// Whether the passage of time alone can change the state.
  var needsWatch: Bool { !parked.isEmpty || !isUnused }

  // MARK: Policy

  /// Adopts the user's policy.
  mutating func follow(
    _ policy: FetchPolicy, connections: Int?, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    let former = demand.follow(policy)
    // Earlier failures do not concern a new prefetch.
    if !former.isPrefetched { failures.forgetPrefetch() }
    requests.follow(connections: connections)
    if policy.isPaused, !former.isPaused {
      endUnawaited(now: now, into: &actions)
    } else if former.isPrefetched, !policy.isPrefetched {
      endUnawaited(onlyPrefetch: true, now: now, into: &actions)
    }
    plan(now: now, into: &actions)
  }

  /// Ends the requests that no read waits for; with `onlyPrefetch`, only those that prefetch.
  mutating func endUnawaited(
    onlyPrefetch: Bool = false, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    actions.cancels += requests.endUnawaited(
      onlyPrefetch: onlyPrefetch, by: demand, in: content, now: now)
  }

  /// Why a request has failed permanently since the last call.
  mutating func takePrefetchFailure() -> FileError? { failures.takeOfPrefetch() }

  // MARK: Length

  /// Extends and returns the size that `stat` shows of a file of unknown length.
  mutating func show() -> Int64 { content.show() }

  /// Records the complete length from the head of a response, the end of a body or a record.
  ///
  /// - Returns: whether this call set it.
  mutating func learn(length: Int64, into actions: inout VersionActions) -> Bool {
    guard content.learn(length: length) else { return false }
    actions.lengthAnswers += demand.takeLengthWaits()
    requests.learn(length: length, for: demand, in: content)
    wakeReads(into: &actions)
    actions.recordsLength = true
    return true
  }

  /// Parks an open until the length is known, the server will not give it soon, or its time is up.
  ///
  /// It begins the stream whose end shows the length.
  ///
  /// - Returns: false if there is nothing to wait for, or if such a wait failed recently.
  mutating func awaitLength(
    _ wait: LengthWait, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> Bool {
    guard length == nil, failures.allowRequests, demand.lengthWaits.mayWait(now: now),
      // The stream only continues when the file is read.
      !segments.contains(where: { $0.awaitsReaderSince != nil })
    else { return false }
    demand.insert(wait)
    requests.serveLengthWait(for: demand, in: content, into: &actions)
    plan(now: now, into: &actions)
    actions.needsWatch = true
    return true
  }

  // MARK: Locations

  /// Limits read-ahead, because memory must hold it; nil if the cache stores bytes again.
  mutating func limitReadAhead(to byteCount: Int64?) { requests.limitReadAhead(to: byteCount) }

  /// Records whether the disk under the cache has less free space than it must keep.
  mutating func recordDisk(isShort: Bool) { requests.recordDisk(isShort: isShort) }

  /// Takes `range` for absent, whether it was present or awaited its hash.
  ///
  /// - Returns: how many bytes those were.
  @discardableResult
  mutating func forget(_ range: ByteRange) -> Int64 { content.forget(range) }

  /// Takes the bytes of `range` that await their hash for absent: no reader has seen them.
  mutating func forgetUnverified(_ range: ByteRange) { content.forgetUnverified(range) }

  /// Makes `cached` what the cache holds; bytes that are present in memory stay.
  mutating func setCached(_ cached: ExtentSet) { content.setCached(cached) }

  mutating func beginSpill(into file: SpillFile) -> SpillFile { content.beginSpill(into: file) }

  /// Records `runs`, which memory has taken.
  mutating func recordSpilled(_ runs: [ByteRange]) {
    content.recordSpilled(runs)
    requests.limitReadAhead(to: StreamPacing.readAheadByteCount)
  }

  mutating func beginLease(of range: ByteRange) -> SpillClaim? {
    content.beginLease(of: range)
  }

  mutating func endLease(_ claim: SpillClaim) { content.endLease(claim) }

  /// Drops the bytes of `range` that memory holds, unless reads need them.
  ///
  /// - Returns: whether they were dropped.
  mutating func giveUpSpilled(_ range: ByteRange, now: ContinuousClock.Instant) -> Bool {
    !demand.mustKeep(range, of: content, now: now) && content.giveUpSpilled(range)
  }

  /// Takes all bytes in memory for absent.
  mutating func dropSpill() { if content.dropSpill() { requests.limitReadAhead(to: nil) } }

  // MARK: Reads

  /// Adds a read to its stream.
  mutating func note(_ asked: ByteRange, now: ContinuousClock.Instant) {
    demand.note(asked, of: content, now: now)
  }

  /// Begins a count when the file, which had no handles, is opened.
  mutating func beginReading(_ trust: ReadAheadConfidence) {
    content.forgive()
    demand.beginReading(trust)
  }

  /// Ends the count when the last handle is closed.
  ///
  /// - Returns: how many bytes arrived and were read.
  mutating func endReading() -> ReadActivity.Usage {
    var usage = demand.endReading()
    usage.fetched += requests.awaitedByteCount
    return usage
  }

  /// Answers what can be answered immediately.
  mutating func attempt(_ asked: ByteRange, now: ContinuousClock.Instant) -> ReadAttempt {
    let range = clamped(asked)
    if range.isEmpty { return .present(byteCount: 0) }
    // Bytes that are known to be wrong are never shown, even if they are present again.
    if let error = failures.permanent, error.code == .corrupt { return .failed(error) }
    if let end = content.answerableEnd(of: range) {
      return .present(byteCount: Int(end - range.lowerBound))
    }
    return failures.refusal(of: range, pieces: pieces, now: now).map { .failed($0) } ?? .absent
  }

  mutating func park(_ read: ParkedRead, into actions: inout VersionActions) {
    demand.park(read)
    requests.serve(read, for: demand, in: content, into: &actions)
  }

  /// Wakes the reads that can be answered now, or those of them that overlap `range`.
  mutating func wakeReads(in range: ByteRange? = nil, into actions: inout VersionActions) {
    actions.wakes += demand.takeAnswerable(in: range, from: content)
  }

  /// Fails every waiting read, because the programs have closed the file.
  mutating func dropParked(into actions: inout VersionActions) {
    let error = FileError(.unmounted, "the file was closed")
    actions.failures += demand.takeReads().map { ($0, error) }
  }

  // MARK: Completion

  /// Fails every waiting read, and remembers the error for a moment.
  mutating func failParked(
    _ error: FileError, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    failures.recordForAll(error)
    fail(demand.takeReads(), error, now: now, into: &actions)
    actions.lengthAnswers += demand.missLength(now: now)
    forgetBackoff(now: now, into: &actions)
  }

  private mutating func fail(
    _ reads: [ParkedRead], _ error: FileError, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    failures.remember(reads.map(\.range), error, now: now)
    actions.failures += reads.map { ($0, error) }
  }

  private mutating func forgetBackoff(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    if let delay = requests.forgetBackoff(now: now) { actions.retryAfter = delay }
  }

  /// Makes every further read of absent bytes fail; if the bytes are known to be wrong, every read.
  mutating func failForGood(_ error: FileError) { failures.setPermanent(error) }

  mutating func forgetPermanentFailure() { failures.setPermanent(nil) }

  /// Supersedes this version by another one; its present bytes stay readable by its handles.
  mutating func supersede(into actions: inout VersionActions) {
    failures.supersede()
    actions.failures += demand.takeReads().map { ($0, VersionFailures.superseded) }
    actions.lengthAnswers += demand.takeLengthWaits()
    actions.cancels += segments.compactMap(\.exchange)
  }

  /// Supersedes this version by another one; it has no reads and no requests.
  mutating func supersedeUnused() { failures.supersede() }

  /// Reverts ``supersede(into:)``, because the server has confirmed this version.
  mutating func reinstate() { failures.reinstate() }

  /// Moves deadlines by `delay`, for which the process was suspended: no server could answer then.
  mutating func postpone(by delay: Duration) {
    demand.postpone(by: delay)
    requests.postpone(by: delay)
  }

  /// Fails overdue reads, hedges stalled requests, and abandons those that stall too long.
  ///
  /// At most `hedgeAllowance` hedges are sent. `spareTimeout` says how long a request to a server
  /// may stall while a read waits for it; nil if no other server can be asked.
  mutating func expire(
    now: ContinuousClock.Instant, settings: FileSettings, hedgeAllowance: Int = 0,
    spareTimeout: (Int) -> Duration? = { _ in nil }, into actions: inout VersionActions
  ) {
    let late = demand.takeLate(now: now)
    if !late.isEmpty {
      let error = failures.lateness(
        after: settings.readTimeout, cause: requests.delayCause(now: now))
      fail(late, error, now: now, into: &actions)
      if parked.isEmpty { forgetBackoff(now: now, into: &actions) }
    }
    failReadsOutOfReach(now: now, into: &actions)
    actions.lengthAnswers += demand.missLength(now: now, until: now)
    let hedging = ReadHedging(
      timeout: settings.responseTimeout, allowance: hedgeAllowance, now: now)
    if !requests.isSingleStream, failures.allowRequests, requests.maySend(now: now) {
      requests.sendHedges(hedging, for: demand, in: content, into: &actions)
    }
    if let error = requests.giveUpSilent(
      timeout: settings.responseTimeout, spareTimeout: spareTimeout, for: demand, now: now,
      into: &actions)
    {
      failures.note(error)
    }
  }

  /// Fails reads that the stream of the whole cannot reach in time, even at twice its pace.
  private mutating func failReadsOutOfReach(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    guard length != nil, let stream = segments.first(where: \.isWhole) else { return }
    let far = demand.takeUnreachable(by: stream, now: now)
    guard !far.isEmpty else { return }
    let error = FileError(
      .unavailable,
      "the server gives no ranges, and what comes before would take longer than the read timeout")
    failures.note(error)
    fail(far, error, now: now, into: &actions)
  }

  // MARK: Plans

  /// Starts requests for wanted bytes that are neither present nor in flight.
  mutating func plan(now: ContinuousClock.Instant, into actions: inout VersionActions) {
    // Also if the stream need not be paused any more.
    followReader(now: now, into: &actions)
    guard !isComplete, failures.allowRequests, requests.maySend(now: now) else { return }
    guard let length, !requests.isSingleStream else {
      if let request = planner(now: now).wholeRequest() {
        actions.starts.append(addSegment(request, now: now))
      }
      return
    }
    while let request = planner(now: now).nextSuspect() {
      let segment = addSegment(request, now: now)
      if let piece = request.suspect?.piece { content.restart(piece: piece, by: segment.id) }
      actions.starts.append(segment)
    }
    let plan = planner(now: now).plan(length: length)
    requests.apply(plan, isPrefetch: false, for: demand, in: content, now: now, into: &actions)
    guard demand.isPrefetching, let plan = planner(now: now).prefetchPlan(length: length) else {
      return
    }
    requests.apply(plan, isPrefetch: true, for: demand, in: content, now: now, into: &actions)
  }

  private func planner(now: ContinuousClock.Instant) -> RequestPlanner {
    RequestPlanner(content: content, demand: demand, requests: requests, now: now)
  }

  mutating func addSegment(_ request: PlannedRequest, now: ContinuousClock.Instant) -> Segment {
    requests.add(request, for: demand, in: content, now: now)
  }

  private mutating func followReader(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    requests.followReader(for: demand, in: content, now: now, into: &actions)
  }

  // MARK: Requests

  /// Enters a request whose head has arrived; without its body, the server counts as silent.
  mutating func adoptSegment(
    range: ByteRange, isWhole: Bool, exchange: ExchangeID, mirror: Int,
    now: ContinuousClock.Instant
  ) -> SegmentID {
    requests.adopt(
      PlannedRequest(range: range, isWhole: isWhole), as: exchange, by: mirror, for: demand,
      in: content, now: now)
  }

  /// Removes a request that has ended, successfully or not.
  mutating func removeSegment(_ id: SegmentID) { requests.remove(id) }

  /// The index of the server that got the request of a segment; nil if it has ended.
  func mirror(of id: SegmentID) -> Int? { segments[id]?.mirror }

  /// Records an event of a segment's request.
  mutating func note(_ event: SegmentEvent, of id: SegmentID, now: ContinuousClock.Instant) {
    if requests.note(event, of: id, now: now), case .held(.some) = event {
      failures.note(FileError(.unavailable, "the server has asked for no request for a while"))
    }
  }

  /// Pauses a request that is ahead of its reader.
  ///
  /// - Returns: whether it still is: if so, it is paused until its reader comes near.
  mutating func awaitsReader(
    _ id: SegmentID, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> Bool {
    guard requests.pauseIfAhead(id, for: demand, in: content, now: now) else { return false }
    followReader(now: now, into: &actions)
    // Its end does not arrive before the file is read.
    if segments[id]?.awaitsReaderSince != nil {
      actions.lengthAnswers += demand.missLength(now: now)
    }
    return true
  }

  /// Records the seconds that a request on a reused connection took to be answered.
  mutating func recordRoundTrip(_ seconds: Double) { requests.recordRoundTrip(seconds) }

  /// Records the arrival of bytes up to `position`; nil if the segment is no longer wanted.
  ///
  /// `unreadSince` is the time since which the file has had no handle; nil if it has one.
  mutating func advance(
    _ id: SegmentID, to position: Int64, unreadSince: ContinuousClock.Instant? = nil,
    now: ContinuousClock.Instant
  ) -> WriterAdvice? {
    guard !isSuperseded else { return nil }
    return requests.advance(
      id, to: position, unreadSince: unreadSince, for: demand, in: content, now: now)
  }

  /// Records bytes up to `position` that arrived before the range of a segment.
  ///
  /// The server chooses where its answer begins. While a read waits for the bytes after them, the
  /// server does not count as silent.
  mutating func skipped(_ id: SegmentID, to position: Int64, now: ContinuousClock.Instant) {
    requests.skipped(id, to: position, for: demand, in: content, now: now)
  }

  /// Records that the bytes `range` of a request have been handled.
  ///
  /// `present` are those that were stored just now; the others were present before, or are lost
  /// again. `idle` is how long the network thread has waited so far.
  mutating func stored(
    _ id: SegmentID, _ range: ByteRange, present: [ByteRange], idle: Double,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    let carrier: PieceTable.Carrier =
      segments[id]?.isWhole == true ? .stream : .request(id.rawValue)
    var added: Int64 = 0
    for run in present {
      let (byteCount, checks) = content.insert(
        run, from: mirror(of: id) ?? PieceTable.unknownServer, by: carrier)
      added += byteCount
      actions.checks += checks
    }
    let isWaited = !parked.isEmpty || demand.isPrefetching
    wakeReads(in: range, into: &actions)
    if let segment = requests.stored(id, to: range.upperBound, added: added, now: now) {
      if !segment.isWhole, !segment.isPrefetch { demand.recordFetched(added) }
      requests.updateWake(of: id, for: demand, in: content)
    }
    requests.recordYield(byteCount: added, idle: idle, isWaited: isWaited, now: now)
    plan(now: now, into: &actions)
  }

  /// Records a compared hash; `trusted` are the servers that have not been refused.
  mutating func settle(
    _ check: PieceTable.Check, matches: Bool, trusted: [Int], now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) -> PieceTable.Outcome {
    let outcome = content.settle(check, matches: matches, trusted: trusted)
    switch outcome {
    case .outdated: break
    case .verified: wakeReads(in: check.range, into: &actions)
    case .mismatch: failures.note(.wrongPiece)
    case .lost:
      failures.recordForAll(.wrongPiece)
      actions.failures += demand.takeReads(in: check.range).map { ($0, .wrongPiece) }
    }
    // Also if the hash is outdated: the bytes must be requested again.
    plan(now: now, into: &actions)
    return outcome
  }

  /// Drops the bytes of `check`, because some are lost through no fault of a server.
  mutating func abandon(
    _ check: PieceTable.Check, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    // Bytes that have arrived since get a check of their own.
    if pieces?.isCurrent(check) == true { forgetUnverified(check.range) }
    plan(now: now, into: &actions)
  }

  // MARK: Responses

  /// Handles an answer that brings the whole representation instead of a range.
  ///
  /// - Returns: whether to take the whole from now on; false if the range is to be tried again,
  ///   because ranges have worked before and this may be the fault of one server of many.
  mutating func rangeIgnored(_ id: SegmentID, into actions: inout VersionActions) -> Bool {
    guard let others = requests.rangeIgnored(id, hasBytes: !extents.isEmpty) else { return false }
    actions.cancels += others
    return true
  }

  /// Records that the server answers ranges with the whole, which is then read as a stream.
  mutating func markSingleStream() { requests.markSingleStream() }

  /// Records an answer with the requested range: an earlier answer with the whole was an
  /// exception.
  ///
  /// A stream that is under way continues as it began.
  mutating func markRanged() { requests.markRanged() }

  /// Records a body that ended at `position`, according to its framing.
  ///
  /// - Returns: why that cannot be the whole; nil if it can.
  mutating func ended(at position: Int64, into actions: inout VersionActions) -> FileError? {
    if let length {
      return position >= length ? nil : FileError(.unavailable, ResponseFault.cutShort)
    }
    if learn(length: position, into: &actions) { return nil }
    return content.recordShortBody(to: position)
  }

  /// Removes a request that its server has ended.
  ///
  /// - Returns: whether it was fruitless and bytes of its range are still absent; the next request
  ///   is then delayed.
  mutating func endSegment(_ id: SegmentID) -> Bool {
    guard let segment = requests.removeFruitless(id), !isComplete,
      !absent(in: clamped(segment.start..<segment.end)).isEmpty
    else { return false }
    requests.recordFruitless()
    return true
  }

  mutating func end(
    _ id: SegmentID, as outcome: RequestOutcome, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    switch outcome {
    case .finished:
      if endSegment(id) {
        retryLater(
          after: FileError(.invalidResponse, "the response has brought next to nothing"),
          retryAfter: nil, policy: policy, random: random, now: now, into: &actions)
      }
      requests.forgetIgnoredRanges()
      plan(now: now, into: &actions)
    case .dropped:
      requests.remove(id)
      plan(now: now, into: &actions)
    case .moved(let error):
      failures.note(error)
      requests.remove(id)
      plan(now: now, into: &actions)
    case .failed(let error, let retryAfter):
      // A failure of this machine does not count against the server.
      if error.code == .cacheFailed { requests.remove(id) } else { _ = endSegment(id) }
      retryLater(
        after: error, retryAfter: retryAfter, policy: policy, random: random, now: now,
        into: &actions)
    case .failedForGood(let error):
      if error.isOfServer { _ = endSegment(id) } else { requests.remove(id) }
      failParked(error, now: now, into: &actions)
    }
  }

  /// Removes the failed request `id` if it hedges a request that is still in flight.
  mutating func dropFailedHedge(_ id: SegmentID) -> Bool { requests.dropFailedHedge(id) }

  /// Delays the next plan after a failure that may be temporary.
  ///
  /// Fails the reads if the server has been unreachable for too long.
  mutating func retryLater(
    after error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    failures.note(error)
    switch requests.failed(
      error, retryAfter: retryAfter, policy: policy, random: random, now: now)
    {
    case .isWaitingAlready: break
    case .retry(let delay): actions.retryAfter = delay
    }
  }

  /// Ends the requests to a server whose bytes are wrong.
  mutating func endRequests(to mirror: Int, into actions: inout VersionActions) {
    actions.cancels += requests.end { $0.mirror == mirror }
  }

  /// Removes a request that found the location of the bytes unknown.
  ///
  /// The source is asked for it, and meanwhile no request is sent.
  mutating func awaitLocation(_ id: SegmentID) {
    _ = endSegment(id)
    requests.awaitLocation()
  }

  /// Takes the source's answer about the location; `error` is why it gave none.
  mutating func located(
    _ error: FileError?, policy: RetryPolicy, random: Double, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    requests.endAwaitingLocation()
    if let error {
      switch error.code {
      case .missing, .denied, .refused: failParked(error, now: now, into: &actions)
      case .unsigned:
        retryLater(
          after: error, retryAfter: nil, policy: policy, random: random, now: now, into: &actions)
      // The requests to the source meet other failures again, and are retried.
      default: break
      }
    }
    plan(now: now, into: &actions)
  }
}
