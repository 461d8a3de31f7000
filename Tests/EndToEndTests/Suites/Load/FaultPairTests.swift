import Testing

/// Issue 14, point 4: conditions that hold at the same time, a sample of what
/// `scripts/torture faults --pairs` runs.
extension RealMounts {
  @Suite struct FaultPairs {
    @Test(.timeLimit(.minutes(10)), arguments: FaultSeeds.all)
    func `Pairs of conditions: right bytes or a promised error in time, and nothing left`(
      seed: UInt64
    ) throws {
      try Self.passes(
        ["--sample", "--seeds", "1", "--first-seed", String(seed)], within: .seconds(540))
    }

    @Test(.timeLimit(.minutes(10)))
    func `Pairs of conditions of a download: the right file or a promised exit code`() throws {
      try Self.passes(["--get", "--sample", "--seeds", "1"], within: .seconds(540))
    }

    @Test(.timeLimit(.minutes(5)))
    func `The judge of pairs finds wrong bytes, late answers, loops and a dead daemon`()
      throws
    {
      try Self.passes(["--self-check"], within: .seconds(280))
    }

    @Test(.timeLimit(.minutes(5)))
    func `The judge of downloads finds wrong files, unpromised codes, loops and leftovers`()
      throws
    {
      try Self.passes(["--get", "--self-check"], within: .seconds(280))
    }

    private static func passes(_ options: [String], within limit: Duration) throws {
      let result = try LoadScript.run("faults", ["--pairs"] + options, within: limit)
      print(result.output, terminator: "")
      // What broke which promise stands on standard error.
      let isGood = result.succeeded
      #expect(isGood, "\(result.error)")
    }
  }
}
