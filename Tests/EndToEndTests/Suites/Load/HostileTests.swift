import Testing

/// A sample of scripts/torture hostile: generated hostile servers and files of every kind.
extension RealMounts {
  @Suite struct HostileSamples {
    @Test(.timeLimit(.minutes(4)))
    func `60 hostile servers and files: no crash, no stall of others, no leak`() throws {
      let result = try LoadScript.run(
        "hostile", ["--first-case", "1", "--cases", "60", "--jobs", "2"], within: .seconds(200))
      print(result.output, terminator: "")
      #expect(result.succeeded, "\(result.output)\(result.error)")
    }

    @Test(.timeLimit(.minutes(4)))
    func `A list of 40,000 files costs get little memory and work`() throws {
      let result = try LoadScript.run("hostile", ["--case", "1999"], within: .seconds(200))
      #expect(result.succeeded, "\(result.output)\(result.error)")
    }

    @Test(.timeLimit(.minutes(4)))
    func `Each bound of scripts/torture hostile is seen to be broken`() throws {
      let result = try LoadScript.run("hostile", ["--self-check"], within: .seconds(200))
      #expect(result.succeeded, "\(result.output)\(result.error)")
    }
  }
}
