package import HTTPTransferCore

/// The segments of one download: what is present, what is in flight, what is asked for next.
///
/// A value without I/O. A segment keeps its range while it waits to be tried again, so that each
/// counts its own failures.
package struct SegmentTable: Sendable {
  /// A part of the file that one exchange after another brings.
  package struct Segment: FetchSegment, Sendable {
    package let id: Int
    /// Whether the whole representation is asked for, not a range of it.
    package var isWhole: Bool
    /// The first byte that its present exchange was asked for.
    package var start: Int64
    package var position: Int64
    /// The end of what is stored.
    package var storedEnd: Int64
    package var end: Int64
    /// How often in a row it has failed without bringing a byte.
    package var failureCount = 0
    /// Whether no exchange is under way for it: it has failed and will be tried again.
    package var isWaiting = false
    package var firstByteAt: ContinuousClock.Instant?
    package var lastProgressAt: ContinuousClock.Instant
    /// Where its position was then.
    private var progressPosition: Int64
    /// The piece that it fetches again from one server alone; nil if it fetches no such piece.
    package var suspectPiece: Int?
    /// The servers that must not be asked for it, while there are others.
    package var excludedMirrors: Set<Int> = []
    /// The server that was asked for it last.
    package fileprivate(set) var mirror: Int?
    package var hedgeOf: Int?

    /// Fewer bytes than these are no progress, except the last ones.
    private static let leastProgress: Int64 = 1024

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

    fileprivate mutating func noteProgress(now: ContinuousClock.Instant) {
      guard position - progressPosition >= Self.leastProgress || position >= end else { return }
      progressPosition = position
      lastProgressAt = now
    }

    /// A new request is sent for it, from `start` on.
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
  /// What was handed over to be stored and is not stored yet.
  private var handed = ExtentSet()

  /// The bytes wanted; its end is ``Int64/greatestFileOffset`` while the length is unknown.
  package private(set) var target: ByteRange

  /// Whether ``target`` ends where the file, or the range wanted, ends.
  package private(set) var isLengthKnown = false

  package private(set) var parallelism: ParallelismController
  /// The time from request to response, in seconds: a moving average over reused connections.
  package private(set) var roundTrip: Double? = FetchConstants.firstRoundTrip
  private var connectionRate: Double?
  /// When a rate limit last held a segment back.
  private var throttledAt: ContinuousClock.Instant?
  private let maximum: Int
  /// Whether the download finds its best number of connections.
  private let isAdaptive: Bool
  /// Whether it begins with several connections because they have paid before.
  private var isRecalled = false
  private var lastID = 0
  private let origin = ContinuousClock.now

  /// How far ahead of its first hole a download works: so that it comes nearly in order, and what
  /// an interrupted one has left is one run rather than many.
  private static let window: Int64 = 256 << 20

  /// - Parameters:
  ///   - range: the bytes wanted; nil for all.
  ///   - connections: how many requests may be in flight.
  package init(range: ByteRange?, connections: Connections) {
    target = range ?? 0..<Int64.greatestFileOffset
    maximum = connections.maximum
    switch connections {
    case .adaptive: isAdaptive = true
    case .exactly: isAdaptive = false
    }
    parallelism = ParallelismController(initial: isAdaptive ? 1 : maximum, maximum: maximum)
  }

  /// Begins with as many connections as have paid before, unless their number is fixed.
  package mutating func recall(connections: Int?) {
    guard isAdaptive, let connections else { return }
    parallelism = ParallelismController(learned: connections, maximum: maximum)
    isRecalled = parallelism.target > 1
  }

  /// Tells `memory` how many connections have paid at `origin`, unless their number is fixed.
  package func report(to memory: inout HostMemory, of origin: String, today: Int) {
    guard isAdaptive, let proven = parallelism.proven else { return }
    // The maximum of this download says nothing against a greater number.
    let known = proven == maximum ? memory.connections(for: origin, today: today) : nil
    memory.note(max(proven, known ?? 0), for: origin, today: today)
  }

  // MARK: What is known

  /// Whether every byte wanted is there.
  package var isComplete: Bool { isLengthKnown && extents.firstHole(in: target) == nil }

  /// The number of bytes wanted; nil while unknown.
  package var wantedByteCount: Int64? { isLengthKnown ? target.byteCount : nil }

  /// The bytes wanted that are present.
  package var presentByteCount: Int64 {
    target.byteCount - extents.holes(in: target).reduce(0) { $0 + $1.byteCount }
  }

  /// Takes over what an earlier run has stored.
  package mutating func adopt(_ present: ExtentSet) { extents = present }

  /// Forgets what is present.
  package mutating func forgetExtents() {
    extents = ExtentSet()
    handed = ExtentSet()
  }

  /// Forgets a part of what is present: it turned out wrong.
  ///
  /// - Returns: how many bytes of it were present.
  package mutating func forget(_ range: ByteRange) -> Int64 {
    // What is still to be stored of it is no longer wanted, and keeps nobody from bringing it.
    handed.remove(range)
    return extents.remove(range)
  }

  /// Takes note of the complete length of the representation.
  package mutating func setLength(_ length: Int64) {
    target = min(target.lowerBound, length)..<min(target.upperBound, length)
    isLengthKnown = true
    for index in segments.indices {
      segments[index].end = min(
        segments[index].end, max(target.upperBound, segments[index].start))
    }
  }

  /// Forgets the length and goes back to `range`: another version is to be fetched.
  package mutating func reset(range: ByteRange?) {
    target = range ?? 0..<Int64.greatestFileOffset
    isLengthKnown = false
    forgetExtents()
    segments = []
  }

  package subscript(id: Int) -> Segment? { segments.first { $0.id == id } }

  /// A request on a reused connection was answered after `duration`.
  package mutating func noteRoundTrip(_ duration: Duration) {
    roundTrip.average(in: duration / .seconds(1))
  }

  /// The segments with an exchange under way.
  package var activeCount: Int { segments.reduce(0) { $0 + ($1.isWaiting ? 0 : 1) } }

  /// The segments whose present exchange has brought a byte.
  private var flowingCount: Int { segments.reduce(0) { $0 + ($1.firstByteAt == nil ? 0 : 1) } }

  // MARK: Planning

  /// Enters a segment.
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

  /// Enters a segment that fetches a whole piece again from one server alone; nil if it is under way,
  /// or if there is no connection for it.
  package mutating func add(
    piece: Int, _ range: ByteRange, except mirrors: Set<Int>
  ) -> Segment? {
    guard segments.count < maximum, !segments.contains(where: { $0.suspectPiece == piece }) else {
      return nil
    }
    let id = enter(range, now: .now).id
    segments[segments.count - 1].suspectPiece = piece
    segments[segments.count - 1].excludedMirrors = mirrors
    return self[id]
  }

  /// The first range to ask for, while nothing is known: it brings the length too.
  package var firstRange: ByteRange {
    let start = extents.firstHole(in: target)?.lowerBound ?? target.lowerBound
    let end = extents.firstHole(in: target)?.upperBound ?? target.upperBound
    // A single connection is not to wait for a round trip in between; without a length that asks for
    // all that there is.
    let byteCount = isRecalled ? Self.sharedFirstByteCount : Self.firstByteCount
    return maximum == 1 ? start..<end : start..<min(end, start + byteCount)
  }

  /// How much the first request asks for: a large file's other segments are planned before it ends,
  /// and a small one is whole with it.
  static let firstByteCount: Int64 = 64 << 20

  /// The same if other connections are to take a part of the file as soon as its length is known.
  static let sharedFirstByteCount: Int64 = 4 << 20

  /// Starts what is wanted, neither present nor in flight, and cuts what others are to bring.
  ///
  /// - Parameters:
  ///   - suspects: the pieces that are fetched from one server alone.
  ///   - now: the time.
  /// - Returns: the new segments, to be sent.
  package mutating func plan(
    except suspects: [ByteRange] = [], now: ContinuousClock.Instant
  ) -> [Segment] {
    var extents = extents
    for range in suspects { extents.insert(range) }
    guard isLengthKnown, let hole = extents.firstHole(in: target) else { return [] }
    // Of a segment and its hedge the planner sees the first one, and the pieces of suspects are not
    // its to cut; but each of them has a connection.
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
      // Read-ahead leaves small holes alone, which a reader would come to; a download must not.
      starts = [hole.lowerBound..<min(hole.upperBound, hole.lowerBound + Self.firstByteCount)]
    }
    return starts.map { enter($0, now: now) }
  }

  // MARK: Progress

  /// Bytes up to `position` have arrived.
  ///
  /// - Parameters:
  ///   - id: the segment.
  ///   - position: the offset after the last of them.
  ///   - idle: seconds that the network thread has waited for its sockets so far.
  ///   - now: the time.
  /// - Returns: where the segment is to end; nil where there is no such segment any more.
  package mutating func advance(
    _ id: Int, to position: Int64, idle: Double, now: ContinuousClock.Instant
  ) -> Int64? {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return nil }
    let added = max(0, position - segments[index].position)
    segments[index].position += added
    segments[index].noteProgress(now: now)
    if segments[index].firstByteAt == nil { segments[index].firstByteAt = now }
    // What a limit of the user's lets pass says nothing about the line.
    parallelism.note(
      byteCount: added, active: activeCount, flowing: flowingCount, idle: idle,
      isWaited: !isThrottled(now: now), now: (now - origin) / .seconds(1))
    return segments[index].end
  }

  /// The parts of `range` that are absent.
  package func holes(in range: ByteRange) -> [ByteRange] { extents.holes(in: range) }

  /// Bytes are handed over to be stored.
  ///
  /// - Returns: the parts of `range` that are wanted, absent, and not on their way already.
  package mutating func handOver(_ range: ByteRange) -> [ByteRange] {
    let runs = extents.holes(in: range.clamped(to: target)).flatMap { handed.holes(in: $0) }
    for run in runs { handed.insert(run) }
    return runs
  }

  /// Bytes that a segment has handed over have been stored, or were there.
  ///
  /// - Parameters:
  ///   - id: the segment that brought them.
  ///   - range: the bytes.
  ///   - runs: those of them that ``handOver(_:)`` gave.
  ///   - kept: those of `runs` that are still wanted.
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
    if added > 0 { segments[index].failureCount = 0 }
    if let rate = segments[index].rate(now: now) {
      connectionRate.average(in: rate)
    }
    return added
  }

  /// A rate limit holds a segment back.
  package mutating func throttled(now: ContinuousClock.Instant) { throttledAt = now }

  private func isThrottled(now: ContinuousClock.Instant) -> Bool {
    throttledAt.map { now - $0 < FetchConstants.throttleMemory } ?? false
  }

  /// The segment is done, or is to be planned anew.
  ///
  /// If it has a hedge, that continues by itself.
  package mutating func remove(_ id: Int) {
    segments.removeAll { $0.id == id }
    for index in segments.indices where segments[index].hedgeOf == id {
      segments[index].hedgeOf = nil
    }
  }

  package mutating func removeAll() { segments = [] }

  /// The segment has failed and waits; what it has stored need not be fetched again.
  ///
  /// - Parameters:
  ///   - id: the segment.
  ///   - isCounted: whether the failure is one of the server's.
  /// - Returns: how often in a row it has failed now.
  @discardableResult
  package mutating func fail(_ id: Int, isCounted: Bool = true) -> Int {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return 0 }
    if isCounted { segments[index].failureCount += 1 }
    // Its hedge goes on by itself, and brings what this one was to bring from there on.
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

  /// The segment is tried again, from where it has come to.
  ///
  /// - Returns: the segment; nil where nothing of it is left to fetch.
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

  /// The segment is asked of a server.
  package mutating func noteAsked(_ id: Int, of mirror: Int) {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return }
    segments[index].mirror = mirror
  }

  /// Begins again with a segment that waits, at its first byte: what it has stored was forgotten.
  package mutating func rewind(_ id: Int, to start: Int64) {
    guard let index = segments.firstIndex(where: { $0.id == id }) else { return }
    segments[index].storedEnd = start
  }

  // MARK: Hedges

  /// Asks a second time for what requests do not bring.
  ///
  /// - Parameters:
  ///   - now: the time.
  ///   - delay: how long they have brought nothing.
  ///   - allowance: how many may be asked for.
  ///   - isServed: whether the exchange of a segment is with its server, which alone delays it.
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

  /// A segment has brought something: what was to bring the same need not any more.
  ///
  /// - Returns: the other segment, whose exchange is to be ended; nil if there is none.
  package mutating func endRival(of id: Int) -> Int? {
    guard let index = segments.firstIndex(where: { $0.id == id }),
      let rival = segments.endRival(ofSegmentAt: index)
    else { return nil }
    return segments[rival].id
  }

  /// The server refuses or drops connections: fewer are used.
  package mutating func stepDown(now: ContinuousClock.Instant) {
    parallelism.stepDown(now: (now - origin) / .seconds(1))
  }
}
