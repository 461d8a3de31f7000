import HTTPTransferCore
import Testing

@Suite struct RetryPolicyTests {
  private let policy = RetryPolicy(
    base: .milliseconds(100), ceiling: .seconds(5), retryAfterCeiling: .seconds(30))

  @Test(
    "Delays double from the base to the ceiling, with jitter of one half",
    arguments: [
      (1, 100), (2, 200), (3, 400), (4, 800), (5, 1600), (6, 3200), (7, 5000), (8, 5000),
      (1000, 5000), (Int.max, 5000),
      // Zero and negative counts are treated as one failure.
      (0, 100), (-5, 100), (Int.min, 100),
    ])
  func doubling(failures: Int, milliseconds: Int) {
    let full = Duration.milliseconds(milliseconds)
    let least = policy.delay(failures: failures, retryAfter: nil, random: 0)
    let middle = policy.delay(failures: failures, retryAfter: nil, random: 0.5)
    let most = policy.delay(failures: failures, retryAfter: nil, random: 1.0.nextDown)
    #expect(least == full / 2)
    #expect(middle == full * 0.75)
    #expect(most > full * 0.999 && most <= full)
  }

  @Test(
    "A server's Retry-After is obeyed up to its ceiling, and never shortens the backoff",
    arguments: [
      (0, 0.05), (1, 1), (10, 10), (30, 30), (31, 30), (3600, 30), (86_400, 30), (-1, 0.05),
    ] as [(Int, Double)])
  func retryAfter(seconds: Int, expected: Double) {
    let delay = policy.delay(failures: 1, retryAfter: .seconds(seconds), random: 0)
    #expect(delay == .seconds(expected))
  }
}
