import SeededRandom
import Testing

/// A test of many seeds: each seed makes one input, which an oracle judges.
///
/// The test's report names a failed seed, and standard error names one that traps.
/// `HTTPFS_FUZZ_SEED` repeats either of them alone.
struct FuzzCampaign {
  /// The result of a seed.
  enum Verdict {
    /// The input was accepted with a meaning, and that meaning is right.
    case accepted
    /// The input was refused.
    case refused
    /// A rule was broken.
    case broken(String)
  }

  /// The number of failures after which a campaign stops: more would show the same.
  private static let failureLimit = 5

  /// The minimum number of inputs to judge their shares: a scaled-down campaign may have six.
  private static let fewestToJudge = 40

  let name: String
  /// The number of seeds at scale 1.
  let count: Int

  /// Runs every seed.
  ///
  /// - Parameters:
  ///   - minimumAccepted: the share of inputs that must be accepted: otherwise the oracle is not
  ///     tested.
  ///   - minimumRefused: the share of inputs that must be refused.
  ///   - body: makes an input from the generator and judges it.
  func run(
    minimumAccepted: Double, minimumRefused: Double,
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
    // Among a few inputs, there may be none of the expected kind.
    guard FuzzScale.onlySeed == nil, seedCount >= Self.fewestToJudge else { return }
    #expect(Double(acceptedCount) >= minimumAccepted * Double(seedCount), "of \(seedCount)")
    #expect(Double(refusedCount) >= minimumRefused * Double(seedCount), "of \(seedCount)")
  }
}
