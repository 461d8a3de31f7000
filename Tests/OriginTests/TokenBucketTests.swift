import OriginContent
import Testing

struct TokenBucketTests {
  @Test(
    "Over time the rate is exact but for one burst",
    arguments: [1000, 65_536, 10 << 20, 1 << 30] as [Int64])
  func keepsTheRate(rate: Int64) {
    var bucket = TokenBucket(bytesPerSecond: rate)
    var now: Int64 = 5
    var sent: Int64 = 0
    while now < 10_000_000_005 {
      now = bucket.reserve(bucket.pieceByteCount, now: now)
      sent += Int64(bucket.pieceByteCount)
      let earned = Double(rate) * Double(now - 5) / 1e9
      #expect(Double(sent) <= earned + Double(bucket.burst) + 1)
    }
    #expect(Double(sent) >= Double(rate) * 10 * 0.99)
  }

  @Test("A pause earns one burst and no more")
  func pauseEarnsOneBurst() {
    var bucket = TokenBucket(bytesPerSecond: 1 << 20)
    let hour: Int64 = 3_600_000_000_000
    #expect(bucket.reserve(Int(bucket.burst), now: hour) == hour)
    #expect(bucket.reserve(1 << 20, now: hour) == hour + 1_000_000_000)
  }
}
