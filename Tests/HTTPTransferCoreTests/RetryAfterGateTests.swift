import HTTPTransferCore
import Testing

/// The time at which an origin that has requested a delay may get the next request.
@Suite struct RetryAfterGateTests {
  private let now = ContinuousClock.now

  @Test("A gate holds one origin back until its moment, and nobody else")
  func closes() {
    var gate = RetryAfterGate()
    #expect(gate.opening(of: "http://a", now: now) == nil)
    gate.close("http://a", until: now + .seconds(2), now: now)
    #expect(gate.opening(of: "http://a", now: now) == now + .seconds(2))
    #expect(gate.opening(of: "http://a", now: now + .milliseconds(1999)) == now + .seconds(2))
    #expect(gate.opening(of: "http://a", now: now + .seconds(2)) == nil)
    for other in ["http://b", "https://a", "http://a:8080"] {
      #expect(gate.opening(of: other, now: now) == nil)
    }
  }

  @Test("The latest of several moments holds, in whatever order they come")
  func latest() {
    for delays in [[1, 5, 3], [5, 3, 1], [3, 1, 5]] {
      var gate = RetryAfterGate()
      for delay in delays { gate.close("http://a", until: now + .seconds(delay), now: now) }
      #expect(gate.opening(of: "http://a", now: now) == now + .seconds(5))
    }
  }

  @Test("A moment that has passed closes nothing, and opens nothing")
  func past() {
    var gate = RetryAfterGate()
    gate.close("http://a", until: now, now: now)
    #expect(gate.opening(of: "http://a", now: now) == nil)
    gate.close("http://a", until: now + .seconds(5), now: now)
    gate.close("http://a", until: now - .seconds(5), now: now)
    #expect(gate.opening(of: "http://a", now: now) == now + .seconds(5))
  }
}
