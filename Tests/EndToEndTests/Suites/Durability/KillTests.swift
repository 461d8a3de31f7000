import Foundation
import Testing

/// The cost of a `kill -9` at any moment.
extension RealMounts {
  @Suite struct Kills {
    private static let maximumMedian: Int64 = 4 << 20
    private static let maximumLoss: Int64 = 16 << 20

    @Test(.timeLimit(.minutes(60)))
    func `a mount that is killed at any moment goes on with what it had`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      var losses: [Int64] = []
      var readCount = 0
      var cachedByteCount: Int64 = 0
      for index in 0..<DurabilityScale.killCount {
        let seed = DurabilityScale.seed &* 100_000 &+ UInt64(index)
        // Every fifth round has much to lose, so its greatest loss is meaningful.
        let round = try KillRound(
          seed: seed, index % 5 == 0 ? .muchToLose : .anyMoment, in: sandbox, origin)
        for violation in round.violations { Issue.record(Comment(rawValue: violation)) }
        losses.append(round.repeatedByteCount)
        readCount += round.readCount
        cachedByteCount += round.cachedByteCount
      }
      losses.sort()
      let median = losses[losses.count / 2]
      let greatest = losses[losses.count - 1]
      print(
        """
        kill-test: \(losses.count) kills, \(readCount) reads verified before them, \
        \(mebibytes(cachedByteCount)) MiB in the cache at the kills; \
        fetched again: median \(mebibytes(median)) MiB, at most \(mebibytes(greatest)) MiB
        """)
      #expect(median <= Self.maximumMedian)
      #expect(greatest <= Self.maximumLoss)
      // Otherwise no process has read, or the kills came before there was anything to lose.
      #expect(readCount > 0)
      #expect(cachedByteCount > Int64(losses.count) << 20)
    }
  }
}

/// Formats a number of bytes in MiB with two digits.
func mebibytes(_ byteCount: Int64) -> String {
  String(format: "%.2f", Double(byteCount) / 1_048_576)
}
