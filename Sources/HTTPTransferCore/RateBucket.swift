/// A token bucket that limits the bytes per second; it may go into debt by one piece.
package struct RateBucket: Sendable {
  /// How many seconds' worth of bytes may pass at once after a pause.
  static let burstSeconds = 0.25

  /// The smallest burst: a piece as libcurl delivers it.
  static let minimumBurst = 16384.0

  package let bytesPerSecond: Int64

  private let burst: Double
  private var available: Double
  /// When `available` was last updated, in seconds of a monotonic clock.
  private var updatedAt: Double

  /// - Parameters:
  ///   - bytesPerSecond: the limit, 1 or more.
  ///   - now: seconds of a monotonic clock, as everywhere here.
  package init(bytesPerSecond: Int64, now: Double) {
    self.bytesPerSecond = max(1, bytesPerSecond)
    burst = max(Self.minimumBurst, Double(self.bytesPerSecond) * Self.burstSeconds)
    // Lets the first piece pass.
    available = 1
    updatedAt = now
  }

  /// Lets all of `byteCount` bytes pass if any byte may pass now.
  ///
  /// - Returns: whether they pass.
  package mutating func take(_ byteCount: Int, now: Double) -> Bool {
    guard mayPass(now: now) else { return false }
    available -= Double(byteCount)
    return true
  }

  /// Whether any byte may pass now.
  package mutating func mayPass(now: Double) -> Bool {
    refill(now: now)
    return available > 0
  }

  /// Returns the tokens of bytes that did not pass after all.
  package mutating func giveBack(_ byteCount: Int) {
    available = min(burst, available + Double(byteCount))
  }

  /// The number of seconds until bytes may pass; 0 if they may pass now.
  package mutating func delay(now: Double) -> Double {
    refill(now: now)
    // An exact 0 lets no byte pass either.
    return available > 0 ? 0 : (1 - available) / Double(bytesPerSecond)
  }

  private mutating func refill(now: Double) {
    available = min(burst, available + max(0, now - updatedAt) * Double(bytesPerSecond))
    updatedAt = max(updatedAt, now)
  }
}
