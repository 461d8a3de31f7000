/// A byte rate with a small burst, but without a free first second.
///
/// A caller reserves bytes before it sends them; the result is the time to send them. Reservations
/// are queued in order, so many connections can share one bucket (virtual scheduling, as in the
/// generic cell rate algorithm).
package struct TokenBucket: Equatable, Sendable {
  /// The rate in bytes per second; above 0.
  package let bytesPerSecond: Int64

  /// The time at which the reserved bytes are earned, in nanoseconds of the caller's clock.
  private var earnedAt = Int64.min

  package init(bytesPerSecond: Int64) {
    precondition(bytesPerSecond > 0, "a rate must be above 0")
    self.bytesPerSecond = bytesPerSecond
  }

  /// The number of bytes that may be sent at once after a pause.
  ///
  /// This is a quarter of a second, at most 64 KiB. At high rates it is 5 ms, because a late
  /// wake-up must not reduce the throughput.
  package var burst: Int64 { max(1, min(64 << 10, bytesPerSecond / 4), bytesPerSecond / 200) }

  /// The bytes to send at a time for a smooth rate: 20 ms of it, from 1 byte to 64 KiB.
  package var pieceByteCount: Int { Int(max(1, min(64 << 10, bytesPerSecond / 50))) }

  /// Reserves bytes; returns when they may be sent, in nanoseconds, not before `now`.
  package mutating func reserve(_ byteCount: Int, now: Int64) -> Int64 {
    earnedAt = max(earnedAt, now) + nanoseconds(Int64(byteCount))
    return max(now, earnedAt - nanoseconds(burst))
  }

  /// The nanoseconds that bytes take; rounding up keeps the sum of many pieces within the rate.
  private func nanoseconds(_ byteCount: Int64) -> Int64 {
    let (high, low) = byteCount.multipliedFullWidth(by: 1_000_000_000)
    let (quotient, remainder) = bytesPerSecond.dividingFullWidth((high, low))
    return quotient + (remainder == 0 ? 0 : 1)
  }
}
