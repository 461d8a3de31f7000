import Testing

/// A disk under the cache that is slower than the line, or stands still.
extension RealMounts {
  @Suite struct SlowDisks {
    private static let length: Int64 = 96 << 20
    /// What the daemon may have taken from the server while the disk stands still: what waits to be stored,
    /// what connections gather, and what libcurl and the sockets hold.
    private static let heldByteCount: Int64 = 40 << 20

    @Test(.timeLimit(.minutes(2)))
    func `a disk that stands still costs no request twice, and the mount answers meanwhile`() throws
    {
      let sandbox = try Sandbox()
      let disk = try LoopDisk(
        at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"), byteCount: 512 << 20
      )
      defer { disk.unmount() }
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "file.bin", seed: 811, byteCount: Self.length)
      let mount = try sandbox.mount(
        urls: [file.url(origin, query: "total-rate=24m")],
        options: ["--stall-timeout", "2"], cache: "disk/cache")
      defer { mount.tearDown() }

      let reader = try sandbox.start(["sha256sum", mount.path(file.name)])
      let begun = try mount.waitForStatus(of: file.name, within: .seconds(30)) {
        $0.cachedByteCount > 8 << 20
      }
      #expect(begun)
      try disk.setFrozen(true)
      let held = try mount.status(of: file.name)
      // Longer than a server may be silent, by far: it is not the server that is.
      pause(for: .seconds(6))
      for command in [
        ["stat", "--file-system", mount.mountpoint], ["stat", mount.path(file.name)],
        ["cat", mount.path(".status.json")],
      ] {
        let result = try run(command, within: .seconds(10))
        #expect(result.succeeded, "\(result.commandLine): \(result.error)")
        #expect(result.duration < .seconds(2), "\(result.commandLine): \(result.duration)")
      }
      let frozen = try mount.status(of: file.name)
      #expect(frozen.cachedByteCount < Self.length)
      #expect(frozen.fetchedByteCount - held.fetchedByteCount < Self.heldByteCount)
      #expect(frozen.retries == held.retries)
      #expect(frozen.waitingReads.contains { $0.reason.contains("disk of the cache") })
      #expect(reader.isRunning)
      try disk.setFrozen(false)

      #expect(reader.wait(within: .seconds(60)) == .exited(0), "\(reader.standardError)")
      #expect(reader.standardOutput.hasPrefix(file.digest))
      let end = try mount.status(of: file.name)
      #expect(end.retries == held.retries)
      // Requests that are cut short for a free connection bring a piece that another one brings, too.
      #expect(try origin.bodyByteCount(of: file) - Self.length < 1 << 20)
      #expect(try mount.unmount() == .exited(0))
    }
  }
}
