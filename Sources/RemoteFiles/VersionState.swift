internal import HTTPTransfer
internal import HTTPTransferCore

/// What is to be done after the lock of a version is released.
struct VersionActions {
  var wakes: [ParkedRead] = []
  var failures: [(read: ParkedRead, error: FileError)] = []
  var starts: [Segment] = []
  var cancels: [ExchangeID] = []
  /// Requests for which somebody waits from now on.
  var raises: [ExchangeID] = []
  /// The servers of requests that are given up because they bring nothing.
  var silentMirrors: [(index: Int, error: FileError)] = []
  /// Pieces that are to be hashed.
  var checks: [PieceTable.Check] = []
  /// Writers that hold what a read waits for.
  var flushes: [SegmentWriter] = []
  /// Plan again after this delay.
  var retryAfter: Duration?
  /// The version now has reads or requests that must be watched.
  var needsWatch = false
}

/// The state of one version of a remote file: what is present, what is in flight, who waits.
///
/// A value without I/O: its methods change it under the owner's lock and return what the owner
/// does once the lock is released.
struct VersionState: Sendable {
  var length: Int64?
  var extents: ExtentSet
  /// What has arrived of pieces that are to be hashed first, and is not in `extents`; nil where the list
  /// has no hashes of pieces.
  var pieces: PieceTable?
  var parked = ParkedReads()
  var segments: [Segment] = []
  var streams = StreamTable()
  private var strides = StrideTable()
  var parallelism: ParallelismController

  /// Whether the server has ignored a range, so that only the whole can be asked for.
  var isSequential = false
  /// How often in a row a range was answered with the whole, though ranges have worked.
  var ignoredRangeCount = 0
  /// Whether the source is being asked where to go: no request is sent meanwhile.
  var isAwaitingLocation = false
  /// Whether another version is known to have taken this one's place.
  var isSuperseded = false
  /// How far may be read ahead, where memory must hold it; nil for as far as is worth it.
  var readAheadLimit: Int64?
  /// What the user has asked for the file.
  private(set) var wishes = FileWishes()
  /// Why the last request failed for all who might have waited; taken by who prefetches.
  var prefetchFailure: FileError?
  /// What every further read of absent bytes gets at once.
  var permanentFailure: FileError?

  var failureCount = 0
  var retryAt: ContinuousClock.Instant?
  var unreachableSince: ContinuousClock.Instant?
  /// When the server last brought bytes.
  private var lastStoredAt: ContinuousClock.Instant?
  var lastFailure: FileError?
  private var recentFailures: [RecentFailure] = []
  private var lastSegment = 0
  private var lastReadAt: ContinuousClock.Instant?
  /// When a rate limit last held a request back.
  private var throttledAt: ContinuousClock.Instant?
  /// The time from request to response, in seconds: a moving average over reused connections, and a guess
  /// before the first.
  var roundTrip: Double { measuredRoundTrip ?? 0.05 }
  private(set) var measuredRoundTrip: Double?
  /// Bytes per second of a connection, from the last segments.
  private var connectionRate: Double?
  let clock = MonotonicSeconds()

  private struct RecentFailure: Sendable {
    let range: ByteRange
    let error: FileError
    let until: ContinuousClock.Instant
  }

  /// How many requests may be in flight: a number that the user gave holds for all of them.
  private var requestLimit: Int

  /// A request that brings nothing does not take the place of its hedge.
  var hasPlaceForHedge: Bool { segments.count < requestLimit + 1 }

  private var connections: Int?

  /// - Parameters:
  ///   - length: the complete length in bytes, nil where it is unknown.
  ///   - extents: what is present.
  ///   - connections: the connections for read-ahead, where the user has set them.
  ///   - learned: how many have paid at the host before.
  init(length: Int64?, extents: ExtentSet, connections: Int?, learned: Int? = nil) {
    self.connections = connections
    requestLimit = connections ?? FileSettings.demandConnectionLimit
    self.length = length
    self.extents = extents
    parallelism = Self.controller(connections: connections, learned: learned)
  }

  private static func controller(connections: Int?, learned: Int?) -> ParallelismController {
    if let connections {
      return ParallelismController(initial: connections, maximum: connections)
    }
    return ParallelismController(
      learned: learned, maximum: FileSettings.adaptiveConnectionLimit)
  }

  // MARK: Wishes

  /// Whether bytes are fetched for nobody in particular now.
  var isPrefetching: Bool { wishes.mayPrefetch && !wishes.isPaused }

  /// Takes up what the user has asked for.
  mutating func follow(
    _ wishes: FileWishes, connections: Int?, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    let wasPaused = self.wishes.isPaused
    let wasPrefetched = self.wishes.isPrefetched
    self.wishes = wishes
    // What has failed before is another's failure.
    if !wasPrefetched { prefetchFailure = nil }
    if self.connections != connections {
      self.connections = connections
      requestLimit = connections ?? FileSettings.demandConnectionLimit
      parallelism = Self.controller(connections: connections, learned: nil)
    }
    if wishes.isPaused, !wasPaused {
      endUnawaited(now: now, into: &actions)
    } else if wasPrefetched, !wishes.isPrefetched {
      endUnawaited(onlyPrefetch: true, now: now, into: &actions)
    }
    plan(now: now, into: &actions)
  }

  /// Ends the requests that no read waits for, or those of them that prefetch.
  ///
  /// But not a stream of the whole that somebody may be reading: it would have to begin again.
  mutating func endUnawaited(
    onlyPrefetch: Bool = false, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    for index in segments.indices where segments[index].isPrefetch || !onlyPrefetch {
      let segment = segments[index]
      if segment.isWhole, hasReader(now: now) { continue }
      let missing = segment.storedEnd..<max(segment.storedEnd, segment.end)
      guard !parked.reads.contains(where: { clamped($0.range).overlaps(missing) }) else { continue }
      // What comes all the same is not stored.
      segments[index].end = segment.position
      if let transfer = segment.transfer { actions.cancels.append(transfer) }
    }
  }

  var isComplete: Bool { length.map { extents.byteCount >= $0 } ?? false }

  /// The bytes of `range` that exist, as far as the length is known.
  func clamped(_ range: ByteRange) -> ByteRange {
    guard let length else { return range }
    return min(range.lowerBound, length)..<min(range.upperBound, length)
  }

  // MARK: Reads

  /// Counts a read to its stream.
  mutating func note(_ asked: ByteRange, now: ContinuousClock.Instant) {
    usage.read += clamped(asked).byteCount
    guard !isComplete else { return }
    streams.note(clamped(asked))
    strides.note(clamped(asked))
    lastReadAt = now
  }

  /// The file is opened, which nobody had open.
  mutating func beginReading(isCautious: Bool) {
    pieces?.forgive()
    usage = Usage()
    streams.isCautious = isCautious
  }

  /// Nobody has the file open any more: nothing is read ahead beyond what is in flight.
  ///
  /// - Returns: what came and what was read of it.
  mutating func endReading() -> Usage {
    lastReadAt = nil
    var usage = usage
    for segment in segments where !segment.isWhole && !segment.isPrefetch {
      usage.fetched += max(0, segment.end - segment.storedEnd)
    }
    return usage
  }

  /// What has come of a file since it was opened, but for whole bodies and what the user has asked for,
  /// and what was read.
  struct Usage: Sendable {
    var fetched: Int64 = 0
    var read: Int64 = 0
  }

  private var usage = Usage()

  /// Says what can be answered at once.
  mutating func attempt(_ asked: ByteRange, now: ContinuousClock.Instant) -> ReadAttempt {
    let range = clamped(asked)
    if range.isEmpty { return .present(byteCount: 0) }
    // What is known to be wrong is not shown, however it comes to be there.
    if let permanentFailure, permanentFailure.code == .corrupt { return .failed(permanentFailure) }
    if extents.contains(range) { return .present(byteCount: Int(range.byteCount)) }
    if length == nil {
      // Served while it grows: what is there of the range is better than waiting for all of it.
      let end = extents.presentEnd(from: range.lowerBound)
      if end > range.lowerBound { return .present(byteCount: Int(end - range.lowerBound)) }
    }
    if isSuperseded {
      return .failed(FileError(.stale, "the remote file has changed since it was opened"))
    }
    if let permanentFailure { return .failed(permanentFailure) }
    if pieces?.isLost(range) == true { return .failed(.wrongPiece) }
    recentFailures.removeAll { $0.until <= now }
    if let recent = recentFailures.first(where: { $0.range.overlaps(range) }) {
      return .failed(recent.error)
    }
    return .absent
  }

  mutating func park(_ read: ParkedRead, into actions: inout VersionActions) {
    parked.insert(read)
    for index in segments.indices where segments[index].end > read.range.lowerBound {
      let wasWaitedFor = segments[index].isWaitedFor
      updateWake(of: index)
      if !wasWaitedFor, segments[index].isWaitedFor, !segments[index].isSent,
        let transfer = segments[index].transfer
      {
        actions.raises.append(transfer)
      }
      // What it waits for may have arrived, with nothing more to come that would write it out.
      let segment = segments[index]
      if let writer = segment.writer, segment.handedOverEnd < segment.position,
        segment.handedOverEnd < read.range.upperBound, read.range.lowerBound < segment.position
      {
        actions.flushes.append(writer)
      }
    }
  }

  private mutating func updateWake(of index: Int) {
    let segment = segments[index]
    if let pieces {
      segments[index].wakeAt = nextPieceEnd(in: segment, pieces)
      return
    }
    segments[index].wakeAt = parked.nextWake(
      in: segment.start..<segment.end, after: segment.position, partly: length == nil)
  }

  /// The end of the next piece that a read waits for, as far as the segment brings it.
  private func nextPieceEnd(in segment: Segment, _ pieces: PieceTable) -> Int64? {
    var least: Int64?
    for read in parked.reads {
      let range = clamped(read.range)
      guard range.upperBound > segment.start, range.lowerBound < segment.end, !range.isEmpty else {
        if range.lowerBound >= segment.end { break }
        continue
      }
      let lower = max(range.lowerBound, segment.position)
      guard lower < segment.end else { continue }
      let end = min(pieces.wholePieces(around: lower..<(lower + 1)).upperBound, segment.end)
      if end > segment.position { least = min(least ?? end, end) }
    }
    return least
  }

  /// Whether a parked read can be answered now; of a growing file, also in part.
  private func canAnswer(_ read: ParkedRead) -> Bool {
    let range = clamped(read.range)
    if range.isEmpty || extents.contains(range) { return true }
    return length == nil && extents.presentEnd(from: range.lowerBound) > range.lowerBound
  }

  // MARK: Planning

  /// Starts what is wanted now and is neither present nor in flight.
  mutating func plan(now: ContinuousClock.Instant, into actions: inout VersionActions) {
    guard !isComplete, !isSuperseded, permanentFailure == nil, !isAwaitingLocation else { return }
    if let retryAt, now < retryAt { return }
    if isSequential || length == nil {
      planSequential(now: now, into: &actions)
      return
    }
    guard let length else { return }
    if pieces != nil { planSuspects(now: now, into: &actions) }
    let extents = settledExtents
    let flights = self.flights(now: now)
    let mayReadAhead = hasReader(now: now) && !wishes.isPaused
    let plan = FetchPlanner().plan(
      length: length, extents: extents, flights: flights, demands: demands,
      streams: mayReadAhead ? readers : [],
      predictions: mayReadAhead && readAheadLimit == nil ? strides.predictions(length: length) : [],
      limits: FetchPlanner.Limits(
        connections: parallelism.target,
        // A read does not wait for what is fetched for nobody: one request more is allowed.
        demandConnections: requestLimit + (segments.contains(where: \.isPrefetch) ? 1 : 0),
        // Both or neither: a guess of one would say nothing about the line.
        roundTrip: roundTrip,
        connectionRate: measuredRoundTrip == nil || streams.isCautious ? nil : connectionRate))
    for cut in plan.cuts {
      guard let index = segments.firstIndex(where: { $0.id.rawValue == cut.id }) else { continue }
      segments[index].end = min(segments[index].end, cut.end)
    }
    for range in plan.starts {
      actions.starts.append(addSegment(range: range, isWhole: false, now: now))
    }
    if isPrefetching { planPrefetch(length: length, now: now, into: &actions) }
  }

  /// Gives the connections that nobody needs to the bytes that nobody has asked to read.
  private mutating func planPrefetch(
    length: Int64, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    // A cache that takes nothing would have them fetched again and again.
    guard parked.isEmpty, readAheadLimit == nil else { return }
    // One who reads gets the half of them at any time.
    let target = parallelism.target
    let connections = hasReader(now: now) ? max(1, target / 2) : target
    let plan = FetchPlanner().planPrefetch(
      length: length, extents: settledExtents, flights: flights(now: now),
      limits: FetchPlanner.Limits(
        connections: connections, demandConnections: requestLimit, roundTrip: roundTrip,
        connectionRate: connectionRate))
    for cut in plan.cuts {
      guard let index = segments.firstIndex(where: { $0.id.rawValue == cut.id }) else { continue }
      segments[index].end = min(segments[index].end, cut.end)
    }
    for range in plan.starts {
      actions.starts.append(
        addSegment(range: range, isWhole: false, isPrefetch: true, now: now))
    }
  }

  /// What is in flight, but for what is fetched again from one server alone.
  private func flights(now: ContinuousClock.Instant) -> [FetchPlanner.Flight] {
    segments.lazy.filter { $0.suspectPiece == nil }.map {
      FetchPlanner.Flight(
        id: $0.id.rawValue, start: $0.storedEnd, position: $0.position, end: $0.end,
        rate: $0.rate(now: now))
    }
  }

  /// What need not be asked for.
  private var settledExtents: ExtentSet { pieces?.settled(with: extents) ?? extents }

  /// What the parked reads need: whole pieces, where the file has such.
  private var demands: [ByteRange] {
    let ranges = parked.reads.map { clamped($0.range) }
    guard let pieces else { return ranges }
    var demands: [ByteRange] = []
    for range in ranges.map({ pieces.wholePieces(around: $0) }) where demands.last != range {
      demands.append(range)
    }
    return demands
  }

  private var readers: [FetchPlanner.Reader] {
    if pieces == nil, readAheadLimit == nil { return streams.readers }
    let readers = streams.readers.map {
      FetchPlanner.Reader(
        cursor: $0.cursor, window: min($0.window, readAheadLimit ?? Int64.max))
    }
    guard let pieces, let length else { return readers }
    // A part of a piece is of no use to anybody.
    return readers.map { reader in
      let cursor = min(reader.cursor, length)
      let end = cursor + min(reader.window, length - cursor)
      guard end > cursor else { return reader }
      let whole = pieces.wholePieces(around: (end - 1)..<end).upperBound
      return FetchPlanner.Reader(cursor: reader.cursor, window: max(reader.window, whole - cursor))
    }
  }

  /// Asks for pieces that were wrong, each from one server alone, so that it is known who has brought it.
  private mutating func planSuspects(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    for index in pieces?.suspects ?? [] {
      guard let table = pieces, !table.isChecking(piece: index),
        !segments.contains(where: { $0.suspectPiece == index }),
        segments.count < requestLimit
      else { continue }
      let range = table.hashes.range(ofPiece: index, length: table.length)
      guard isPrefetching || parked.reads.contains(where: { clamped($0.range).overlaps(range) })
      else { continue }
      _ = pieces?.restart(piece: index)
      var segment = addSegment(range: range, isWhole: false, now: now)
      segment.suspectPiece = index
      segment.excludedMirrors = table.excluded(fromPiece: index)
      segments[segments.count - 1] = segment
      actions.starts.append(segment)
    }
  }

  /// The parts of `range` that have not arrived: what a writer stores of what it has.
  func absent(in range: ByteRange) -> [ByteRange] {
    pieces?.holes(in: range, extents: extents) ?? extents.holes(in: range)
  }

  /// Whether somebody is reading: read-ahead for one who has gone would never end.
  func hasReader(now: ContinuousClock.Instant) -> Bool {
    !parked.isEmpty || lastReadAt.map { now - $0 < FileSettings.readerMemory } ?? false
  }

  private mutating func planSequential(
    now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    let isPrefetch = isPrefetching && readAheadLimit == nil
    guard !parked.isEmpty || isPrefetch, segments.isEmpty,
      // What has arrived is being hashed, and may be all.
      pieces?.isWanting(extents: extents) != false
    else { return }
    actions.starts.append(
      addSegment(
        range: 0..<(length ?? Int64.max), isWhole: true, isPrefetch: parked.isEmpty, now: now))
  }

  /// Enters a request that is about to be sent, or has been.
  mutating func addSegment(
    range: ByteRange, isWhole: Bool, isPrefetch: Bool = false, hedgeOf: SegmentID? = nil,
    now: ContinuousClock.Instant
  ) -> Segment {
    lastSegment += 1
    let segment = Segment(
      id: SegmentID(rawValue: lastSegment), isWhole: isWhole, isPrefetch: isPrefetch,
      hedgeOf: hedgeOf,
      start: range.lowerBound, end: range.upperBound, position: range.lowerBound,
      handedOverEnd: range.lowerBound, storedEnd: range.lowerBound,
      lastProgressAt: now)
    segments.append(segment)
    updateWake(of: segments.count - 1)
    return segment
  }

  // MARK: Progress

  /// A request on a reused connection took so long to be answered, in seconds.
  mutating func noteRoundTrip(_ seconds: Double) {
    measuredRoundTrip = measuredRoundTrip.map { $0 * 0.7 + seconds * 0.3 } ?? seconds
  }

  /// The furthest byte in order from the file's start that has arrived, stored or not.
  var arrivedEnd: Int64 {
    max(extents.presentEnd(from: 0), segments.first { $0.isWhole }?.position ?? 0)
  }

  /// Whether the segment is a stream of the whole.
  func isWhole(_ id: SegmentID) -> Bool { segments.first { $0.id == id }?.isWhole == true }

  mutating func setWriter(_ writer: SegmentWriter, of id: SegmentID) {
    if let index = index(of: id) { segments[index].writer = writer }
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

  private func index(of id: SegmentID) -> Int? { segments.firstIndex { $0.id == id } }

  /// What the writer of a segment does with the bytes that it has gathered.
  struct Advice {
    /// Write them out now: a read waits for them.
    var mustFlush: Bool
    /// Where the segment is to end.
    var end: Int64
    /// The request that was to bring the same, to be cancelled.
    var rival: ExchangeID?
    /// The server that was to bring it, where another one was asked when it was silent.
    var silentMirror: Int?
  }

  /// Bytes up to `position` have arrived; nil if the segment is no longer wanted.
  mutating func advance(
    _ id: SegmentID, to position: Int64, now: ContinuousClock.Instant
  ) -> Advice? {
    guard let index = index(of: id), !isSuperseded else { return nil }
    if segments[index].firstByteAt == nil { segments[index].firstByteAt = now }
    segments[index].position = position
    segments[index].noteProgress(now: now)
    segments[index].awaitsStorage = false
    if segments[index].isThrottled {
      segments[index].isThrottled = false
      // Until now it was not the server that was slow.
      segments[index].lastProgressAt = now
    }
    let mustFlush = segments[index].wakeAt.map { position >= $0 } ?? false
    // Once is enough.
    if mustFlush { updateWake(of: index) }
    let silentMirror = segments[index].hedgeOf.flatMap { mirror(of: $0) }
    return Advice(
      mustFlush: mustFlush, end: segments[index].end,
      // A trickle is no progress.
      rival: segments[index].lastProgressAt == now ? endRival(ofSegmentAt: index) : nil,
      silentMirror: silentMirror == segments[index].mirror ? nil : silentMirror)
  }

  /// What has arrived up to `end` is on its way into the cache file.
  mutating func handedOver(_ id: SegmentID, to end: Int64) {
    guard let index = index(of: id) else { return }
    segments[index].handedOverEnd = max(segments[index].handedOverEnd, end)
  }

  /// A request is paused until the disk has taken what came before.
  mutating func awaitsStorage(_ id: SegmentID) {
    if let index = index(of: id) { segments[index].awaitsStorage = true }
  }

  /// `range` is in the cache file now; `idle` is how long the network thread has waited so far.
  mutating func stored(
    _ id: SegmentID, _ range: ByteRange, idle: Double, now: ContinuousClock.Instant,
    into actions: inout VersionActions
  ) {
    let added: Int64
    if pieces != nil {
      added = noteArrival(of: range, by: id, into: &actions)
    } else {
      added = extents.insert(range)
    }
    failureCount = 0
    retryAt = nil
    unreachableSince = nil
    lastStoredAt = now
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
    case .outdated: return outcome
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

  /// What the cache held of `range` is gone, as far as nobody has seen it yet.
  mutating func forgetUnverified(_ range: ByteRange) { pieces?.forget(range) }

  /// The complete length has become known: the body has ended.
  mutating func setLength(_ newLength: Int64, into actions: inout VersionActions) {
    length = newLength
    actions.wakes += parked.removeAll(where: canAnswer)
  }

  /// A request has ended, well or not; what it did not bring is planned anew.
  mutating func removeSegment(_ id: SegmentID) {
    segments.removeAll { $0.id == id }
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

  // MARK: Failure

  /// Fails every read that waits, and remembers that for a moment.
  mutating func failParked(
    _ error: FileError, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) {
    lastFailure = error
    prefetchFailure = error
    let reads = parked.removeAll { _ in true }
    remember(reads.map(\.range), error, now: now)
    actions.failures += reads.map { ($0, error) }
    forgetBackoff()
  }

  /// Nobody waits any more for what was to be tried again: who comes next does not wait for it either.
  private mutating func forgetBackoff() {
    failureCount = 0
    retryAt = nil
  }

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
    actions.cancels += segments.compactMap(\.transfer)
  }

  /// The process was suspended for `delay`: time during which no server could answer does not count.
  mutating func postpone(by delay: Duration) {
    parked.postpone(by: delay)
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
      if parked.isEmpty { forgetBackoff() }
    }
    failReadsOutOfReach(now: now, into: &actions)
    let patience = settings.responsePatience
    planHedges(now: now, patience: patience, allowance: hedgeAllowance, into: &actions)
    for segment in segments {
      var patience = patience
      if segment.isWaitedFor, let spare = sparePatience(segment.mirror) {
        patience = min(patience, spare)
      }
      guard segment.isSent || segment.firstByteAt != nil, !segment.isHeldByDisk,
        !segment.isThrottled
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

  /// Whether time alone can change something here.
  var needsWatch: Bool { !parked.isEmpty || !segments.isEmpty }
}

/// Turns instants into seconds since an arbitrary start.
struct MonotonicSeconds: Sendable {
  private let origin = ContinuousClock.now

  func seconds(at instant: ContinuousClock.Instant) -> Double {
    (instant - origin) / .seconds(1)
  }
}
