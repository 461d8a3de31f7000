package import HTTPTransferCore

/// The segments of one download: present bytes, bytes in flight, and the next requests.
///
/// A value without I/O. A segment keeps its range while it waits for a retry, so each counts its
/// own failures.
package struct SegmentTable: Sendable {
  /// A part of the file that a series of exchanges fetches.
  package struct Segment: FetchSegment, Sendable {
    package let id: Int
    /// Whether the whole representation is requested, not a range of it.
    package var isWhole: Bool
    /// The first byte that its current exchange requested.
    package var start: Int64
    package var position: Int64
    /// The end of the stored bytes.
    package var storedEnd: Int64
    package var end: Int64
    /// The number of failures without progress between them.
    package private(set) var failureCount = 0
    private var progress = StoredProgress()
    /// Whether no exchange is in flight for it: it failed and waits for a retry.
    package var isWaiting = false
    package var firstByteAt: ContinuousClock.Instant?
    package var lastProgressAt: ContinuousClock.Instant
    /// The position at the last progress.
    private var progressPosition: Int64
    /// The piece that it fetches again from one server alone; nil if it fetches no such piece.
    package var suspectPiece: Int?
    /// The servers that have sent this piece with a wrong hash; used only if no other is left.
    package var excludedMirrors: Set<Int> = []
    /// The server that was last asked for it.
    package fileprivate(set) var mirror: Int?
    package var hedgeOf: Int?

    fileprivate init(
      id: Int, range: ByteRange, isWhole: Bool, hedgeOf: Int?, now: ContinuousClock.Instant
    ) {
      self.id = id
      self.isWhole = isWhole
      self.hedgeOf = hedgeOf
      start = range.lowerBound
      position = range.lowerBound
      storedEnd = range.lowerBound
      progressPosition = range.lowerBound
      end = range.upperBound
      lastProgressAt = now
    }

    package mutating func stop() { end = position }

    fileprivate mutating func recordProgress(now: ContinuousClock.Instant) {
      guard position - progressPosition >= FetchConstants.minimumProgress || position >= end
      else { return }
      progressPosition = position
      lastProgressAt = now
    }

    fileprivate mutating func recordFailure() { failureCount += 1 }

    /// Records stored bytes, of which `enough` end a series of failures.
    fileprivate mutating func recordStored(_ byteCount: Int64, enough: Int64) {
      if progress.ends(with: byteCount, enough: enough) { failureCount = 0 }
    }

    /// Starts a new request for it at `start`.
    fileprivate mutating func restart(at start: Int64, now: ContinuousClock.Instant) {
      isWaiting = false
      self.start = start
      position = start
      progressPosition = start
      lastProgressAt = now
    }

    package var isHedgeable: Bool { !isWaiting && !isWhole && suspectPiece == nil }
  }

  package private(set) var segments: [Segment] = []
  package private(set) var extents = ExtentSet()
  /// The bytes that were handed over and are not stored yet.
  private var handed = ExtentSet()

  /// The wanted bytes; the end is ``Int64/maximumFileOffset`` while the length is unknown.
  package private(set) var target: ByteRange

  /// Whether ``target`` ends at the end of the file or of the wanted range.
  package private(set) var isLengthKnown = false

  package private(set) var parallelism: ParallelismController
  /// The time from request to response, in seconds: a moving average over reused connections.
  package private(set) var roundTrip: Double? = FetchConstants.firstRoundTrip
  private var connectionRate: Double?
  /// When a rate limit last held a segment back.
  private var throttledAt: ContinuousClock.Instant?
  private let maximum: Int
  /// Whether the download determines its best number of connections.
  private let isAdaptive: Bool
  /// Whether it begins with several connections because they were worthwhile before.
  private var isRecalled = false
  private var lastID = 0
  private let origin = ContinuousClock.now

  /// How far beyond its first hole a download fetches.
  ///
  /// The bytes arrive nearly in order, and an interrupted download leaves one run rather than many.
  private static let window: Int64 = 256 << 20

  /// - Parameters:
  ///   - range: the wanted bytes; nil for all.
  ///   - connections: the number of requests that may be in flight.
  package init(range: ByteRange?, connections: Connections) {
    target = range ?? 0..<Int64.maximumFileOffset
    maximum = connections.maximum
    switch connections {
    case .adaptive: isAdaptive = true
    case .exactly: isAdaptive = false
    }
    parallelism = ParallelismController(initial: isAdaptive ? 1 : maximum, maximum: maximum)
  }

  /// Begins with as many connections as were worthwhile before, unless their number is fixed.
  package mutating func recall(connections: Int?) {
    guard isAdaptive, let connections else { return }
    parallelism = ParallelismController(learned: connections, maximum: maximum)
    isRecalled = parallelism.target > 1
  }

  /// Records how many connections were worthwhile at `origin`, unless their number is fixed.
  package func report(to memory: inout HostMemory, of origin: String, today: Int) {
    guard isAdaptive, let proven = parallelism.proven else { return }
    // The maximum of this download is no evidence against a greater number.
    let known = proven == maximum ? memory.connections(for: origin, today: today) : nil
    memory.note(max(proven, known ?? 0), for: origin, today: today)
  }

  // MARK: Known state

  /// Whether every wanted byte is present.
  package var isComplete: Bool { isLengthKnown && extents.firstHole(in: target) == nil }

  /// The number of wanted bytes; nil while unknown.
  package var wantedByteCount: Int64? { isLengthKnown ? target.byteCount : nil }

  /// The number of wanted bytes that are present.
  package var presentByteCount: Int64 {
    target.byteCount - extents.holes(in: target).reduce(0) { $0 + $1.byteCount }
  }

  /// How many stored bytes end a series of failures.
  package var progressByteCount: Int64 {
    FetchConstants.progressByteCount(of: target.byteCount)
  }

  /// Takes over the bytes that an earlier run has stored.
  package mutating func adopt(_ present: ExtentSet) { extents = present }

  /// Forgets the present bytes.
  package mutating func forgetExtents() {
    extents = ExtentSet()
    handed = ExtentSet()
  }

  /// Forgets present bytes that turned out to be wrong.
  ///
  /// - Returns: how many of them were present.
  package mutating func forget(_ range: ByteRange) -> Int64 {
    // Bytes of it that wait to be stored are not wanted; they must not block a new request.
    handed.remove(range)
    return extents.remove(range)
  }

  /// Records the complete length of the representation.
  package mutating func setLength(_ length: Int64) {
    target = min(target.lowerBound, length)..<min(target.upperBound, length)
    isLengthKnown = true
    for index in segments.indices {
      segments[index].end = min(
        segments[index].end, max(target.upperBound, segments[index].start))
    }
  }

  /// Forgets the length and resets the target to `range`, to fetch another version.
  package mutating func reset(range: ByteRange?) {
    target = range ?? 0..<Int64.maximumFileOffset
    isLengthKnown = false
    forgetExtents()
    segments = []
  }

  package subscript(id: Int) -> Segment? { segments.first { $0.id == id } }

  /// Records that a request on a reused connection was answered after `duration`.
  package mutating func recordRoundTrip(_ duration: Duration) {
    roundTrip.average(in: duration / .seconds(1))
  }

  /// The number of segments with an exchange in flight.
  package var activeCount: Int { segments.reduce(0) { $0 + ($1.isWaiting ? 0 : 1) } }

  /// The number of segments whose current exchange has brought a byte.
  private var flowingCount: Int { segments.reduce(0) { $0 + ($1.firstByteAt == nil ? 0 : 1) } }

  // MARK: Planning

  /// Adds a segment.
  package mutating func add(_ range: ByteRange, isWhole: Bool) -> Segment {
    enter(range, isWhole: isWhole, now: .now)
  }

  private mutating func enter(
    _ range: ByteRange, isWhole: Bool = false, hedgeOf: Int? = nil,
    now: ContinuousClock.Instant
  ) -> Segment {
    lastID += 1
    let segment = Segment(
      id: lastID, range: range, isWhole: isWhole, hedgeOf: hedgeOf, now: now)
    segments.append(segment)
    return segment
  }

  /// The number of segments that can be added.
  package var freeCount: Int { max(0, maximum - segments.count) }

  /// Whether a segment fetches a wrong piece again.
  package func isFetching(piece: Int) -> Bool {
    segments.contains { $0.suspectPiece == piece }
  }

  /// Adds a segment that fetches a whole piece again from one server alone.
  ///
  /// - Returns: nil if the piece is already in flight, or if there is no connection for it.
  package mutating func add(
    piece: Int, _ range: ByteRange, except mirrors: Set<Int>
  ) -> Segment? {
    guard freeCount > 0, !isFetching(piece: piece) else { return nil }
    let id = enter(range, now: .now).id
    segments[segments.count - 1].suspectPiece = piece
    segments[segments.count - 1].excludedMirrors = mirrors
    return self[id]
  }

  /// The first range to request while the length is unknown, which its response also brings.
  package var firstRange: ByteRange {
    let start = extents.firstHole(in: target)?.lowerBound ?? target.lowerBound
    let end = extents.firstHole(in: target)?.upperBound ?? target.upperBound
    // A single connection should not wait for a round trip in between. Without a length, that
    // requests everything.
    let byteCount = isRecalled ? Self.sharedFirstByteCount : Self.firstByteCount
    return maximum == 1 ? start..<end : start..<min(end, start + byteCount)
  }

  /// The size of the first request.
  ///
  /// A large file's other segments are planned before it ends, and a small file is complete with
  /// it.
  static let firstByteCount: Int64 = 64 << 20

  /// The size if other connections should take a part of the file as soon as its length is known.
  static let sharedFirstByteCount: Int64 = 4 << 20

  /// Starts segments for wanted bytes that are neither present nor in flight, and cuts others for
  /// them.
  ///
  /// - Parameters:
  ///   - excluded: the bytes that other requests fetch, such as those of wrong pieces.
  ///   - now: the time.
  /// - Returns: the new segments, to be sent.
  package mutating func plan(
    except excluded: ExtentSet = ExtentSet(), now: ContinuousClock.Instant
  ) -> [Segment] {
    let extents = extents.union(excluded)
    guard isLengthKnown, let hole = extents.firstHole(in: target) else { return [] }
    // The planner sees a segment but not its hedge, and it must not cut suspect pieces. But each of
    // those has a connection.
    let flights = segments.filter { $0.suspectPiece == nil && $0.hedgeOf == nil }.map {
      FetchPlanner.Flight(
        id: $0.id, start: $0.storedEnd, position: $0.position, end: $0.end, rate: $0.rate(now: now))
    }
    let others = segments.count - flights.count
    guard others < maximum else { return [] }
    let plan = FetchPlanner().plan(
      length: extents.holes(in: target).last?.upperBound ?? target.upperBound, extents: extents,
      flights: flights, demands: [],
      // The planner divides the window among the connections.
      streams: [
        FetchPlanner.Reader(
          cursor: hole.lowerBound,
          window: isRecalled ? min(Self.window, target.byteCount) : Self.window)
      ],
      limits: FetchPlanner.Limits(
        connections: max(1, parallelism.target - others), demandConnections: maximum - others,
        roundTrip: roundTrip ?? 0, connectionRate: connectionRate))
    for cut in plan.cuts {
      guard let index = segments.firstIndex(where: { $0.id == cut.id }) else { continue }
      segments[index].end = min(segments[index].end, cut.end)
    }
    var starts = plan.starts
    if starts.isEmpty, segments.isEmpty {
      // Read-ahead skips small holes, which a reader would reach later; a download must fill them.
      starts = [hole.lowerBound..<min(hole.upperBound, hole.lowerBound + Self.firstByteCount)]
    }
    return starts.map { enter($0, now: now) }
  }

  // MARK: Progress

  /// Records that bytes up to `position` have arrived.
  ///
  /// - Parameters:
  ///   - id: the segment.
  ///   - position: the offset after the last of them.
  ///   - idle: how long the network thread has waited for its sockets so far, in seconds.
  ///   - now: the time.
  /// - Returns: the end of the segment; nil if the segment no longer exists.
  package mutating func advance(
    _ id: Int, to position: Int64, idle: Double, now: ContinuousClock.Instant
  ) -> Int64? {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return nil }
    let added = max(0, position - segments[index].position)
    segments[index].position += added
    segments[index].recordProgress(now: now)
    if segments[index].firstByteAt == nil { segments[index].firstByteAt = now }
    // The throughput under a user's limit says nothing about the network.
    parallelism.note(
      byteCount: added, active: activeCount, flowing: flowingCount, idle: idle,
      isWaited: !isThrottled(now: now), now: (now - origin) / .seconds(1))
    return segments[index].end
  }

  /// The parts of `range` that are absent.
  package func holes(in range: ByteRange) -> [ByteRange] { extents.holes(in: range) }

  /// Records that bytes are handed over to be stored.
  ///
  /// - Returns: the parts of `range` that are wanted, absent, and not handed over already.
  package mutating func enqueue(_ range: ByteRange) -> [ByteRange] {
    let runs = extents.holes(in: range.clamped(to: target)).flatMap { handed.holes(in: $0) }
    for run in runs { handed.insert(run) }
    return runs
  }

  /// Records that bytes of a segment were stored, or were present before.
  ///
  /// - Parameters:
  ///   - id: the segment that brought them.
  ///   - range: the bytes.
  ///   - runs: the result of ``enqueue(_:)`` for them.
  ///   - kept: the parts of `runs` that are still wanted.
  ///   - now: the time.
  /// - Returns: how many of the bytes were absent before.
  @discardableResult
  package mutating func stored(
    _ id: Int, _ range: ByteRange, runs: [ByteRange], kept: [ByteRange],
    now: ContinuousClock.Instant
  ) -> Int64 {
    for run in runs { handed.remove(run) }
    let added = kept.reduce(0) { $0 + extents.insert($1) }
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return added }
    segments[index].storedEnd = max(
      segments[index].storedEnd, range.clamped(to: target).upperBound)
    segments[index].recordStored(added, enough: progressByteCount)
    if let rate = segments[index].rate(now: now) {
      connectionRate.average(in: rate)
    }
    return added
  }

  /// Records that a rate limit holds a segment back.
  package mutating func throttled(now: ContinuousClock.Instant) { throttledAt = now }

  private func isThrottled(now: ContinuousClock.Instant) -> Bool {
    throttledAt.map { now - $0 < FetchConstants.throttleMemory } ?? false
  }

  /// Removes a segment that is done, or that must be planned again.
  ///
  /// Its hedge, if any, continues as an ordinary segment.
  package mutating func remove(_ id: Int) {
    segments.removeAll { $0.id == id }
    for index in segments.indices where segments[index].hedgeOf == id {
      segments[index].hedgeOf = nil
    }
  }

  package mutating func removeAll() { segments = [] }

  /// Records that a segment failed and waits; its stored bytes need not be fetched again.
  ///
  /// - Parameters:
  ///   - id: the segment.
  ///   - isCounted: whether the failure counts against the server.
  /// - Returns: the number of consecutive failures.
  @discardableResult
  package mutating func fail(_ id: Int, isCounted: Bool = true) -> Int {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return 0 }
    if isCounted { segments[index].recordFailure() }
    // Its hedge continues as an ordinary segment, and fetches the rest of the range from its start
    // on.
    if let hedge = segments.firstIndex(where: { $0.hedgeOf == id }) {
      segments[hedge].hedgeOf = nil
      segments[index].end = max(
        segments[index].storedEnd, min(segments[index].end, segments[hedge].start))
    }
    segments[index].isWaiting = true
    segments[index].position = segments[index].storedEnd
    segments[index].firstByteAt = nil
    return segments[index].failureCount
  }

  /// Restarts a waiting segment after its last stored byte.
  ///
  /// - Returns: the segment; nil if it has no bytes left to fetch.
  package mutating func retry(_ id: Int, now: ContinuousClock.Instant = .now) -> Segment? {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return nil }
    let start = segments[index].isWhole ? 0 : segments[index].storedEnd
    guard start < segments[index].end else {
      remove(id)
      return nil
    }
    segments[index].restart(at: start, now: now)
    if segments[index].isWhole { segments[index].storedEnd = start }
    return segments[index]
  }

  /// Records that a segment is requested from a server.
  package mutating func recordAsked(_ id: Int, of mirror: Int) {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return }
    segments[index].mirror = mirror
  }

  /// Moves a waiting segment back to its first byte, because its stored bytes were forgotten.
  package mutating func rewind(_ id: Int, to start: Int64) {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return }
    segments[index].storedEnd = start
  }

  // MARK: Hedging

  /// Adds a second request for bytes that requests fail to bring.
  ///
  /// - Parameters:
  ///   - now: the time.
  ///   - delay: how long the requests have brought no bytes.
  ///   - allowance: the maximum number of hedges.
  ///   - isServed: whether the exchange of a segment waits only for its server.
  /// - Returns: the hedges, to be sent.
  package mutating func planHedges(
    now: ContinuousClock.Instant, after delay: Duration, allowance: Int,
    isServed: (Int) -> Bool
  ) -> [Segment] {
    guard isLengthKnown, !isThrottled(now: now) else { return [] }
    let planner = HedgePlanner(delay: delay)
    var hedges: [Segment] = []
    for segment in segments {
      guard hedges.count < allowance, segments.count < maximum else { break }
      guard isServed(segment.id),
        let range = planner.hedge(of: segment, among: segments, now: now)
      else { continue }
      hedges.append(enter(range, hedgeOf: segment.id, now: now))
    }
    return hedges
  }

  /// The server that does not bring the bytes for which a segment is a hedge.
  ///
  /// Nil if it is no hedge, or if the other request has ended.
  package func silentMirror(of segment: Segment) -> Int? {
    segment.hedgeOf.flatMap { self[$0]?.mirror }
  }

  /// Ends the competing segment of one that has brought bytes.
  ///
  /// - Returns: the other segment, whose exchange must be ended; nil if there is none.
  package mutating func endRival(of id: Int) -> Int? {
    guard let index = segments.firstIndex(where: { $0.id == id }),
      let rival = segments.endRival(ofSegmentAt: index)
    else { return nil }
    return segments[rival].id
  }

  /// Uses fewer connections, because the server refuses or drops some.
  package mutating func stepDown(now: ContinuousClock.Instant) {
    parallelism.stepDown(now: (now - origin) / .seconds(1))
  }
}
