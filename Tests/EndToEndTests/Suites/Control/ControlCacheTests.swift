import Foundation
import Glibc
import Testing

/// The `.control` commands for cached bytes.
extension RealMounts {
  @Suite struct ControlCache {
    private static let length: Int64 = 4 << 20

    private func digest(_ seed: UInt64, version: UInt64 = 1) -> String {
      Digest.ofContent(seed: seed, version: version, byteCount: Self.length)
    }

    private func url(_ origin: OriginServer, _ index: UInt64) -> String {
      origin.url("f\(index).bin", length: Self.length, seed: index)
    }

    // MARK: evict

    @Test func `evict removes the cached bytes, and the next read fetches them again`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: (0..<3).map { url(origin, $0) })
      for index in 0..<3 { #expect(try mount.sha256("f\(index).bin") == digest(UInt64(index))) }
      try mount.waitUntilClosed()
      // Evict at once, while the bytes are not yet committed.
      #expect(try mount.control("evict f0.bin f1.*\n") == nil)
      for name in ["f0.bin", "f1.bin"] {
        #expect(try mount.waitForStatus(of: name) { $0.cachedByteCount == 0 && $0.state == "idle" })
      }
      #expect(try mount.status(of: "f2.bin").state == "complete")
      #expect(FileStatus.files(named: "record", below: mount.cacheDirectory).count == 1)
      // The kernel may still have pages of it: a read past them must be fetched.
      try origin.clearLog()
      try mount.unmount()
      let again = try sandbox.mount(urls: (0..<3).map { url(origin, $0) })
      for index in 0..<3 { #expect(try again.sha256("f\(index).bin") == digest(UInt64(index))) }
      #expect(try origin.requests().of(path: "/data/f0.bin").bodyByteCount >= Self.length)
      #expect(try origin.requests().of(path: "/data/f2.bin").bodyByteCount == 0)
      // Eviction also works for a file that this mount has not looked up.
      try again.unmount()
      let third = try sandbox.mount(urls: (0..<3).map { url(origin, $0) })
      #expect(try third.control("evict f2.bin\n") == nil)
      let isGone = Deadline(after: .seconds(10)).wait {
        FileStatus.files(named: "record", below: third.cacheDirectory).count == 2
      }
      #expect(isGone)
    }

    @Test func `an open file is not evicted, nor anything beside it`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: (0..<2).map { url(origin, $0) })
      for index in 0..<2 { #expect(try mount.sha256("f\(index).bin") == digest(UInt64(index))) }
      try mount.waitUntilClosed()
      let held = try HeldFile(mount.path("f1.bin"))
      #expect(try mount.control("evict *\n") == "EBUSY")
      #expect(try mount.status().files.map(\.state) == ["complete", "complete"])
      held.close()
      try mount.waitUntilClosed()
      #expect(try mount.control("evict *\n") == nil)
      #expect(try mount.waitForStatus(of: "f1.bin") { $0.cachedByteCount == 0 })
    }

    // MARK: pin

    @Test func `what is pinned outlives the size limit, evict, a remount and cache evict`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let urls = (0..<3).map { url(origin, $0) }
      let first = try sandbox.mount(urls: urls, options: ["--cache-size", "5M"])
      #expect(try first.control("pin f0.bin\n") == nil)
      #expect(try first.status(of: "f0.bin").pinned)
      #expect(try output(of: ["cat", first.path(".status")]).contains("pinned"))
      for index in 0..<3 {
        #expect(try first.sha256("f\(index).bin") == digest(UInt64(index)))
        pause(for: .milliseconds(1100))
      }
      #expect(try first.waitForStatus(of: "f1.bin") { $0.cachedByteCount == 0 })
      #expect(try first.status(of: "f0.bin").state == "complete")
      try first.waitUntilClosed()
      #expect(try first.control("evict f0.bin\n") == "EPERM")
      #expect(try first.status(of: "f0.bin").state == "complete")
      try first.unmount()

      let cache = ["--cache-dir", first.cacheDirectory]
      let evict = try run([try Products.httpfs, "cache", "evict", "--to", "1"] + cache)
      #expect(evict.ending == .exited(1))
      #expect(evict.error.contains("1 file pinned"), "\(evict.error)")
      #expect(
        try output(of: [try Products.httpfs, "cache", "ls"] + cache).contains("(pinned)"))
      try origin.clearLog()
      let second = try sandbox.mount(urls: urls)
      #expect(try second.status().files.map(\.pinned) == [true, false, false])
      #expect(try second.sha256("f0.bin") == digest(0))
      #expect(try origin.requests().bodyByteCount == 0)
      try second.waitUntilClosed()
      #expect(try second.control("unpin f0.bin\nevict f0.bin\n") == nil)
      #expect(try second.waitForStatus(of: "f0.bin") { $0.cachedByteCount == 0 })
      try second.unmount()
      let third = try sandbox.mount(urls: urls)
      #expect(try !third.status(of: "f0.bin").pinned)
    }

    // MARK: verify

    @Test func `verify finds what has changed on the disk, and it is fetched again`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [url(origin, 0)])
      #expect(try mount.sha256("f0.bin") == digest(0))
      try mount.waitUntilClosed()
      #expect(try mount.control("verify *\n") == nil)
      pause(for: .milliseconds(500))
      #expect(try mount.status(of: "f0.bin").damagedByteCount == 0)
      let data = try #require(
        FileManager.default.enumerator(atPath: mount.cacheDirectory)?.compactMap { $0 as? String }
          .first { ($0 as NSString).lastPathComponent.hasPrefix("data-") })
      let handle = try FileHandle(
        forUpdating: URL(fileURLWithPath: mount.cacheDirectory + "/" + data))
      try handle.seek(toOffset: 3_000_000)
      let byte = try #require(try handle.read(upToCount: 1)?.first)
      try handle.seek(toOffset: 3_000_000)
      try handle.write(contentsOf: [byte ^ 1])
      try handle.close()
      #expect(try mount.control("verify f0.bin\n") == nil)
      #expect(try mount.waitForStatus(of: "f0.bin") { $0.damagedByteCount > 0 })
      let damaged = try mount.status(of: "f0.bin")
      #expect(damaged.state != "complete")
      #expect(damaged.cachedByteCount == Self.length - damaged.damagedByteCount)
      // Only this file is fetched, once.
      try origin.clearLog()
      #expect(try mount.control("prefetch f0.bin\n") == nil)
      #expect(try mount.waitForStatus(of: "f0.bin") { $0.state == "complete" })
      #expect(try origin.requests().bodyByteCount <= damaged.damagedByteCount + 65_536)
      #expect(try mount.status(of: "f0.bin").damagedByteCount == damaged.damagedByteCount)
      try mount.unmount()
      let again = try sandbox.mount(urls: [url(origin, 0)])
      #expect(try again.sha256("f0.bin") == digest(0))
    }

    // MARK: refresh

    @Test func `refresh has the server asked at the next open, whatever --revalidate says`() throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [url(origin, 0), url(origin, 1)], options: ["--revalidate", "3600"])
      for index in 0..<2 { #expect(try mount.sha256("f\(index).bin") == digest(UInt64(index))) }
      try origin.control("*", ["version": "2"])
      #expect(try mount.sha256("f0.bin") == digest(0))
      #expect(try mount.control("refresh f0.bin\n") == nil)
      #expect(try mount.sha256("f0.bin") == digest(0, version: 2))
      #expect(try mount.sha256("f1.bin") == digest(1))
      // A refresh without a server removes nothing.
      origin.stop()
      #expect(try mount.control("refresh\n") == nil)
      #expect(try mount.control("refresh *\n") == nil)
      #expect(try mount.sha256("f0.bin") == digest(0, version: 2))
      #expect(try mount.sha256("f1.bin") == digest(1))
    }

    @Test func `refresh without names reads the list again`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(url(origin, 0) + "\n", to: "list.txt")
      let mount = try sandbox.mount(source: list)
      try sandbox.write(url(origin, 0) + "\n" + url(origin, 1) + "\n", to: "list.txt")
      #expect(try mount.control("refresh\n") == nil)
      let isReloaded = try Deadline(after: .seconds(10)).wait(every: .milliseconds(20)) {
        try mount.status().files.count == 2
      }
      #expect(isReloaded)
      #expect(try mount.sha256("f1.bin") == digest(1))
    }
  }
}
