internal import HTTPTransfer
internal import HTTPTransferCore

/// Names one request for bytes of one version.
struct SegmentID: Hashable, Sendable {
  let rawValue: Int
}

/// What becomes of a request while it is in flight.
enum SegmentEvent {
  /// It is this exchange of the client.
  case sentAs(ExchangeID)
  /// It goes to this one of the file's servers.
  case sentTo(mirror: Int)
  /// It is with the server.
  case sent
  /// It is held back until a moment, as the server has asked; nil when it is being sent.
  case held(until: ContinuousClock.Instant?)
  /// A rate limit holds it back, until more of it comes.
  case throttled
  /// It is paused until the disk has taken what came before.
  case awaitsStorage
  /// What has arrived up to here is on its way into the cache file.
  case handedOver(to: Int64)
  /// It has ended; what it has brought is stored soon, and then it is removed.
  case ended
}

/// A request for bytes of one version, in flight.
struct Segment: FetchSegment, Sendable {
  /// A piece that was wrong and is to be brought again, alone.
  struct Suspect: Sendable {
    let piece: Int
    /// Servers that are asked for it only if there is no other.
    let excludedMirrors: Set<Int>
  }

  let id: SegmentID
  /// Whether the whole representation was asked for, not a range of it.
  let isWhole: Bool
  /// Whether it was begun without a reader, because the whole file is wanted.
  let isPrefetch: Bool
  let suspect: Suspect?
  /// The request that brings nothing, beside which this one was sent; nil once either has brought something.
  var hedgeOf: SegmentID?
  /// The first byte asked for.
  let start: Int64
  /// Where it is to end; moved down when the rest is fetched otherwise.
  private(set) var end: Int64
  /// The next byte to arrive; what lies before it is stored or in the writer's buffer.
  private(set) var position: Int64
  /// The end of what is on its way into the cache file, or there.
  private(set) var handedOverEnd: Int64
  /// The end of what is stored.
  private(set) var storedEnd: Int64
  /// The gather buffer is written out when the position reaches this, because a read waits.
  var wakeAt: Int64?
  private(set) var transfer: ExchangeID?
  /// Which of the file's servers is asked.
  var mirror = 0
  /// Until when the request is held back, because the server has asked for that.
  private(set) var heldUntil: ContinuousClock.Instant?
  /// Whether it is paused because the disk has not taken yet what came before.
  private var awaitsStorage = false
  /// Since when it is paused because its reader is far behind, and memory holds little.
  private(set) var awaitsReaderSince: ContinuousClock.Instant?
  /// Whether a rate limit holds it back, so that it is not the server that brings nothing.
  private(set) var isThrottled = false
  /// Whether the request has ended, and only what it has brought is still to be stored.
  private(set) var hasEnded = false
  /// Whether the request is with the server: before, it may wait for a connection.
  private(set) var isSent = false
  private(set) var firstByteAt: ContinuousClock.Instant?
  private(set) var lastProgressAt: ContinuousClock.Instant
  /// How many bytes it has brought that were absent.
  private var addedByteCount: Int64 = 0

  /// What `request` asks for of a file of `length` bytes.
  init(_ request: PlannedRequest, id: SegmentID, length: Int64?, now: ContinuousClock.Instant) {
    self.id = id
    isWhole = request.isWhole
    isPrefetch = request.isPrefetch
    suspect = request.suspect
    hedgeOf = request.hedgeOf
    start = request.range.lowerBound
    // Whatever an answer says of its own length: bytes beyond the file's are nobody's.
    end = max(start, min(request.range.upperBound, length ?? .max))
    position = start
    handedOverEnd = start
    storedEnd = start
    lastProgressAt = now
  }

  // MARK: The request

  /// Something has become of it.
  mutating func note(_ event: SegmentEvent, now: ContinuousClock.Instant) {
    switch event {
    case .sentAs(let id): transfer = id
    case .sentTo(let server): mirror = server
    case .sent:
      isSent = true
      lastProgressAt = now
    case .held(let moment):
      heldUntil = moment
      // Until then it is not the server that is slow.
      lastProgressAt = moment ?? now
    case .throttled: isThrottled = true
    case .awaitsStorage: awaitsStorage = true
    case .handedOver(let newEnd): handedOverEnd = max(handedOverEnd, newEnd)
    case .ended: hasEnded = true
    }
  }

  /// It is paused until its reader comes near.
  mutating func awaitReader(now: ContinuousClock.Instant) {
    awaitsReaderSince = awaitsReaderSince ?? now
  }

  /// It is not paused any more, because it is ended.
  mutating func endPause() { awaitsReaderSince = nil }

  /// Its reader has come near.
  mutating func followReader(now: ContinuousClock.Instant) {
    guard let since = awaitsReaderSince else { return }
    awaitsReaderSince = nil
    lastProgressAt = now
    // The time in between says nothing about its pace.
    firstByteAt = firstByteAt.map { $0 + (now - since) }
  }

  /// Time has passed during which no server could answer.
  mutating func postpone(by delay: Duration) { lastProgressAt += delay }

  /// The rest is fetched otherwise.
  mutating func cut(to newEnd: Int64) { end = min(end, newEnd) }

  /// Nothing more is wanted of it: what comes all the same is not stored.
  mutating func stop() { end = position }

  /// What is to come of it ends with the file.
  mutating func learn(length: Int64) { end = max(position, min(end, length)) }

  // MARK: Its bytes

  /// Bytes up to `newPosition` have arrived.
  mutating func advance(to newPosition: Int64, now: ContinuousClock.Instant) {
    if firstByteAt == nil { firstByteAt = now }
    position = newPosition
    noteProgress(to: position, now: now)
    guard isThrottled || awaitsStorage else { return }
    isThrottled = false
    awaitsStorage = false
    // Until now it was not the server that was slow.
    lastProgressAt = now
  }

  /// What was handed over up to `newEnd` has been dealt with; `added` bytes of it were absent.
  mutating func stored(to newEnd: Int64, added: Int64) {
    storedEnd = max(storedEnd, newEnd)
    addedByteCount += added
  }

  /// The least number of new bytes that makes a request worthwhile.
  ///
  /// A request that brings fewer is treated like a failed one, so that such a server is not asked
  /// any faster.
  private static let leastYield: Int64 = 4096

  /// Whether it has brought what it was asked for, or enough of that.
  var isFruitful: Bool { addedByteCount >= min(Self.leastYield, end - start) }

  /// Whether a stream, at its pace, can come to `read` before its deadline, be it twice as fast.
  func canReach(_ read: ParkedRead, now: ContinuousClock.Instant) -> Bool {
    guard let firstByteAt, now - firstByteAt >= Self.paceInterval, let rate = rate(now: now) else {
      return true
    }
    let reach = 2 * rate * ((read.deadline - now) / .seconds(1))
    return Double(read.range.lowerBound - position) <= reach
  }

  /// How long a stream runs before its pace is believed.
  private static let paceInterval = Duration.seconds(1)

  /// Whether it waits for the disk, not for the server: it is paused, or what was to come has come and is not
  /// stored yet.
  var isHeldByDisk: Bool {
    awaitsStorage || hasEnded || (position >= end && storedEnd < handedOverEnd)
  }

  var isHedgeable: Bool {
    isSent && heldUntil == nil && !isWhole && !isThrottled && !isHeldByDisk
      // One server alone is to bring it.
      && suspect == nil
  }

  /// Whether it has brought nothing for `patience`, and it is the server that is slow.
  func isSilent(for patience: Duration, now: ContinuousClock.Instant) -> Bool {
    (isSent || firstByteAt != nil) && !isHeldByDisk && !isThrottled && awaitsReaderSince == nil
      && now - lastProgressAt >= patience
  }

  /// Whether a read waits for some of it.
  var isWaitedFor: Bool { wakeAt != nil }

  /// Where the position was when there was progress last.
  private var progressPosition: Int64?
  /// Fewer bytes are no progress, but at the end: else a trickle would never be given up.
  private static let leastProgress: Int64 = 1024

  /// Bytes up to `arrived` have come: up to the position, or before the first byte asked for.
  mutating func noteProgress(to arrived: Int64, now: ContinuousClock.Instant) {
    let moved = arrived - (progressPosition ?? start)
    guard progressPosition == nil || moved >= Self.leastProgress || arrived >= end else { return }
    progressPosition = arrived
    lastProgressAt = now
  }

  /// In less time bytes that have waited together somewhere on the way come, whatever the line brings.
  private static let burstInterval = 0.005

  /// What the connection brings at least, in bytes per second, where all bytes have come too soon for
  /// ``rate(now:)``.
  func leastRate(now: ContinuousClock.Instant) -> Double? {
    guard let firstByteAt, position >= end else { return nil }
    return Double(position - start) / max((now - firstByteAt) / .seconds(1), Self.burstInterval)
  }
}
