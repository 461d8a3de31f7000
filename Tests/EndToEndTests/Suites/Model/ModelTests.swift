import Foundation
import Testing

/// Compares a real mount with a reference model.
///
/// A run has random reads, remote changes, failures of the server, evictions, reloads and kills.
///
/// A failed run prints its seed and its steps; `HTTPFS_MODEL_FIRST_SEED` and `HTTPFS_MODEL_SEEDS=1`
/// start the same run again. The result also depends on time: the seed repeats the operations, not
/// their moments.
extension RealMounts {
  @Suite struct Model {
    private static func number(_ name: String, default value: Int) -> Int {
      ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? value
    }

    private static let seeds: [Int] = {
      let first = number("HTTPFS_MODEL_FIRST_SEED", default: 1)
      return Array(first..<(first + max(1, number("HTTPFS_MODEL_SEEDS", default: 2))))
    }()

    @Test(arguments: seeds)
    func `no random sequence of operations shows what the model does not allow`(seed: Int) throws {
      let stepCount = Self.number("HTTPFS_MODEL_STEPS", default: 80)
      let run = try ModelRun(seed: UInt64(seed))
      do {
        try run.run(stepCount: stepCount)
      } catch {
        Issue.record(
          "HTTPFS_MODEL_FIRST_SEED=\(seed): \(error)\n\(run.log.joined(separator: "\n"))")
        return
      }
      print("model: seed \(seed), \(run.judgedCount) answers judged")
      // Otherwise the run has proven nothing.
      #expect(run.judgedCount >= stepCount / 6 + 10, "\(run.judgedCount) answers")
    }
  }
}
