import Foundation
import Glibc
import Testing

/// The kernel reads a complete file directly from the cache where this is permitted.
extension RealMounts {
  @Suite struct Passthrough {
    private static let length: Int64 = 32 << 20

    @Test(
      .enabled(if: Host.isRoot, "needs root: the kernel allows passthrough to CAP_SYS_ADMIN only"),
      .enabled(if: Host.kernelHasPassthrough, "needs Linux 6.9 for FUSE passthrough"))
    func `a complete file is passed through, by read and by mmap`() throws {
      let sandbox = try Sandbox()
      try #require(
        Host.isOrdinaryFileSystem(sandbox.directory),
        "the temporary directory is on a stacked file system: set TMPDIR to one that is not")
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("p.bin", length: Self.length, seed: 81)])
      let digest = Digest.ofContent(seed: 81, byteCount: Self.length)
      #expect(try mount.sha256("p.bin") == digest)
      #expect(try mount.waitForStatus(of: "p.bin") { $0.state == "complete" })

      let file = try passedThrough("p.bin", on: mount)
      #expect(
        try file.read(at: 5_000_000, 1 << 20)
          == .bytes(
            count: 1 << 20,
            sha256: Digest.ofContent(seed: 81, offset: 5_000_000, byteCount: 1 << 20)))
      #expect(try mount.status(of: "p.bin").passthrough)
      #expect(
        try file.readMapped(at: 9_000_000, 1 << 20)
          == .bytes(
            count: 1 << 20,
            sha256: Digest.ofContent(seed: 81, offset: 9_000_000, byteCount: 1 << 20)))
      #expect(try mount.sha256("p.bin") == digest)
      file.close()
      #expect(try mount.waitForStatus(of: "p.bin") { !$0.passthrough })
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      .enabled(if: Host.isRoot, "needs root: the kernel allows passthrough to CAP_SYS_ADMIN only"),
      .enabled(if: Host.kernelHasPassthrough, "needs Linux 6.9 for FUSE passthrough"))
    func `what the disk has not confirmed is not passed through`() throws {
      let sandbox = try Sandbox()
      try #require(Host.isOrdinaryFileSystem(sandbox.directory))
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "p.bin", seed: 84, byteCount: Self.length)
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      try failing.fail(
        FailingCalls.Plan(
          calls: "fsync,fdatasync", filePrefix: "data-", count: nil, errno: EIO))
      let mount = try sandbox.mount(urls: [file.url(origin)], failing: failing)
      #expect(try mount.sha256(file.name) == file.digest)
      let held = try HeldFile(mount.path(file.name))
      let hasFailed = try Deadline(after: .seconds(20)).wait { try mount.cacheFailure() != nil }
      #expect(hasFailed)
      #expect(try !mount.status(of: file.name).passthrough)
      #expect(
        try held.read(at: 0, 1 << 20)
          == .bytes(
            count: 1 << 20, sha256: Digest.ofContent(seed: 84, offset: 0, byteCount: 1 << 20)))
      held.close()
      // The file is complete once the disk confirms it.
      failing.pass()
      // The kernel's own pages would answer a reader. After a failure, the cache is not used for 5
      // s, and nothing is prefetched.
      let isComplete = try Deadline(after: .seconds(40)).wait(every: .seconds(1)) {
        if try mount.status(of: file.name).state == "complete" { return true }
        #expect(try mount.control("prefetch \(file.name)\n") == nil)
        return false
      }
      #expect(isComplete)
      #expect(try mount.sha256(file.name) == file.digest)
      #expect(try mount.unmount() == .exited(0))
    }

    /// Opens a complete file until the kernel reads it directly, which it does once all of it is
    /// committed.
    private func passedThrough(_ name: String, on mount: Mount) throws -> HeldFile {
      var file = try HeldFile(mount.path(name))
      let isPassedThrough = try Deadline(after: .seconds(30)).wait {
        if try mount.status(of: name).passthrough { return true }
        file.close()
        _ = try mount.sha256(name)
        file = try HeldFile(mount.path(name))
        return false
      }
      #expect(isPassedThrough)
      return file
    }

    @Test func `a file that was open before it became complete reads on beside a new open`() throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("p.bin", length: Self.length, seed: 82)])
      let early = try HeldFile(mount.path("p.bin"))
      let place: Int64 = 20_000_000
      let expected = HeldFile.Reading.bytes(
        count: 4096, sha256: Digest.ofContent(seed: 82, offset: place, byteCount: 4096))
      #expect(try early.read(at: place, 4096) == expected)
      #expect(try mount.sha256("p.bin") == Digest.ofContent(seed: 82, byteCount: Self.length))
      let late = try HeldFile(mount.path("p.bin"))
      #expect(try late.read(at: place, 4096) == expected)
      #expect(try early.read(at: place, 4096) == expected)
      #expect(try early.readMapped(at: place, 4096) == expected)
      early.close()
      #expect(try late.readMapped(at: place, 4096) == expected)
    }

    @Test func `with root's privileges or without, a second read comes from the cache`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("p.bin", length: Self.length, seed: 83)])
      let digest = Digest.ofContent(seed: 83, byteCount: Self.length)
      #expect(try mount.sha256("p.bin") == digest)
      let sent = try origin.requests().bodyByteCount
      for _ in 0..<3 { #expect(try mount.sha256("p.bin") == digest) }
      #expect(try origin.requests().bodyByteCount == sent)
    }
  }
}
