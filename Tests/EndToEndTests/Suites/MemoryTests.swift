import Testing

/// Memory does not grow with the number of open files.
///
/// `WholeFiles` checks the read of 1 GiB.
extension RealMounts {
  @Suite struct Memory {
    @Test func `1,000 open files need at most 64 MiB`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: (0..<1000).map { origin.url("o\($0).bin", length: 1 << 20, seed: UInt64($0)) })
      let reader = try sandbox.start(
        Python.command(Self.script) + [mount.mountpoint], input: .pipe)
      let opened = Deadline(after: .seconds(60)).wait {
        reader.standardOutput.contains("open") || !reader.isRunning
      }
      #expect(opened && reader.isRunning, "\(reader.standardError)")
      let resident = try mount.peakResidentByteCount
      #expect(resident <= 64 << 20, "\(resident >> 20) MiB")
      print("1,000 open files: peak resident \(resident >> 20) MiB")
      let name = "o999.bin"
      #expect(
        try mount.sha256(name) == Digest.ofContent(seed: 999, byteCount: 1 << 20))
      reader.closeInput()
      #expect(reader.wait(within: .seconds(10)) == .exited(0))
    }

    /// Opens every file, reads a page of each, and holds them open until its input ends.
    private static let script = """
      import os, sys
      held = []
      for index in range(1000):
          descriptor = os.open(os.path.join(sys.argv[1], f"o{index}.bin"), os.O_RDONLY)
          assert len(os.pread(descriptor, 4096, 500_000)) == 4096
          held.append(descriptor)
      print("open", flush=True)
      sys.stdin.read()
      """
  }
}
