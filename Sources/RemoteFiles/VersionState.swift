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
  /// Paused requests that go on.
  var resumes: [ExchangeID] = []
  /// The servers of requests that are given up because they bring nothing.
  var silentMirrors: [(index: Int, error: FileError)] = []
  /// Pieces that are to be hashed.
  var checks: [PieceTable.Check] = []
  /// Opens that have waited for the length, and go on.
  var lengthAnswers: [LengthWait] = []
  /// Segments whose writers hold what a read waits for.
  var flushes: [SegmentID] = []
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
  /// The complete length in bytes; nil until ``learn(length:into:)``.
  private(set) var length: Int64?
  var extents: ExtentSet
  /// Up to where `stat` has shown the file while its length was unknown: whole pages, which were present.
  var shownEnd: Int64 = 0
  /// The opens that wait for the length.
  var lengthWaits: [LengthWait] = []
  /// When one of them last waited in vain.
  var lengthMissedAt: ContinuousClock.Instant?
  /// What has arrived of pieces that are to be hashed first, and is not in `extents`; nil where the list
  /// has no hashes of pieces.
  var pieces: PieceTable?
  /// What lies in memory because the cache could not take it: a part of what is present or has arrived.
  var spill: Spill?
  var parked = ParkedReads()
  var segments: [Segment] = []
  var streams = StreamTable()
  var strides = StrideTable()
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
  /// Whether less is free on the disk under the cache than is to stay free.
  var isDiskShort = false
  /// What the user has asked for the file.
  private(set) var wishes = FileWishes()
  /// Why the last request failed for all who might have waited; taken by who prefetches.
  var prefetchFailure: FileError?
  /// What every further read of absent bytes gets at once.
  var permanentFailure: FileError?

  var failureCount = 0
  /// How many requests in a row have brought next to nothing, whatever became of those who waited.
  var fruitlessCount = 0
  /// How often in a row a body of unknown length has ended before bytes that are present.
  var shortBodyCount = 0
  var retryAt: ContinuousClock.Instant?
  var unreachableSince: ContinuousClock.Instant?
  /// When the server last brought bytes.
  var lastStoredAt: ContinuousClock.Instant?
  var lastFailure: FileError?
  var recentFailures: [RecentFailure] = []
  var lastSegment = 0
  var lastReadAt: ContinuousClock.Instant?
  /// The end of the last read.
  var lastReadEnd: Int64 = 0
  /// The end of the last read of another piece than that at ``lastReadEnd``: who reads there may be another
  /// reader.
  var otherReadEnd: Int64?
  /// When a rate limit last held a request back.
  var throttledAt: ContinuousClock.Instant?
  /// The time from request to response, in seconds: a moving average over reused connections, and a guess
  /// before the first.
  var roundTrip: Double { measuredRoundTrip ?? 0.05 }
  var measuredRoundTrip: Double?
  /// Bytes per second of a connection, from the last segments.
  var connectionRate: Double?
  let clock = MonotonicSeconds()

  struct RecentFailure: Sendable {
    let range: ByteRange
    let error: FileError
    let until: ContinuousClock.Instant
  }

  /// How many requests may be in flight: a number that the user gave holds for all of them.
  var requestLimit: Int

  /// A request that brings nothing does not take the place of its hedge.
  var hasPlaceForHedge: Bool { segments.count < requestLimit + 1 }

  var connections: Int?

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

  /// Has what arrives hashed by `hashes` before anybody sees it; needs the length.
  mutating func check(_ hashes: PieceHashes) {
    pieces = length.flatMap { PieceTable(hashes: hashes, length: $0) }
  }

  // MARK: Facts

  /// Whether every byte is present of a file that the user wants fetched.
  var isPrefetched: Bool { isComplete && wishes.isPrefetched }

  var hasParkedReads: Bool { !parked.isEmpty }

  /// When the read that has come last began to wait; nil where none waits.
  var lastWaitBegan: ContinuousClock.Instant? { parked.reads.lazy.map(\.since).max() }

  /// How many connections have paid for this file; nil where that is not known.
  var provenConnections: Int? { parallelism.proven }

  /// Why a request has failed for good since the last call.
  mutating func takePrefetchFailure() -> FileError? {
    defer { prefetchFailure = nil }
    return prefetchFailure
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

  /// The end of the last byte that is known to be there: no length is less.
  var presentEnd: Int64 { max(shownEnd, extents.extents.last?.upperBound ?? 0) }

  /// The complete length has become known, by the head of a response, the end of a body or a record.
  ///
  /// It is learned once, and is never less than what is present.
  ///
  /// - Returns: whether it has been learned now.
  mutating func learn(
    length newLength: Int64, into actions: inout VersionActions
  ) -> Bool {
    guard length == nil, newLength >= presentEnd else { return false }
    length = newLength
    endLengthWaits(into: &actions)
    // What is to come of the body ends there.
    for index in segments.indices {
      segments[index].end = max(segments[index].position, min(segments[index].end, newLength))
      updateWake(of: index)
    }
    actions.wakes += parked.removeAll(where: canAnswer)
    return true
  }

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
    let end = clamped(asked).upperBound
    if let pieces, lastReadAt != nil, piece(of: end, pieces) != piece(of: lastReadEnd, pieces) {
      otherReadEnd = lastReadEnd
    }
    lastReadAt = now
    lastReadEnd = end
  }

  /// The piece of which the byte at `offset` is.
  func piece(of offset: Int64, _ pieces: PieceTable) -> ByteRange {
    pieces.wholePieces(around: offset..<(offset + 1))
  }

  /// The file is opened, which nobody had open.
  mutating func beginReading(_ trust: ReaderTrust) {
    pieces?.forgive()
    otherReadEnd = nil
    usage = Usage()
    streams.trust = trust
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

  var usage = Usage()

  /// Says what can be answered at once.
  mutating func attempt(_ asked: ByteRange, now: ContinuousClock.Instant) -> ReadAttempt {
    let range = clamped(asked)
    if range.isEmpty { return .present(byteCount: 0) }
    // What is known to be wrong is not shown, however it comes to be there.
    if let permanentFailure, permanentFailure.code == .corrupt { return .failed(permanentFailure) }
    if let end = answerableEnd(of: range) {
      return .present(byteCount: Int(end - range.lowerBound))
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
      raiseIfWaitedFor(index, into: &actions)
      // What it waits for may have arrived, with nothing more to come that would write it out.
      let segment = segments[index]
      if segment.handedOverEnd < segment.position,
        segment.handedOverEnd < read.range.upperBound, read.range.lowerBound < segment.position
      {
        actions.flushes.append(segment.id)
      }
    }
  }

  /// Somebody has come to wait, perhaps for what the segment at `index` brings.
  mutating func raiseIfWaitedFor(_ index: Int, into actions: inout VersionActions) {
    let wasWaitedFor = segments[index].isWaitedFor
    updateWake(of: index)
    if !wasWaitedFor, segments[index].isWaitedFor, !segments[index].isSent,
      let transfer = segments[index].transfer
    {
      actions.raises.append(transfer)
    }
  }

  mutating func updateWake(of index: Int) {
    let segment = segments[index]
    if let pieces {
      segments[index].wakeAt = nextPieceEnd(in: segment, pieces)
      return
    }
    let isEndAwaited = segment.isWhole && !lengthWaits.isEmpty
    segments[index].wakeAt =
      parked.nextWake(
        in: segment.start..<segment.end, after: segment.position, partly: length == nil)
      ?? (isEndAwaited ? segment.end : nil)
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

  /// Takes out the reads that can be answered now.
  mutating func wakeReads(into actions: inout VersionActions) {
    actions.wakes += parked.removeAll(where: canAnswer)
  }

  /// Whether a parked read can be answered now; of a growing file, also in part.
  func canAnswer(_ read: ParkedRead) -> Bool { answerableEnd(of: clamped(read.range)) != nil }

  /// The end of what a read of `range`, which is clamped, is answered with now; nil where it must wait.
  ///
  /// A file of unknown length is served while it grows: what is there of the range is better than waiting for
  /// all of it. But the kernel takes less than it has asked for as the end of the file, and fills its page with
  /// zeros: what `stat` has shown is never answered in part.
  func answerableEnd(of range: ByteRange) -> Int64? {
    if range.isEmpty { return range.upperBound }
    let end = min(extents.presentEnd(from: range.lowerBound), range.upperBound)
    if end == range.upperBound { return end }
    guard length == nil, end > range.lowerBound, end >= shownEnd else { return nil }
    return end
  }
}
