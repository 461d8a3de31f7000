import HTTPTransferCore
import Testing

/// Bytes pass at the set rate, and never much faster.
@Suite struct RateBucketTests {
  @Test(
    "In the long run as many bytes pass as the rate says", arguments: [1_000, 100_000, 50_000_000])
  func rate(bytesPerSecond: Int64) {
    var bucket = RateBucket(bytesPerSecond: bytesPerSecond, now: 100)
    let piece = 16_384
    let end = 100 + max(20, 40 * Double(piece) / Double(bytesPerSecond))
    var now = 100.0
    var passed = 0
    while now < end {
      if bucket.take(piece, now: now) { passed += piece } else { now += bucket.delay(now: now) }
    }
    let expected = Double(bytesPerSecond) * (end - 100)
    #expect(Double(passed) > expected * 0.9)
    #expect(Double(passed) < expected * 1.1 + Double(piece))
  }

  @Test("After a pause no more than a quarter of a second's worth, or a piece, passes at once")
  func burst() {
    var bucket = RateBucket(bytesPerSecond: 1 << 20, now: 0)
    var passed = 0
    while bucket.take(16_384, now: 1000) { passed += 16_384 }
    #expect(passed <= (1 << 18) + 16_384)
    #expect(bucket.delay(now: 1000) > 0)
  }

  @Test("What is given back may pass again, and a clock that goes back changes nothing")
  func givenBack() {
    var bucket = RateBucket(bytesPerSecond: 1000, now: 0)
    let first = bucket.take(16_384, now: 20)
    #expect(first)
    let second = bucket.take(1, now: 19)
    #expect(!second)
    bucket.giveBack(16_384)
    let third = bucket.take(1, now: 19)
    #expect(third)
  }
}
