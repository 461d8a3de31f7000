internal import HTTPTransfer
internal import HTTPTransferCore

/// Identifies one request for bytes of one version.
struct SegmentID: Hashable, Sendable {
  let rawValue: Int
}

/// An event of a request in flight.
enum SegmentEvent {
  /// It has become this exchange of the client.
  case sentAs(ExchangeID)
  /// It goes to this server of the file.
  case sentTo(mirror: Int)
  /// It has a slot at its server and needs a connection.
  case connecting
  /// It has been sent to the server.
  case sent
  /// It is held until a moment, as the server has asked; nil when it is being sent.
  case held(until: ContinuousClock.Instant?)
  /// A rate limit delays its further bytes.
  case throttled
  /// It is paused until the disk has stored its earlier bytes.
  case awaitsStorage
  /// The bytes up to here are on their way into the cache file.
  case handedOver(to: Int64)
  /// It has ended; its last bytes are stored soon, and then it is removed.
  case ended
}

/// How far a request has come on its way to the server.
enum RequestStage: Sendable {
  /// It waits for a slot at its server.
  case queued
  /// It has a slot and waits for a connection.
  case connecting
  /// The server has it.
  case sent
}

/// A request for bytes of one version, in flight.
struct Segment: FetchSegment, Sendable {
  /// A piece that was wrong and is to be fetched again, alone.
  struct Suspect: Sendable {
    let piece: Int
    /// Servers that are asked for it only if there is no other.
    let excludedMirrors: Set<Int>
  }

  let id: SegmentID
  /// Whether the whole representation was requested, not a range of it.
  let isWhole: Bool
  /// Whether it was begun without a reader, because the whole file is wanted.
  let isPrefetch: Bool
  let suspect: Suspect?
  /// The stalled request that this one hedges; nil once either has brought bytes.
  var hedgeOf: SegmentID?
  /// The first requested byte.
  let start: Int64
  /// The end of its range; moved down when the rest is fetched by another request.
  private(set) var end: Int64
  /// The next byte to arrive; the bytes before it are stored or in the writer's buffer.
  private(set) var position: Int64
  /// The end of the bytes that are in the cache file or on their way to it.
  private(set) var enqueuedEnd: Int64
  /// The end of the stored bytes.
  private(set) var storedEnd: Int64
  /// The position at which the gather buffer is written out, because a read waits.
  var wakeAt: Int64?
  private(set) var exchange: ExchangeID?
  /// The index of the server that is asked.
  var mirror = 0
  /// Until when the request is held, because the server has asked for that.
  private(set) var heldUntil: ContinuousClock.Instant?
  /// Whether it is paused because the disk has not yet stored its earlier bytes.
  private var awaitsStorage = false
  /// Since when it is paused because its reader is far behind, and memory has little room.
  private(set) var awaitsReaderSince: ContinuousClock.Instant?
  /// Whether a rate limit delays it, so that the server is not to blame for a stall.
  private(set) var isThrottled = false
  /// Whether the request has ended, and only its last bytes are still to be stored.
  private(set) var hasEnded = false
  private(set) var stage = RequestStage.queued
  private(set) var firstByteAt: ContinuousClock.Instant?
  private(set) var lastProgressAt: ContinuousClock.Instant
  /// How many absent bytes it has brought.
  private var addedByteCount: Int64 = 0

  /// Creates the segment of `request` for a file of `length` bytes.
  init(_ request: PlannedRequest, id: SegmentID, length: Int64?, now: ContinuousClock.Instant) {
    self.id = id
    isWhole = request.isWhole
    isPrefetch = request.isPrefetch
    suspect = request.suspect
    hedgeOf = request.hedgeOf
    start = request.range.lowerBound
    // Bytes beyond the end of the file are never wanted, whatever length an answer claims.
    end = max(start, min(request.range.upperBound, length ?? .max))
    position = start
    enqueuedEnd = start
    storedEnd = start
    lastProgressAt = now
  }

  // MARK: Request

  /// Records an event.
  mutating func note(_ event: SegmentEvent, now: ContinuousClock.Instant) {
    switch event {
    case .sentAs(let id): exchange = id
    case .sentTo(let server): mirror = server
    case .connecting:
      guard stage == .queued else { break }
      stage = .connecting
      lastProgressAt = now
    case .sent:
      stage = .sent
      lastProgressAt = now
    case .held(let moment):
      heldUntil = moment
      // A wait that the server has asked for is no stall.
      lastProgressAt = moment ?? now
    case .throttled: isThrottled = true
    case .awaitsStorage: awaitsStorage = true
    case .handedOver(let newEnd): enqueuedEnd = max(enqueuedEnd, newEnd)
    case .ended: hasEnded = true
    }
  }

  /// Pauses it until its reader comes near.
  mutating func awaitReader(now: ContinuousClock.Instant) {
    awaitsReaderSince = awaitsReaderSince ?? now
  }

  /// Clears the pause, because the segment is ended.
  mutating func endPause() { awaitsReaderSince = nil }

  /// Resumes it, because its reader has come near.
  mutating func followReader(now: ContinuousClock.Instant) {
    guard let since = awaitsReaderSince else { return }
    awaitsReaderSince = nil
    lastProgressAt = now
    // The time of the pause says nothing about the pace.
    firstByteAt = firstByteAt.map { $0 + (now - since) }
  }

  /// Moves its clock on by time during which no server could answer.
  mutating func postpone(by delay: Duration) { lastProgressAt += delay }

  /// Moves the end down, because the rest is fetched by another request.
  mutating func cut(to newEnd: Int64) { end = min(end, newEnd) }

  /// Ends it at its position: further bytes are not stored.
  mutating func stop() { end = position }

  /// Limits its end to that of the file.
  mutating func learn(length: Int64) { end = max(position, min(end, length)) }

  // MARK: Stored bytes

  /// Records the arrival of bytes up to `newPosition`.
  mutating func advance(to newPosition: Int64, now: ContinuousClock.Instant) {
    if firstByteAt == nil { firstByteAt = now }
    position = max(position, newPosition)
    recordProgress(to: position, now: now)
    guard isThrottled || awaitsStorage else { return }
    isThrottled = false
    awaitsStorage = false
    // Until now the server was not to blame for the delay.
    lastProgressAt = now
  }

  /// Records that bytes up to `newEnd` have been handled; `added` of them were absent.
  mutating func stored(to newEnd: Int64, added: Int64) {
    storedEnd = max(storedEnd, newEnd)
    addedByteCount += added
  }

  /// The least number of new bytes that makes a request worthwhile.
  ///
  /// A request that brings fewer is treated like a failed one, so that such a server is not asked
  /// any faster.
  private static let minimumYield: Int64 = 4096

  /// Whether it has brought all requested bytes, or enough of them.
  var isFruitful: Bool { addedByteCount >= min(Self.minimumYield, end - start) }

  /// Whether a stream can reach `read` before its deadline, allowing for twice its pace so far.
  func canReach(_ read: ParkedRead, now: ContinuousClock.Instant) -> Bool {
    guard let firstByteAt, now - firstByteAt >= Self.paceInterval, let rate = rate(now: now) else {
      return true
    }
    let reach = 2 * rate * ((read.deadline - now) / .seconds(1))
    return Double(read.range.lowerBound - position) <= reach
  }

  /// How long a stream must run before its pace counts.
  private static let paceInterval = Duration.seconds(1)

  /// Whether it waits for the disk, not for the server: it is paused, or all of its bytes have
  /// arrived and are not stored yet.
  var isHeldByDisk: Bool {
    awaitsStorage || hasEnded || (position >= end && storedEnd < enqueuedEnd)
  }

  /// Whether the request has been sent; before, it may wait for a slot or a connection.
  var isSent: Bool { stage == .sent }

  var isHedgeable: Bool {
    isSent && heldUntil == nil && !isWhole && !isThrottled && !isHeldByDisk
      // A suspect piece comes from one server alone.
      && suspect == nil
  }

  /// Whether it has brought no bytes for `timeout`, and the server is to blame.
  func isSilent(for timeout: Duration, now: ContinuousClock.Instant) -> Bool {
    (isSent || firstByteAt != nil) && !isHeldByDisk && !isThrottled && awaitsReaderSince == nil
      && now - lastProgressAt >= timeout
  }

  /// Whether a read waits for some of its bytes.
  var isWaitedFor: Bool { wakeAt != nil }

  /// The position at the time of the last progress.
  private var progressPosition: Int64?
  /// Records bytes up to `arrived`: up to the position, or before the first requested byte.
  mutating func recordProgress(to arrived: Int64, now: ContinuousClock.Instant) {
    let moved = arrived - (progressPosition ?? start)
    guard progressPosition == nil || moved >= FetchConstants.minimumProgress || arrived >= end
    else { return }
    progressPosition = arrived
    lastProgressAt = now
  }

  /// Bytes that were buffered on the way arrive together in less time, whatever the rate of the
  /// connection.
  private static let burstInterval = 0.005

  /// The least rate of the connection in bytes per second, if all bytes arrived too soon for
  /// ``rate(now:)``.
  func minimumRate(now: ContinuousClock.Instant) -> Double? {
    guard let firstByteAt, position >= end else { return nil }
    return Double(position - start) / max((now - firstByteAt) / .seconds(1), Self.burstInterval)
  }
}
