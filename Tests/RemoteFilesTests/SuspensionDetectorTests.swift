import Testing

@testable import RemoteFiles

@Suite struct SuspensionDetectorTests {
  @Test("Ticks that are late by more than four seconds show a suspension, its time without theirs")
  func suspensions() {
    let start = ContinuousClock.now
    func at(_ seconds: Double) -> ContinuousClock.Instant { start + .seconds(seconds) }
    var detector = SuspensionDetector(interval: .seconds(1), now: start)
    var pauses = [detector.tick(now: at(1)), detector.tick(now: at(6))]
    pauses += [detector.tick(now: at(12)), detector.tick(now: at(13))]
    #expect(pauses == [nil, nil, .seconds(5), nil])
    detector.start(now: at(100))
    let afterRest = detector.tick(now: at(101))
    #expect(afterRest == nil)
  }
}
