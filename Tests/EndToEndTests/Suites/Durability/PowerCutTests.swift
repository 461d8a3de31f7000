import Foundation
import Testing

/// The cost of a loss of power at any moment.
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
      var maximumAge = Duration.zero
      // Of the rounds whose cut waits for due bytes: their number, and the number with due bytes.
      var (dueCount, tellingCount) = (0, 0)
      var claimed: (before: Int64, after: Int64) = (0, 0)
      for index in 0..<DurabilityScale.powerCutCount {
        let seed = DurabilityScale.seed &* 100_000 &+ UInt64(index)
        let isWhenDue = index % 3 != 2
        let rounds =
          isWhenDue
          ? try PowerCutRound.whenDue(seed: seed, on: disk, in: sandbox, origin)
          : [try PowerCutRound(seed: seed, .anyMoment, on: disk, in: sandbox, origin)]
        if isWhenDue {
          dueCount += 1
          if rounds.contains(where: { $0.oldByteCount > 0 }) { tellingCount += 1 }
        }
        for round in rounds {
          for violation in round.violations { Issue.record(Comment(rawValue: violation)) }
          #expect(
            round.overdueByteCount == 0,
            "seed \(seed): lost although recorded \(round.dueAge) before the cut")
          #expect(round.repeatedByteCount <= round.maximumLoss, "seed \(seed)")
          maximumAge = max(maximumAge, round.dueAge)
          losses.append(round.repeatedByteCount)
          readCount += round.readCount
          oldByteCount += round.oldByteCount
          claimed.before += round.claimedByteCounts.before
          claimed.after += round.claimedByteCounts.after
        }
      }
      losses.sort()
      let greatest = losses[losses.count - 1]
      print(
        """
        power-cut-test: \(DurabilityScale.powerCutCount) cuts on \
        \(DurabilityScale.powerCutFormat.rawValue), and \
        \(losses.count - DurabilityScale.powerCutCount) more where nothing was due at one, \
        \(readCount) reads verified before them, \(mebibytes(claimed.before)) MiB recorded before \
        and \(mebibytes(claimed.after)) MiB after them, \(mebibytes(oldByteCount)) MiB of them due \
        for a checkpoint (after at most \(String(format: "%.2f", maximumAge.seconds)) s); \
        fetched again: median \(mebibytes(losses[losses.count / 2])) MiB, \
        at most \(mebibytes(greatest)) MiB
        """)
      // Otherwise no process has read, nothing was cut, or no bytes had to survive.
      #expect(readCount > 0)
      #expect(claimed.after < claimed.before)
      #expect(tellingCount * 2 >= dueCount, "\(tellingCount) of \(dueCount)")
    }
  }
}
