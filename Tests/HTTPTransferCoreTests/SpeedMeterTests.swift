import HTTPTransferCore
import Testing

@Suite struct SpeedMeterTests {
  private let start = ContinuousClock.now

  /// A meter after `seconds` at `rate` bytes per second, in a hundred pieces per second.
  private func meter(rate: Double, seconds: Int) -> (SpeedMeter, end: ContinuousClock.Instant) {
    var meter = SpeedMeter()
    var now = start
    for _ in 0..<(seconds * 100) {
      meter.note(byteCount: Int(rate / 100), now: now)
      now += .milliseconds(10)
    }
    return (meter, now)
  }

  @Test("Nothing has arrived: the speed is 0")
  func nothing() {
    #expect(SpeedMeter().bytesPerSecond(now: start) == 0)
  }

  @Test("A steady rate is shown as it is, from early on", arguments: [1, 2, 5, 60])
  func steady(seconds: Int) {
    let (meter, now) = meter(rate: 10e6, seconds: seconds)
    let speed = meter.bytesPerSecond(now: now)
    #expect(abs(speed - 10e6) < 0.05 * 10e6, "\(speed)")
  }

  @Test("The speed falls when nothing more arrives, to 0 in the end")
  func falls() {
    let (meter, end) = meter(rate: 10e6, seconds: 30)
    var last = meter.bytesPerSecond(now: end)
    for second in 1...60 {
      let speed = meter.bytesPerSecond(now: end + .seconds(second))
      #expect(speed < last || speed == 0)
      last = speed
    }
    #expect(meter.bytesPerSecond(now: end + .seconds(2)) < 0.4 * 10e6)
    #expect(last == 0)
  }

  @Test("A new rate is followed within some seconds")
  func follows() {
    var (meter, now) = meter(rate: 1e6, seconds: 30)
    for _ in 0..<800 {
      meter.note(byteCount: 200_000, now: now)
      now += .milliseconds(10)
    }
    #expect(abs(meter.bytesPerSecond(now: now) - 20e6) < 0.05 * 20e6)
  }

  @Test("A single early burst is not extrapolated without bound")
  func burst() {
    var meter = SpeedMeter()
    meter.note(byteCount: 1_000_000, now: start)
    let speed = meter.bytesPerSecond(now: start)
    #expect(speed.isFinite)
    #expect(speed <= 1_000_000 / 0.04)
  }
}
