internal import HTTPTransferCore

/// Bounds the body bytes per second of all exchanges together, and of those that share a ``RateLimit``;
/// the network thread's own.
///
/// A piece that may not pass pauses its exchange, so that TCP slows the other side down; they go on in
/// turn.
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

  /// Whether a piece of an exchange's body may pass; if not, the exchange is to be paused.
  func admits(_ byteCount: Int, of id: ExchangeID, under limit: RateLimit?) -> Bool {
    guard isBounded(limit) else { return true }
    return schedule.admit(byteCount, of: id.rawValue, under: limit, now: now)
  }

  /// A piece that was admitted has not been taken.
  func giveBack(_ byteCount: Int, under limit: RateLimit?) {
    guard byteCount > 0, isBounded(limit) else { return }
    schedule.giveBack(byteCount, under: limit)
  }

  /// The most of what is sent at once: what is received comes in such pieces, too.
  private static let sentPieceByteCount = 16_384

  /// How much of `byteCount` bytes to send at once, so that a pause after it is short: a second, at most.
  func sentPiece(of byteCount: Int, under limit: RateLimit?) -> Int {
    let limits = [total, limit?.bytesPerSecond].compactMap(\.self)
    guard let rate = limits.min() else { return byteCount }
    return min(byteCount, Self.sentPieceByteCount, Int(clamping: max(1, rate)))
  }

  /// The next exchange that may go on now.
  func next() -> ExchangeID? { schedule.next(now: now).map(ExchangeID.init(rawValue:)) }

  /// How long it is until the next one may; nil where none waits.
  func delay() -> Duration? { schedule.delay(now: now).map { .seconds($0) } }
}
