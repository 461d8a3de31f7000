internal import HTTPTransfer
internal import HTTPTransferCore

/// The state of one version of a remote file: what is present, what is in flight, who waits.
///
/// A value without I/O: its methods change it under the owner's lock, and return what must be done once
/// the lock is released. Reads and segments are named; the owner knows whom to tell.
struct VersionState: Sendable {
  private(set) var content: ContentMap
  /// Who wants bytes.
  private(set) var demand = VersionDemand()
  /// Who is to bring them.
  private(set) var requests: VersionRequests
  private(set) var failures = VersionFailures()

  /// - Parameters:
  ///   - length: the complete length in bytes, nil where it is unknown.
  ///   - extents: what is present.
  ///   - connections: the connections for read-ahead, where the user has set them.
  ///   - learned: how many have paid at the host before.
  init(length: Int64?, extents: ExtentSet, connections: Int?, learned: Int? = nil) {
    content = ContentMap(length: length, extents: extents)
    requests = VersionRequests(connections: connections, learned: learned)
  }

  /// Has what arrives hashed by `hashes` before anybody sees it; needs the length.
  mutating func check(_ hashes: PieceHashes) { content.check(hashes) }

  // MARK: Facts

  var length: Int64? { content.length }
  var extents: ExtentSet { content.extents }
  var pieces: PieceTable? { content.pieces }
  var spill: Spill? { content.spill }
  var isComplete: Bool { content.isComplete }
  var parked: ParkedReads { demand.parked }
  var wishes: FileWishes { demand.wishes }
  var segments: SegmentList { requests.segments }
  var line: LineEstimate { requests.line }
  var pacing: StreamPacing { requests.pacing }
  var isSuperseded: Bool { failures.isSuperseded }

  func clamped(_ range: ByteRange) -> ByteRange { content.clamped(range) }
  func absent(in range: ByteRange) -> [ByteRange] { content.absent(in: range) }

  /// Whether every byte is present of a file that the user wants fetched.
  var isPrefetched: Bool { isComplete && wishes.isPrefetched }

  /// The first part of `range` that is neither present nor on its way.
  func firstUnrequested(in range: ByteRange) -> ByteRange? {
    absent(in: clamped(range)).first { !segments.brings($0.lowerBound) }
  }

  /// Whether nothing is in flight, and no open waits.
  var isUnused: Bool { segments.isEmpty && demand.lengthWaits.isEmpty }

  /// Whether time alone can change something here.
  var needsWatch: Bool { !parked.isEmpty || !isUnused }

  // MARK: Wishes

  /// Takes up what the user has asked for.
  mutating func follow(
    _ wishes: FileWishes, connections: Int?, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    let former = demand.follow(wishes)
    // What has failed before is another's failure.
    if !former.isPrefetched { failures.forgetPrefetch() }
    requests.follow(connections: connections)
    if wishes.isPaused, !former.isPaused {
      endUnawaited(now: now, into: &actions)
    } else if former.isPrefetched, !wishes.isPrefetched {
      endUnawaited(onlyPrefetch: true, now: now, into: &actions)
    }
    plan(now: now, into: &actions)
  }

  /// Ends the requests that no read waits for, or those of them that prefetch.
  mutating func endUnawaited(
    onlyPrefetch: Bool = false, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    actions.cancels += requests.endUnawaited(
      onlyPrefetch: onlyPrefetch, by: demand, in: content, now: now)
  }

  /// Why a request has failed for good since the last call.
  mutating func takePrefetchFailure() -> FileError? { failures.takeOfPrefetch() }

  // MARK: Length

  /// Up to where `stat` shows a file of unknown length from now on.
  mutating func show() -> Int64 { content.show() }

  /// The complete length has become known, by the head of a response, the end of a body or a record.
  ///
  /// - Returns: whether it has been learned now.
  mutating func learn(length: Int64, into actions: inout VersionActions) -> Bool {
    guard content.learn(length: length) else { return false }
    actions.lengthAnswers += demand.takeLengthWaits()
    requests.learn(length: length, for: demand, in: content)
    wakeReads(into: &actions)
    return true
  }

  /// Has `wait` answered when the length is known, nothing more is to be expected of the server, or its time
  /// is up; begins the stream whose end tells the length.
  ///
  /// - Returns: false where there is nothing to wait for, or was not a moment ago.
  mutating func awaitLength(
    _ wait: LengthWait, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> Bool {
    guard length == nil, failures.allowRequests, demand.lengthWaits.mayWait(now: now),
      // It goes on when somebody reads.
      !segments.contains(where: { $0.awaitsReaderSince != nil })
    else { return false }
    demand.insert(wait)
    requests.serveLengthWait(for: demand, in: content, into: &actions)
    plan(now: now, into: &actions)
    actions.needsWatch = true
    return true
  }

  // MARK: Places

  /// Bounds how far may be read ahead, because memory must hold it; nil where the cache takes bytes again.
  mutating func limitReadAhead(to byteCount: Int64?) { requests.limitReadAhead(to: byteCount) }

  /// Less is free on the disk under the cache than must stay free, or no longer.
  mutating func noteDisk(isShort: Bool) { requests.noteDisk(isShort: isShort) }

  /// Takes `range` for absent, be it present or arrived of a piece.
  ///
  /// - Returns: how many bytes it was.
  @discardableResult
  mutating func forget(_ range: ByteRange) -> Int64 { content.forget(range) }

  /// Takes what has arrived of `range` for absent, as far as nobody has seen it yet.
  mutating func forgetUnverified(_ range: ByteRange) { content.forgetUnverified(range) }

  /// Makes `cached` what the cache holds; what is present in memory stays.
  mutating func setCached(_ cached: ExtentSet) { content.setCached(cached) }

  mutating func beginSpill(into file: SpillFile) -> SpillFile { content.beginSpill(into: file) }

  /// Memory has taken `runs`.
  mutating func noteSpilled(_ runs: [ByteRange]) {
    content.noteSpilled(runs)
    requests.limitReadAhead(to: StreamPacing.readAheadByteCount)
  }

  mutating func beginLease(of range: ByteRange) -> SpillClaim? {
    content.beginLease(of: range)
  }

  mutating func endLease(_ claim: SpillClaim) { content.endLease(claim) }

  /// Gives up what memory has of `range`, unless reads need it kept.
  ///
  /// - Returns: whether it is gone.
  mutating func giveUpSpilled(_ range: ByteRange, now: ContinuousClock.Instant) -> Bool {
    !demand.mustKeep(range, of: content, now: now) && content.giveUpSpilled(range)
  }

  /// Takes what lies in memory for absent.
  mutating func dropSpill() { if content.dropSpill() { requests.limitReadAhead(to: nil) } }

  // MARK: Reads

  /// Counts a read to its stream.
  mutating func note(_ asked: ByteRange, now: ContinuousClock.Instant) {
    demand.note(asked, of: content, now: now)
  }

  /// The file is opened, which nobody had open.
  mutating func beginReading(_ trust: ReaderTrust) {
    content.forgive()
    demand.beginReading(trust)
  }

  /// Nobody has the file open any more.
  ///
  /// - Returns: what came and what was read of it.
  mutating func endReading() -> ReadActivity.Usage {
    var usage = demand.endReading()
    usage.fetched += requests.awaitedByteCount
    return usage
  }

  /// Says what can be answered at once.
  mutating func attempt(_ asked: ByteRange, now: ContinuousClock.Instant) -> ReadAttempt {
    let range = clamped(asked)
    if range.isEmpty { return .present(byteCount: 0) }
    // What is known to be wrong is not shown, however it comes to be there.
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

  /// Takes out the reads that can be answered now, or those of them that overlap `range`.
  mutating func wakeReads(in range: ByteRange? = nil, into actions: inout VersionActions) {
    actions.wakes += demand.takeAnswerable(in: range, from: content)
  }

  /// Takes out every read that waits: those who asked have gone.
  mutating func dropParked(into actions: inout VersionActions) {
    let error = FileError(.unmounted, "the file was closed")
    actions.failures += demand.takeReads().map { ($0, error) }
  }

  // MARK: Ends

  /// Fails every read that waits, and remembers that for a moment.
  mutating func failParked(
    _ error: FileError, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    failures.noteForAll(error)
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

  /// Every further read of absent bytes fails at once; where the bytes are known to be wrong, every read.
  mutating func failForGood(_ error: FileError) { failures.setPermanent(error) }

  mutating func forgetPermanentFailure() { failures.setPermanent(nil) }

  /// Another version has taken this one's place: what is present stays readable by its handles.
  mutating func supersede(into actions: inout VersionActions) {
    failures.supersede()
    actions.failures += demand.takeReads().map { ($0, VersionFailures.superseded) }
    actions.lengthAnswers += demand.takeLengthWaits()
    actions.cancels += segments.compactMap(\.transfer)
  }

  /// Another version has taken this one's place, of which nothing waits and nothing is in flight.
  mutating func supersedeUnused() { failures.supersede() }

  /// The server has confirmed this version after all.
  mutating func reinstate() { failures.reinstate() }

  /// The process was suspended for `delay`: time during which no server could answer does not count.
  mutating func postpone(by delay: Duration) {
    demand.postpone(by: delay)
    requests.postpone(by: delay)
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
      patience: settings.responsePatience, allowance: hedgeAllowance, now: now)
    if !requests.isSequential, failures.allowRequests, requests.maySend(now: now) {
      requests.sendHedges(hedging, for: demand, in: content, into: &actions)
    }
    if let error = requests.giveUpSilent(
      patience: settings.responsePatience, sparePatience: sparePatience, for: demand, now: now,
      into: &actions)
    {
      failures.note(error)
    }
  }

  /// Fails the reads that the stream of the whole cannot come to before their deadline, not even
  /// twice as fast: to wait would only take time.
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

  /// Starts what is wanted now and is neither present nor in flight.
  mutating func plan(now: ContinuousClock.Instant, into actions: inout VersionActions) {
    // Also where nothing holds a stream back any more.
    followReader(now: now, into: &actions)
    guard !isComplete, failures.allowRequests, requests.maySend(now: now) else { return }
    guard let length, !requests.isSequential else {
      if let request = planner(now: now).wholeRequest() {
        actions.starts.append(addSegment(request, now: now))
      }
      return
    }
    while let request = planner(now: now).nextSuspect() {
      if let piece = request.suspect?.piece { content.restart(piece: piece) }
      actions.starts.append(addSegment(request, now: now))
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

  /// Enters a request.
  mutating func addSegment(_ request: PlannedRequest, now: ContinuousClock.Instant) -> Segment {
    requests.add(request, for: demand, in: content, now: now)
  }

  private mutating func followReader(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    requests.followReader(for: demand, in: content, now: now, into: &actions)
  }

  // MARK: Requests

  /// Enters a request whose head has come: if its body does not, the server is silent.
  mutating func adoptSegment(
    range: ByteRange, isWhole: Bool, transfer: ExchangeID, mirror: Int,
    now: ContinuousClock.Instant
  ) -> SegmentID {
    requests.adopt(
      PlannedRequest(range: range, isWhole: isWhole), as: transfer, by: mirror, for: demand,
      in: content, now: now)
  }

  /// A request has ended, well or not.
  mutating func removeSegment(_ id: SegmentID) { requests.remove(id) }

  /// Which of the file's servers the request of a segment has gone to; nil where it has ended.
  func mirror(of id: SegmentID) -> Int? { segments[id]?.mirror }

  /// Something has become of the request of a segment.
  mutating func note(_ event: SegmentEvent, of id: SegmentID, now: ContinuousClock.Instant) {
    if requests.note(event, of: id, now: now), case .held(.some) = event {
      failures.note(FileError(.unavailable, "the server has asked for no request for a while"))
    }
  }

  /// A request is about to be paused because it is ahead of its reader.
  ///
  /// - Returns: whether it still is: if so, it is paused until its reader comes near.
  mutating func awaitsReader(
    _ id: SegmentID, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> Bool {
    guard requests.pauseIfAhead(id, for: demand, in: content, now: now) else { return false }
    followReader(now: now, into: &actions)
    // Its end does not come before somebody reads.
    if segments[id]?.awaitsReaderSince != nil {
      actions.lengthAnswers += demand.missLength(now: now)
    }
    return true
  }

  /// A request on a reused connection took so long to be answered, in seconds.
  mutating func noteRoundTrip(_ seconds: Double) { requests.noteRoundTrip(seconds) }

  /// Bytes up to `position` have arrived; nil if the segment is no longer wanted.
  ///
  /// `unreadSince` is since when nobody has the file open; nil where somebody has.
  mutating func advance(
    _ id: SegmentID, to position: Int64, unreadSince: ContinuousClock.Instant? = nil,
    now: ContinuousClock.Instant
  ) -> WriterAdvice? {
    guard !isSuperseded else { return nil }
    return requests.advance(
      id, to: position, unreadSince: unreadSince, for: demand, in: content, now: now)
  }

  /// Bytes up to `position` have arrived, which lie before those that a segment is to bring: its server
  /// begins where it likes.
  ///
  /// While somebody waits for what comes behind them, the server is not silent.
  mutating func skipped(_ id: SegmentID, to position: Int64, now: ContinuousClock.Instant) {
    requests.skipped(id, to: position, for: demand, in: content, now: now)
  }

  /// The bytes `range` of a request have been dealt with.
  ///
  /// `present` are those that were stored just now; the others were there before, or are lost
  /// again. `idle` is how long the network thread has waited so far.
  mutating func stored(
    _ id: SegmentID, _ range: ByteRange, present: [ByteRange], idle: Double,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    var added: Int64 = 0
    for run in present {
      let (byteCount, checks) = content.insert(
        run, from: mirror(of: id) ?? PieceTable.unknownServer)
      added += byteCount
      actions.checks += checks
    }
    let isWaited = !parked.isEmpty || demand.isPrefetching
    wakeReads(in: range, into: &actions)
    if let segment = requests.stored(id, to: range.upperBound, added: added, now: now) {
      if !segment.isWhole, !segment.isPrefetch { demand.noteFetched(added) }
      requests.updateWake(of: id, for: demand, in: content)
    }
    requests.noteYield(byteCount: added, idle: idle, isWaited: isWaited, now: now)
    plan(now: now, into: &actions)
  }

  /// The hash of a piece has been compared; `trusted` are the servers that have not been refused.
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
      failures.noteForAll(.wrongPiece)
      actions.failures += demand.takeReads(in: check.range).map { ($0, .wrongPiece) }
    }
    // Also where the hash says nothing: what was to be hashed is to be asked for again.
    plan(now: now, into: &actions)
    return outcome
  }

  /// The bytes of `check` are no longer there, which says nothing about a server: they are fetched again.
  mutating func abandon(
    _ check: PieceTable.Check, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    // What has come since is hashed by itself.
    if pieces?.isCurrent(check) == true { forgetUnverified(check.range) }
    plan(now: now, into: &actions)
  }

  // MARK: Answers and ends of requests

  /// The server has answered a range with the whole representation.
  ///
  /// - Returns: whether to take the whole from now on; false where the range is to be tried again,
  ///   because ranges have worked before and this may be one server's fault of many.
  mutating func rangeIgnored(_ id: SegmentID, into actions: inout VersionActions) -> Bool {
    guard let others = requests.rangeIgnored(id, hasBytes: !extents.isEmpty) else { return false }
    actions.cancels += others
    return true
  }

  /// The server answers ranges with the whole: there is one way only to read it.
  mutating func markSequential() { requests.markSequential() }

  /// The server has answered a range with that range: an earlier answer with the whole was an exception.
  ///
  /// A stream that is under way goes on as it was begun.
  mutating func markRanged() { requests.markRanged() }

  /// A body has ended at `position`, as its framing says.
  ///
  /// - Returns: why that cannot be the whole; nil where it can.
  mutating func ended(at position: Int64, into actions: inout VersionActions) -> FileError? {
    if let length {
      return position >= length ? nil : FileError(.unavailable, "response cut short")
    }
    if learn(length: position, into: &actions) { return nil }
    return content.noteShortBody(to: position)
  }

  /// A request has ended by its server's doing: it is taken out.
  ///
  /// - Returns: whether it was in vain, though bytes that it was to bring are absent: then the next one is
  ///   not sent at once.
  mutating func endSegment(_ id: SegmentID) -> Bool {
    guard let segment = requests.removeFruitless(id), !isComplete,
      !absent(in: clamped(segment.start..<segment.end)).isEmpty
    else { return false }
    requests.noteFruitless()
    return true
  }

  /// A request has ended.
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
      // What this machine could not do is not held against the server.
      if error.code == .cacheFailed { requests.remove(id) } else { _ = endSegment(id) }
      retryLater(
        after: error, retryAfter: retryAfter, policy: policy, random: random, now: now,
        into: &actions)
    case .failedForGood(let error):
      if error.isOfServer { _ = endSegment(id) } else { requests.remove(id) }
      failParked(error, now: now, into: &actions)
    }
  }

  /// The request `id` has failed: where it was a hedge beside a request that goes on, nobody need know.
  mutating func dropFailedHedge(_ id: SegmentID) -> Bool { requests.dropFailedHedge(id) }

  /// A request failed in a way that may pass: waits, then plans again; reads whose server cannot
  /// be reached for long fail.
  mutating func retryLater(
    after error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    failures.note(error)
    switch requests.failed(
      error, retryAfter: retryAfter, policy: policy, random: random, now: now)
    {
    case .isWaitingAlready: break
    case .giveUp: failParked(error, now: now, into: &actions)
    case .retry(let delay): actions.retryAfter = delay
    }
  }

  /// Ends the requests to a server whose bytes are wrong.
  mutating func endRequests(to mirror: Int, into actions: inout VersionActions) {
    actions.cancels += requests.end { $0.mirror == mirror }
  }

  /// A request has met that nobody knows where the bytes are: the source is asked, and meanwhile no request is
  /// sent.
  mutating func awaitLocation(_ id: SegmentID) {
    _ = endSegment(id)
    requests.awaitLocation()
  }

  /// The source has been asked where to go; `error` is why it has not said so.
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
      // Other failures are met again by the requests to the source, and retried.
      default: break
      }
    }
    plan(now: now, into: &actions)
  }
}
