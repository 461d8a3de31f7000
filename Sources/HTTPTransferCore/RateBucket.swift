/// Says when bytes may pass so that no more than a number of them pass in a second: a token bucket
/// that may go into debt by one piece.
public struct RateBucket: Sendable {
  /// How many seconds' worth may pass at once after a pause.
  static let burstSeconds = 0.25

  /// The least that may pass at once: a piece as libcurl hands it over.
  static let leastBurst = 16384.0

  public let bytesPerSecond: Int64

  private let burst: Double
  private var available: Double
  /// When `available` was right, in seconds of a monotonic clock.
  private var updatedAt: Double

  /// - Parameters:
  ///   - bytesPerSecond: the limit, 1 or more.
  ///   - now: seconds of a monotonic clock, as everywhere here.
  public init(bytesPerSecond: Int64, now: Double) {
    self.bytesPerSecond = max(1, bytesPerSecond)
    burst = max(Self.leastBurst, Double(self.bytesPerSecond) * Self.burstSeconds)
    // So that the first piece passes.
    available = 1
    updatedAt = now
  }

  /// Lets `byteCount` bytes pass, all of them, if any may pass now.
  ///
  /// - Returns: whether they may.
  public mutating func take(_ byteCount: Int, now: Double) -> Bool {
    guard mayPass(now: now) else { return false }
    available -= Double(byteCount)
    return true
  }

  /// Whether any byte may pass now.
  public mutating func mayPass(now: Double) -> Bool {
    refill(now: now)
    return available > 0
  }

  /// Takes back that bytes have passed.
  public mutating func giveBack(_ byteCount: Int) {
    available = min(burst, available + Double(byteCount))
  }

  /// How many seconds it is until bytes may pass; 0 where they may now.
  public mutating func delay(now: Double) -> Double {
    refill(now: now)
    // What is 0 exactly does not pass either.
    return available > 0 ? 0 : (1 - available) / Double(bytesPerSecond)
  }

  private mutating func refill(now: Double) {
    available = min(burst, available + max(0, now - updatedAt) * Double(bytesPerSecond))
    updatedAt = max(updatedAt, now)
  }
}
