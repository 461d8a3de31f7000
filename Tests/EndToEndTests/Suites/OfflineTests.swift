import Testing

/// The cache is usable without the origin.
extension RealMounts {
  @Suite struct Offline {
    private static let length: Int64 = 16 << 20

    @Test func `cached bytes stay readable, the rest fails quickly`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url("whole.bin", length: Self.length, seed: 111),
          origin.url("part.bin", length: Self.length, seed: 112),
        ], options: ["--read-timeout", "10"])
      let whole = Digest.ofContent(seed: 111, byteCount: Self.length)
      #expect(try mount.sha256("whole.bin") == whole)
      let piece = HeldFile.Reading.bytes(
        count: 65536, sha256: Digest.ofContent(seed: 112, byteCount: 65536))
      let before = try HeldFile(mount.path("part.bin"))
      #expect(try before.read(at: 0, 65536) == piece)
      before.close()
      origin.stop()
      // Longer than an open trusts the last answer.
      pause(for: .milliseconds(1500))

      #expect(try mount.sha256("whole.bin", within: .seconds(30)) == whole)
      let after = try HeldFile(mount.path("part.bin"))
      #expect(try after.read(at: 0, 65536) == piece)
      let missing = try after.read(at: 12 << 20, 65536, within: .seconds(15))
      #expect([.failed("EIO"), .failed("ETIMEDOUT")].contains(missing))
      #expect(try mount.status(of: "part.bin").lastError != nil)
    }

    @Test func `a mount without its origin serves what an earlier mount fetched`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("whole.bin", length: Self.length, seed: 113)
      let first = try sandbox.mount(urls: [url])
      let digest = Digest.ofContent(seed: 113, byteCount: Self.length)
      #expect(try first.sha256("whole.bin") == digest)
      try first.unmount()
      origin.stop()
      let second = try sandbox.mount(urls: [url], options: ["--read-timeout", "5"])
      #expect(try output(of: ["ls", second.mountpoint]) == "whole.bin\n")
      #expect(try second.sha256("whole.bin", within: .seconds(30)) == digest)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a cache entry that could not be opened once is served all the same`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "once.bin", seed: 115, byteCount: 1 << 20)
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let first = try sandbox.mount(urls: [file.url(origin)], failing: failing)
      #expect(try first.sha256(file.name) == file.digest)
      #expect(try first.unmount() == .exited(0))

      let mount = try sandbox.mount(
        urls: [file.url(origin)], options: ["--read-timeout", "8"], failing: failing)
      try output(of: ["stat", mount.path(file.name)])
      try failing.fail(FailingCalls.Plan(calls: "openat", filePrefix: "record"))
      let held = try HeldFile(mount.path(file.name))
      failing.pass()
      origin.stop()
      // The cache is retried every 5 s.
      pause(for: .milliseconds(5500))
      let expected = HeldFile.Reading.bytes(
        count: 65_536, sha256: Digest.ofContent(seed: file.seed, byteCount: 65_536))
      #expect(try held.read(at: 0, 65_536) == expected)
      #expect(try mount.sha256(file.name, within: .seconds(30)) == file.digest)
      held.close()
    }

    @Test func `a read goes on when the origin comes back in time`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("back.bin", length: Self.length, seed: 114, query: "rate=8388608")],
        options: ["--read-timeout", "40", "--connections", "1"])
      let reader = try sandbox.start(["sha256sum", mount.path("back.bin")])
      #expect(try mount.waitForStatus(of: "back.bin") { $0.cachedByteCount > 4 << 20 })
      let port = origin.port
      origin.stop()
      pause(for: .seconds(1))
      let second = try OriginServer(port: port)
      #expect(reader.wait(within: .seconds(60)) == .exited(0), "\(reader.standardError)")
      #expect(
        reader.standardOutput.prefix(64) == Digest.ofContent(seed: 114, byteCount: Self.length))
      second.stop()
    }
  }
}
