import Testing

/// A mount under faults, evictions, remote changes and reloads for some time.
extension RealMounts {
  @Suite struct Soaks {
    @Test(.timeLimit(.minutes(3)), arguments: FaultSeeds.all)
    func `20 s of 64 readers under faults: no wrong byte, no hang, all back at its baseline`(
      seed: UInt64
    ) throws {
      let result = try LoadScript.run(
        "soak", ["--seconds", "20", "--seed", String(seed)], within: .seconds(120))
      print(result.output, terminator: "")
      #expect(result.succeeded, "\(result.output)\(result.error)")
    }
  }
}
