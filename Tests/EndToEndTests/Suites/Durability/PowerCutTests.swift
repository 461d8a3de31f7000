import Foundation
import Testing

/// Issue 4, point 2: what a loss of power at any moment costs.
extension RealMounts {
  @Suite struct PowerCuts {
    @Test(.timeLimit(.minutes(60)))
    func `a cut of power costs what was not committed yet, and no right byte`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"),
        byteCount: 1 << 30, format: DurabilityScale.powerCutFormat)
      defer { disk.unmount() }
      var losses: [Int64] = []
      var readCount = 0
      var oldByteCount: Int64 = 0
      var greatestAge = Duration.zero
      var slowerCount = 0
      var claimed: (before: Int64, after: Int64) = (0, 0)
      for index in 0..<DurabilityScale.powerCutCount {
        let seed = DurabilityScale.seed &* 100_000 &+ UInt64(index)
        let round = try PowerCutRound(
          seed: seed, index % 3 == 2 ? .anyMoment : .whenDue, on: disk, in: sandbox, origin)
        for violation in round.violations { Issue.record(Comment(rawValue: violation)) }
        #expect(
          round.overdueByteCount == 0,
          "seed \(seed): lost although recorded \(round.dueAge) before the cut")
        #expect(round.repeatedByteCount <= round.greatestLoss, "seed \(seed)")
        greatestAge = max(greatestAge, round.dueAge)
        if round.becameSlower { slowerCount += 1 }
        losses.append(round.repeatedByteCount)
        readCount += round.readCount
        oldByteCount += round.oldByteCount
        claimed.before += round.claimedByteCounts.before
        claimed.after += round.claimedByteCounts.after
      }
      losses.sort()
      let greatest = losses[losses.count - 1]
      print(
        """
        power-cut-test: \(losses.count) cuts on \(DurabilityScale.powerCutFormat.rawValue), \
        \(readCount) reads verified before them, \(mebibytes(claimed.before)) MiB recorded before \
        and \(mebibytes(claimed.after)) MiB after them, \(mebibytes(oldByteCount)) MiB of them due \
        for a checkpoint (after at most \(String(format: "%.2f", greatestAge.seconds)) s); \
        fetched again: median \(mebibytes(losses[losses.count / 2])) MiB, \
        at most \(mebibytes(greatest)) MiB
        """)
      // Else nothing was lost, because nothing was cut, or nothing that must not be could be.
      #expect(claimed.after < claimed.before)
      #expect(oldByteCount > 0 || slowerCount > 0)
    }
  }
}
