internal import HTTPTransfer
internal import HTTPTransferCore

/// What has become of the requests: sent, arriving, stored, ended.
extension VersionState {
  /// A request on a reused connection took so long to be answered, in seconds.
  mutating func noteRoundTrip(_ seconds: Double) {
    measuredRoundTrip = measuredRoundTrip.map { $0 * 0.7 + seconds * 0.3 } ?? seconds
  }

  /// How many requests are in flight, or have brought what is still to be stored.
  var requestCount: Int { segments.count }

  /// Whether the whole is arriving in one response.
  var isStreaming: Bool { segments.contains(where: \.isWhole) }

  /// Whether the server is bringing bytes by another request than `id`.
  func isServed(besides id: SegmentID) -> Bool {
    segments.contains { $0.id != id && $0.firstByteAt != nil && !$0.hasEnded }
  }

  /// The first part of `range` that is neither present nor on its way, be it to the disk.
  func firstUnrequested(in range: ByteRange) -> ByteRange? {
    absent(in: clamped(range)).first { hole in
      !segments.contains { $0.start <= hole.lowerBound && hole.lowerBound < $0.end }
    }
  }

  /// Enters a request whose head has come: if its body does not, the server is silent.
  mutating func adoptSegment(
    range: ByteRange, isWhole: Bool, transfer: ExchangeID, mirror: Int,
    now: ContinuousClock.Instant
  ) -> SegmentID {
    let id = addSegment(range: range, isWhole: isWhole, now: now).id
    setMirror(mirror, of: id)
    setTransfer(transfer, of: id)
    sent(id, now: now)
    return id
  }

  mutating func setTransfer(_ transfer: ExchangeID, of id: SegmentID) {
    if let index = index(of: id) { segments[index].transfer = transfer }
  }

  /// The request of a segment goes to this server of the file.
  mutating func setMirror(_ mirror: Int, of id: SegmentID) {
    if let index = index(of: id) { segments[index].mirror = mirror }
  }

  /// Which of the file's servers the request of a segment has gone to; nil where it has ended.
  func mirror(of id: SegmentID) -> Int? { index(of: id).map { segments[$0].mirror } }

  func index(of id: SegmentID) -> Int? { segments.firstIndex { $0.id == id } }

  /// What the writer of a segment does with the bytes that it has gathered.
  struct Advice {
    /// Write them out now: a read waits for them.
    var mustFlush: Bool
    /// Where the segment is to end.
    var end: Int64
    /// Whether it is far ahead of its reader.
    var isAhead: Bool
    /// The request that was to bring the same, to be cancelled.
    var rival: ExchangeID?
    /// The server that was to bring it, where another one was asked when it was silent.
    var silentMirror: Int?
  }

  /// Bytes up to `position` have arrived; nil if the segment is no longer wanted.
  ///
  /// `unreadSince` is since when nobody has the file open; nil where somebody has.
  mutating func advance(
    _ id: SegmentID, to position: Int64, unreadSince: ContinuousClock.Instant? = nil,
    now: ContinuousClock.Instant
  ) -> Advice? {
    guard let index = index(of: id), !isSuperseded else { return nil }
    if segments[index].firstByteAt == nil { segments[index].firstByteAt = now }
    segments[index].position = position
    segments[index].noteProgress(to: position, now: now)
    if segments[index].isThrottled || segments[index].awaitsStorage {
      segments[index].isThrottled = false
      segments[index].awaitsStorage = false
      // Until now it was not the server that was slow.
      segments[index].lastProgressAt = now
    }
    if isUnwanted(segments[index], unreadSince: unreadSince, now: now) { return nil }
    let mustFlush =
      segments[index].wakeAt.map { position >= $0 } ?? false || bringsFirstPage(segments[index])
    // Once is enough.
    if mustFlush { updateWake(of: index) }
    let silentMirror = segments[index].hedgeOf.flatMap { mirror(of: $0) }
    return Advice(
      mustFlush: mustFlush, end: segments[index].end, isAhead: isAheadOfReader(segments[index]),
      // A trickle is no progress.
      rival: segments[index].lastProgressAt == now ? endRival(ofSegmentAt: index) : nil,
      silentMirror: silentMirror == segments[index].mirror ? nil : silentMirror)
  }

  /// Whether nobody reads a stream, which may have no end, and it has come for a while.
  private func isUnwanted(
    _ segment: Segment, unreadSince: ContinuousClock.Instant?, now: ContinuousClock.Instant
  ) -> Bool {
    guard let unreadSince, parked.isEmpty, lengthWaits.isEmpty, !isPrefetching else { return false }
    return segment.isWhole && segment.position > FileSettings.unreadStreamByteCount
      && now - unreadSince > FileSettings.unreadStreamPatience
  }

  /// Bytes up to `position` have arrived, which lie before those that a segment is to bring: its server
  /// begins where it likes.
  ///
  /// While somebody waits for what comes behind them, the server is not silent.
  mutating func skipped(_ id: SegmentID, to position: Int64, now: ContinuousClock.Instant) {
    guard let index = index(of: id) else { return }
    // Who has waited may have gone.
    updateWake(of: index)
    guard segments[index].isWaitedFor else { return }
    segments[index].noteProgress(to: position, now: now)
  }

  /// What has arrived up to `end` is on its way into the cache file.
  mutating func handedOver(_ id: SegmentID, to end: Int64) {
    guard let index = index(of: id) else { return }
    segments[index].handedOverEnd = max(segments[index].handedOverEnd, end)
  }

  /// A request has ended; what it has brought is stored soon, and then it is removed.
  mutating func requestEnded(_ id: SegmentID) {
    if let index = index(of: id) { segments[index].hasEnded = true }
  }

  /// A request is paused until the disk has taken what came before.
  mutating func awaitsStorage(_ id: SegmentID) {
    if let index = index(of: id) { segments[index].awaitsStorage = true }
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
      added += pieces == nil ? extents.insert(run) : noteArrival(of: run, by: id, into: &actions)
    }
    unreachableSince = nil
    lastStoredAt = now
    noteYield(added, of: id)
    let isWaited = !parked.isEmpty || isPrefetching
    actions.wakes += parked.remove(overlapping: range, where: canAnswer)
    if let index = index(of: id) {
      segments[index].storedEnd = max(segments[index].storedEnd, range.upperBound)
      if !segments[index].isWhole, !segments[index].isPrefetch { usage.fetched += added }
      updateWake(of: index)
      if let rate = segments[index].rate(now: now) {
        connectionRate = connectionRate.map { $0 * 0.7 + rate * 0.3 } ?? rate
      } else if let least = segments[index].leastRate(now: now), least > connectionRate ?? 0 {
        connectionRate = least
      }
    }
    parallelism.note(
      // What a limit of the user's lets pass says nothing about the line.
      byteCount: added, active: segments.count, idle: idle,
      isWaited: isWaited && !isThrottled(now: now),
      now: clock.seconds(at: now))
    plan(now: now, into: &actions)
  }

  /// Counts `byteCount` new bytes of a request.
  ///
  /// Once it has brought enough, earlier failures are forgotten.
  ///
  /// Otherwise a server that sends a few bytes for each request, or the same bytes again and again,
  /// could keep us asking for ever.
  private mutating func noteYield(_ byteCount: Int64, of id: SegmentID) {
    guard byteCount > 0 else { return }
    shortBodyCount = 0
    guard let index = index(of: id) else { return }
    segments[index].addedByteCount += byteCount
    guard segments[index].isFruitful else { return }
    failureCount = 0
    fruitlessCount = 0
    retryAt = nil
  }

  /// A request has ended by its server's doing: it is taken out.
  ///
  /// - Returns: whether it was in vain, though bytes that it was to bring are absent: then the next one is
  ///   not sent at once.
  mutating func endSegment(_ id: SegmentID) -> Bool {
    guard let segment = removeSegment(id) else { return false }
    guard !segment.isFruitful, !isComplete,
      !absent(in: clamped(segment.start..<segment.end)).isEmpty
    else { return false }
    fruitlessCount += 1
    return true
  }

  /// The bytes of `check` are no longer there, which says nothing about a server: they are fetched again.
  mutating func abandon(
    _ check: PieceTable.Check, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    // What has come since is hashed by itself.
    if pieces?.isCurrent(check) == true { forgetUnverified(check.range) }
    plan(now: now, into: &actions)
  }

  /// Bytes of pieces have arrived, which are to be hashed before anybody sees them.
  private mutating func noteArrival(
    of range: ByteRange, by id: SegmentID, into actions: inout VersionActions
  ) -> Int64 {
    let mirror = self.mirror(of: id) ?? PieceTable.unknownServer
    guard let arrival = pieces?.note(range, from: mirror, extents: extents) else { return 0 }
    actions.checks += arrival.checks
    return arrival.byteCount
  }

  /// The hash of a piece has been compared; `trusted` are the servers that have not been refused.
  mutating func settle(
    _ check: PieceTable.Check, matches: Bool, trusted: [Int], now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) -> PieceTable.Outcome {
    guard let outcome = pieces?.settle(check, matches: matches, trusted: trusted) else {
      return .outdated
    }
    switch outcome {
    case .outdated: break
    case .verified:
      extents.insert(check.range)
      actions.wakes += parked.remove(overlapping: check.range, where: canAnswer)
    case .mismatch: lastFailure = .wrongPiece
    case .lost:
      lastFailure = .wrongPiece
      prefetchFailure = .wrongPiece
      actions.failures +=
        parked.remove(overlapping: check.range) { _ in true }.map { ($0, .wrongPiece) }
    }
    forgetAbsentSpill(in: check.range)
    // Also where the hash says nothing: what was to be hashed is to be asked for again.
    plan(now: now, into: &actions)
    return outcome
  }

  /// Ends the requests to a server whose bytes are wrong.
  mutating func endRequests(to mirror: Int, into actions: inout VersionActions) {
    for index in segments.indices where segments[index].mirror == mirror {
      // What comes all the same is not stored.
      segments[index].end = segments[index].position
      if let transfer = segments[index].transfer { actions.cancels.append(transfer) }
    }
  }

  /// A body has ended at `position`, as its framing says.
  ///
  /// - Returns: why that cannot be the whole; nil where it can.
  mutating func ended(
    at position: Int64, into actions: inout VersionActions
  ) -> FileError? {
    if let length {
      return position >= length ? nil : FileError(.unavailable, "response cut short")
    }
    if learn(length: position, into: &actions) { return nil }
    shortBodyCount += 1
    let reason = "the body has ended after \(position) bytes, though \(presentEnd) are known"
    return FileError(isEndedShort ? .stale : .invalidResponse, reason)
  }

  /// Whether the server insists that the file ends before bytes that it has sent: they are of another one.
  var isEndedShort: Bool { shortBodyCount > FileSettings.doubtfulAnswerLimit }

  /// A request has ended, well or not; what it did not bring is planned anew.
  ///
  /// - Returns: the segment of the request; nil if it was taken out before.
  @discardableResult
  mutating func removeSegment(_ id: SegmentID) -> Segment? {
    guard let index = index(of: id) else { return nil }
    let segment = segments.remove(at: index)
    // A mount may know thousands of versions that nobody reads: they keep no memory for segments.
    if segments.isEmpty { segments = [] }
    return segment
  }

  /// A request failed in a way that may pass: waits, then plans again; reads whose server cannot
  /// be reached for long fail.
  mutating func retryLater(
    after error: FileError, retryAfter: Duration?, policy: RetryPolicy, random: Double,
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    lastFailure = error
    // Requests that fail together are one failure.
    if let retryAt, now < retryAt { return }
    failureCount += 1
    if error.code == .unreachable || (error.code == .disconnected && !wasServed(by: now)) {
      let since = unreachableSince ?? now
      unreachableSince = since
      if now - since >= FileSettings.unreachablePatience {
        return failParked(error, now: now, into: &actions)
      }
    }
    if error.code == .unavailable { parallelism.stepDown(now: clock.seconds(at: now)) }
    var delay = policy.delay(failures: failureCount, retryAfter: retryAfter, random: random)
    switch error.code {
    // To look whether the network is back costs nothing: no packet leaves the machine.
    case .disconnected: delay = min(delay, FileSettings.disconnectionInterval)
    // A request that was timed out has waited already.
    case .timedOut: delay = policy.delay(failures: 1, retryAfter: nil, random: random)
    default: break
    }
    retryAt = now + delay
    actions.retryAfter = delay
  }

  /// Whether the server has brought bytes a short while ago: a network that is down then may come back
  /// before the reads' deadline.
  private func wasServed(by now: ContinuousClock.Instant) -> Bool {
    lastStoredAt.map { now - $0 < FileSettings.disconnectionMemory } ?? false
  }

  /// How long after a rate limit has held a request back it is taken to be what limits the file.
  private static let throttleMemory = Duration.seconds(1)

  /// Whether it is a rate limit that keeps bytes from coming.
  func isThrottled(now: ContinuousClock.Instant) -> Bool {
    throttledAt.map { now - $0 < Self.throttleMemory } ?? false
      || segments.contains(where: \.isThrottled)
  }

  /// A rate limit holds a request back, until more of it comes.
  mutating func throttled(_ id: SegmentID, now: ContinuousClock.Instant) {
    throttledAt = now
    if let index = index(of: id) { segments[index].isThrottled = true }
  }

  /// The request of a segment is being sent.
  mutating func sent(_ id: SegmentID, now: ContinuousClock.Instant) {
    guard let index = index(of: id) else { return }
    segments[index].isSent = true
    segments[index].lastProgressAt = now
  }

  /// The request is held back until `moment`, as the server has asked; nil when it is being sent.
  mutating func hold(_ id: SegmentID, until moment: ContinuousClock.Instant?) {
    guard let index = index(of: id) else { return }
    segments[index].heldUntil = moment
    // Until then it is not the server that is slow.
    segments[index].lastProgressAt = moment ?? .now
    if moment != nil {
      lastFailure = FileError(.unavailable, "the server has asked for no request for a while")
    }
  }
}
