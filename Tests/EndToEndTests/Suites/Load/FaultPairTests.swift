import Testing

/// Conditions that hold at the same time: a sample of the runs of `scripts/torture faults --pairs`.
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
      // Standard error has the condition and the broken promise.
      let isGood = result.succeeded
      #expect(isGood, "\(result.error)")
    }

    @Test(.timeLimit(.minutes(10)), arguments: FaultSeeds.all)
    func `Pairs of conditions of a download: right files or a promised exit code in time`(
      seed: UInt64
    ) throws {
      let result = try LoadScript.run(
        "faults", ["--pairs", "--get", "--sample", "--seeds", "1", "--first-seed", String(seed)],
        within: .seconds(540))
      print(result.output, terminator: "")
      let isGood = result.succeeded
      #expect(isGood, "\(result.error)")
    }

    @Test(.timeLimit(.minutes(5)))
    func `The judge of pairs finds wrong bytes, late answers, loops and a dead daemon`()
      throws
    {
      let result = try LoadScript.run("faults", ["--pairs", "--self-check"], within: .seconds(280))
      print(result.output, terminator: "")
      // Standard error has the condition and the broken promise.
      let isGood = result.succeeded
      #expect(isGood, "\(result.error)")
    }
  }
}
