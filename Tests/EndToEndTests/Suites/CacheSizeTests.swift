import Foundation
import Testing

/// The bound that `--cache-size` sets.
extension RealMounts {
  @Suite struct CacheSize {
    @Test func `what was used least recently is evicted, said so, and fetched again`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 8 << 20
      let names = ["a.bin", "b.bin", "c.bin"]
      let mount = try sandbox.mount(
        urls: names.enumerated().map { index, name in
          origin.url(name, length: length, seed: UInt64(index))
        }, options: ["--cache-size", "20M"])
      for (index, name) in names.enumerated() {
        let digest = Digest.ofContent(seed: UInt64(index), byteCount: length)
        #expect(try mount.sha256(name) == digest)
        // More than a second apart, the order of use is certain on every file system.
        pause(for: .milliseconds(1100))
      }
      #expect(try mount.waitForStatus(of: "a.bin") { $0.cachedByteCount == 0 })
      for name in names.dropFirst() {
        #expect(try mount.status(of: name).cachedByteCount == length)
      }
      // An evicted file is intact: an offset that no page cache holds is fetched.
      try mount.unmount()
      let again = try sandbox.mount(
        urls: [origin.url("a.bin", length: length, seed: 0)], options: ["--cache-size", "20M"])
      #expect(try again.sha256("a.bin") == Digest.ofContent(seed: 0, byteCount: length))
      #expect(try again.status(of: "a.bin").fetchedByteCount == length)
    }

    @Test func `what this mount has only looked at is said to be gone when it is evicted`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let urls = ["a.bin", "b.bin"].map { origin.url($0, length: 3 << 20, seed: 5) }
      let first = try sandbox.mount(urls: urls)
      _ = try first.sha256("a.bin")
      #expect(try first.unmount() == .exited(0))
      pause(for: .milliseconds(1100))
      let second = try sandbox.mount(urls: urls, options: ["--cache-size", "4M"])
      _ = try output(of: ["stat", second.path("a.bin")])
      #expect(try second.status(of: "a.bin").cachedByteCount == 3 << 20)
      _ = try second.sha256("b.bin")
      #expect(
        try second.waitForStatus(of: "a.bin", within: .seconds(20)) {
          $0.cachedByteCount == 0 && $0.state != "complete"
        })
    }

    @Test(.timeLimit(.minutes(1)))
    func `a file that is opened while its old entry is evicted gets a new one`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "file.bin", seed: 8, byteCount: 16 << 20)
      let later = RemoteTestFile(name: "later.bin", seed: 9, byteCount: 6 << 20)
      let urls = [file.url(origin), later.url(origin)]
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let first = try sandbox.mount(urls: urls, failing: failing)
      #expect(try first.sha256(file.name) == file.digest)
      pause(for: .milliseconds(1100))
      #expect(try first.sha256(later.name) == later.digest)
      #expect(try first.unmount() == .exited(0))
      // There is room for only one of them.
      try failing.fail(
        FailingCalls.Plan(calls: "unlinkat", filePrefix: "record", effect: .held))
      let mount = try sandbox.mount(
        urls: urls, options: ["--cache-size", "18M"], failing: failing)
      defer {
        failing.pass()
        mount.tearDown()
      }
      let isHeld = try Deadline(after: .seconds(20)).wait(every: .milliseconds(10)) {
        try failing.calls().contains { $0.outcome == .held }
      }
      #expect(isHeld)
      let held = try HeldFile(mount.path(file.name))
      let reading = try held.read(at: 0, 65_536)
      #expect(
        reading
          == .bytes(
            count: 65_536,
            sha256: Digest.ofContent(seed: file.seed, offset: 0, byteCount: 65_536)))
      pause(for: .seconds(1))
      // Memory holds these bytes: at most 4 MiB ahead of a reader. No entry will hold them.
      let heldByteCount = try mount.status(of: file.name).fetchedByteCount
      #expect((65_536...(8 << 20)).contains(heldByteCount))
      failing.pass()
      // Bytes that come before the old entry is gone are kept in memory, too.
      pause(for: .milliseconds(500))
      #expect(try mount.sha256(file.name) == file.digest)
      held.close()
      #expect(try mount.unmount() == .exited(0))
      // All later bytes are in the new entry.
      try origin.clearLog()
      let next = try sandbox.mount(urls: [file.url(origin)], cache: "cache")
      #expect(try next.sha256(file.name) == file.digest)
      #expect(try next.unmount() == .exited(0))
      let fetchedAgain = try origin.requests()
      #expect(
        fetchedAgain.distinctBodyByteCount <= heldByteCount,
        "\(heldByteCount) bytes came while the disk stood still, then: \(fetchedAgain)")
    }
  }
}
