internal import HTTPTransferCore

/// Bounds the body bytes per second of all exchanges together; the network thread's own.
///
/// A piece that may not pass pauses its exchange, so that TCP slows the server down; they go on in
/// turn.
final class ReceiveThrottle {
  private let start = ContinuousClock.now
  private var bucket: RateBucket?
  /// The exchanges that are paused, in the order of their turns.
  private var waiting: [ExchangeID] = []

  private var now: Double { (ContinuousClock.now - start) / .seconds(1) }

  /// Sets the limit in bytes per second; nil for none.
  func setLimit(_ bytesPerSecond: Int64?) {
    guard bytesPerSecond != bucket?.bytesPerSecond else { return }
    bucket = bytesPerSecond.map { RateBucket(bytesPerSecond: $0, now: now) }
  }

  /// Whether a piece of an exchange's body may pass; if not, the exchange is to be paused.
  func admits(_ byteCount: Int, of id: ExchangeID) -> Bool {
    guard bucket != nil else { return true }
    if bucket?.take(byteCount, now: now) == true { return true }
    if !waiting.contains(id) { waiting.append(id) }
    return false
  }

  /// A piece that was admitted has not been taken.
  func giveBack(_ byteCount: Int) { bucket?.giveBack(byteCount) }

  /// The next exchange that may go on now.
  func next() -> ExchangeID? {
    guard !waiting.isEmpty, bucket?.delay(now: now) ?? 0 == 0 else { return nil }
    return waiting.removeFirst()
  }

  /// How long it is until the next one may; nil where none waits.
  func delay() -> Duration? {
    waiting.isEmpty ? nil : .seconds(bucket?.delay(now: now) ?? 0)
  }
}
