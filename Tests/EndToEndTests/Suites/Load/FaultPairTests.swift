import Testing

/// Issue 14, point 4: conditions that hold at the same time, a sample of what
/// `scripts/torture faults --pairs` runs.
extension RealMounts {
  @Suite struct FaultPairs {
    @Test(.timeLimit(.minutes(10)), arguments: FaultSeeds.all)
    func `Pairs of conditions: right bytes or a promised error in time, and nothing left`(
      seed: UInt64
    ) throws {
      let result = try LoadScript.run(
        "faults", ["--pairs", "--sample", "--seeds", "1", "--first-seed", String(seed)],
        within: .seconds(540))
      print(result.output, terminator: "")
      // What broke which promise stands on standard error.
      let isGood = result.succeeded
      #expect(isGood, "\(result.error)")
    }

    @Test(.timeLimit(.minutes(5)))
    func `The judge of pairs finds wrong bytes, late answers, loops and a dead daemon`()
      throws
    {
      let result = try LoadScript.run("faults", ["--pairs", "--self-check"], within: .seconds(280))
      print(result.output, terminator: "")
      // What broke which promise stands on standard error.
      let isGood = result.succeeded
      #expect(isGood, "\(result.error)")
    }
  }
}
