internal import HTTPTransferCore

/// Limits the body bytes per second of all exchanges together, and of those that share a
/// ``RateLimit``.
///
/// Only the network thread uses it.
///
/// A piece over the limit pauses its exchange, so that TCP slows the other side down. Paused
/// exchanges resume in turn.
final class BodyThrottle {
  private let start = ContinuousClock.now
  private var schedule = RateSchedule()
  /// The limit for all exchanges together, in bytes per second.
  private var total: Int64?

  private var now: Double { (ContinuousClock.now - start) / .seconds(1) }

  /// Sets the limit for all together in bytes per second; nil for none.
  func setLimit(_ bytesPerSecond: Int64?) {
    guard total != nil || bytesPerSecond != nil else { return }
    total = bytesPerSecond
    schedule.setTotal(bytesPerSecond, now: now)
  }

  private func isBounded(_ limit: RateLimit?) -> Bool {
    total != nil || limit?.bytesPerSecond != nil
  }

  /// Whether a piece of an exchange's body may pass; if not, pause the exchange.
  func admits(_ byteCount: Int, of id: ExchangeID, under limit: RateLimit?) -> Bool {
    guard isBounded(limit) else { return true }
    return schedule.admit(byteCount, of: id.rawValue, under: limit, now: now)
  }

  /// Returns the bytes of a piece that was admitted but not taken.
  func giveBack(_ byteCount: Int, under limit: RateLimit?) {
    guard byteCount > 0, isBounded(limit) else { return }
    schedule.giveBack(byteCount, under: limit)
  }

  /// The maximum number of bytes to send at once, equal to the size of received pieces.
  private static let sentPieceByteCount = 16_384

  /// How many of `byteCount` bytes to send at once, so that the following pause is at most a
  /// second.
  func sentPiece(of byteCount: Int, under limit: RateLimit?) -> Int {
    let limits = [total, limit?.bytesPerSecond].compactMap(\.self)
    guard let rate = limits.min() else { return byteCount }
    return min(byteCount, Self.sentPieceByteCount, Int(clamping: max(1, rate)))
  }

  /// The next exchange that may resume now.
  func next() -> ExchangeID? { schedule.next(now: now).map(ExchangeID.init(rawValue:)) }

  /// The time until the next exchange may resume; nil if none waits.
  func delay() -> Duration? { schedule.delay(now: now).map { .seconds($0) } }
}
