internal import HTTPTransfer
internal import HTTPTransferCore

/// Names one request for bytes of one version.
struct SegmentID: Hashable, Sendable {
  let rawValue: Int
}

/// A request for bytes of one version, in flight.
struct Segment: Sendable {
  let id: SegmentID
  /// Whether the whole representation was asked for, not a range of it.
  let isWhole: Bool
  /// Whether it was begun without a reader, because the whole file is wanted.
  var isPrefetch = false
  /// The request that brings nothing, beside which this one was sent; nil once either has brought something.
  var hedgeOf: SegmentID?
  /// The first byte asked for.
  let start: Int64
  /// Where it is to end; moved down when the rest is fetched otherwise.
  var end: Int64
  /// The next byte to arrive; what lies before it is stored or in the writer's buffer.
  var position: Int64
  /// The end of what is on its way into the cache file, or there.
  var handedOverEnd: Int64
  /// The end of what is stored.
  var storedEnd: Int64
  /// The gather buffer is written out when the position reaches this, because a read waits.
  var wakeAt: Int64?
  var transfer: ExchangeID?
  /// Which of the file's servers is asked.
  var mirror = 0
  /// The piece that it is to bring again, alone, because it was wrong.
  var suspectPiece: Int?
  /// Servers that are asked for it only if there is no other.
  var excludedMirrors: Set<Int> = []
  /// Until when the request is held back, because the server has asked for that.
  var heldUntil: ContinuousClock.Instant?
  /// Whether it is paused because the disk has not taken yet what came before.
  var awaitsStorage = false
  /// Since when it is paused because its reader is far behind, and memory holds little.
  var awaitsReaderSince: ContinuousClock.Instant?
  /// Whether a rate limit holds it back, so that it is not the server that brings nothing.
  var isThrottled = false
  /// Whether the request has ended, and only what it has brought is still to be stored.
  var hasEnded = false
  /// Whether the request is with the server: before, it may wait for a connection.
  var isSent = false
  var firstByteAt: ContinuousClock.Instant?
  var lastProgressAt: ContinuousClock.Instant
  /// How many bytes it has brought that were absent.
  var addedByteCount: Int64 = 0

  /// The least number of new bytes that makes a request worthwhile.
  ///
  /// A request that brings fewer is treated like a failed one, so that such a server is not asked
  /// any faster.
  private static let leastYield: Int64 = 4096

  /// Whether it has brought what it was asked for, or enough of that.
  var isFruitful: Bool { addedByteCount >= min(Self.leastYield, end - start) }

  /// Whether it waits for the disk, not for the server: it is paused, or what was to come has come and is not
  /// stored yet.
  var isHeldByDisk: Bool {
    awaitsStorage || hasEnded || (position >= end && storedEnd < handedOverEnd)
  }

  /// Whether a read waits for some of it.
  var isWaitedFor: Bool { wakeAt != nil }

  /// Where the position was when there was progress last.
  var progressPosition: Int64?
  /// Fewer bytes are no progress, but at the end: else a trickle would never be given up.
  private static let leastProgress: Int64 = 1024

  /// Bytes up to `arrived` have come: up to the position, or before the first byte asked for.
  mutating func noteProgress(to arrived: Int64, now: ContinuousClock.Instant) {
    let moved = arrived - (progressPosition ?? start)
    guard progressPosition == nil || moved >= Self.leastProgress || arrived >= end else { return }
    progressPosition = arrived
    lastProgressAt = now
  }

  /// For how long bytes must have come before their rate means something, in seconds.
  private static let leastRateInterval = 0.02

  /// In less time bytes that have waited together somewhere on the way come, whatever the line brings.
  private static let burstInterval = 0.005

  /// Bytes per second since the first byte, nil until it means something.
  func rate(now: ContinuousClock.Instant) -> Double? {
    guard let firstByteAt else { return nil }
    let seconds = (now - firstByteAt) / .seconds(1)
    guard seconds > Self.leastRateInterval else { return nil }
    return Double(position - start) / seconds
  }

  /// What the connection brings at least, in bytes per second, where all bytes have come too soon for
  /// ``rate(now:)``.
  func leastRate(now: ContinuousClock.Instant) -> Double? {
    guard let firstByteAt, position >= end else { return nil }
    return Double(position - start) / max((now - firstByteAt) / .seconds(1), Self.burstInterval)
  }
}
