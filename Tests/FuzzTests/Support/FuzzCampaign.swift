import SeededRandom
import Testing

/// A test of many seeds: each seed makes one input, which is judged by an oracle.
///
/// A seed that fails is named in the test's report, and one that traps on standard error; either is
/// repeated alone with `HTTPFS_FUZZ_SEED`.
struct FuzzCampaign {
  /// What a seed has shown.
  enum Verdict {
    /// The input was taken as one that means something, and what it was taken for is right.
    case accepted
    /// The input was refused.
    case refused
    /// The rule that was broken.
    case broken(String)
  }

  /// How many failures are reported before a campaign gives up: more would say the same.
  private static let failureLimit = 5

  /// From how many inputs on their shares are judged: a campaign that is scaled down may have six.
  private static let fewestToJudge = 40

  let name: String
  /// The number of seeds at scale 1.
  let count: Int

  /// Runs every seed.
  ///
  /// - Parameters:
  ///   - leastAccepted: the share of inputs that must be accepted: otherwise the oracle is asked
  ///     about nothing.
  ///   - leastRefused: the share of inputs that must be refused.
  ///   - body: makes an input from the generator and judges it.
  func run(
    leastAccepted: Double, leastRefused: Double,
    _ body: (inout SeededGenerator) throws -> Verdict
  ) {
    let note = CrashNote(name)
    defer { note.clear() }
    let seedCount = FuzzScale.count(count)
    let first = FuzzScale.onlySeed ?? FuzzScale.firstSeed
    var acceptedCount = 0
    var refusedCount = 0
    var failureCount = 0
    for seed in first..<(first + UInt64(FuzzScale.onlySeed == nil ? seedCount : 1)) {
      note.set(seed: seed)
      var generator = SeededGenerator(seed: seed)
      do {
        switch try body(&generator) {
        case .accepted: acceptedCount += 1
        case .refused: refusedCount += 1
        case .broken(let rule):
          failureCount += 1
          Issue.record("\(name), HTTPFS_FUZZ_SEED=\(seed): \(rule)")
        }
      } catch {
        failureCount += 1
        Issue.record("\(name), HTTPFS_FUZZ_SEED=\(seed): \(error)")
      }
      if failureCount >= Self.failureLimit { return }
    }
    // Of a few inputs none may happen to be of the kind that is looked for.
    guard FuzzScale.onlySeed == nil, seedCount >= Self.fewestToJudge else { return }
    #expect(Double(acceptedCount) >= leastAccepted * Double(seedCount), "of \(seedCount)")
    #expect(Double(refusedCount) >= leastRefused * Double(seedCount), "of \(seedCount)")
  }
}
