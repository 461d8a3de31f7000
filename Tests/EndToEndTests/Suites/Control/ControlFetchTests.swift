import Foundation
import Glibc
import Testing

/// The `.control` commands for fetching.
extension RealMounts {
  @Suite struct ControlFetch {
    private func url(
      _ origin: OriginServer, _ name: String, length: Int64, seed: UInt64, query: String = ""
    ) -> String {
      origin.url(name, length: length, seed: seed, query: query)
    }

    // MARK: prefetch, cancel

    @Test func `prefetch fetches whole files that nobody reads, each byte once`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let lengths: [Int64] = [0, 1, 100_000, 20 << 20, 5_000_001, 1 << 20, 3 << 20, 7]
      let urls = lengths.enumerated().map {
        url(origin, "p\($0).bin", length: $1, seed: UInt64($0))
      }
      let mount = try sandbox.mount(urls: urls)
      #expect(try mount.control("prefetch *\n") == nil)
      let isComplete = try Deadline(after: .seconds(60)).wait(every: .milliseconds(50)) {
        try mount.status().files.allSatisfy { $0.state == "complete" }
      }
      let states = try mount.status().files.map(\.state)
      #expect(isComplete, "\(states)")
      #expect(try origin.requests().bodyByteCount == lengths.reduce(0, +))
      for (index, length) in lengths.enumerated() {
        #expect(
          try mount.sha256("p\(index).bin")
            == Digest.ofContent(seed: UInt64(index), byteCount: length))
      }
      #expect(try origin.requests().bodyByteCount == lengths.reduce(0, +))
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(arguments: ["ranges=no", "chunked=1"])
    func `a file of a server without ranges or length is prefetched, too`(query: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [url(origin, "s.bin", length: 3 << 20, seed: 5, query: query)])
      #expect(try mount.control("prefetch s.bin\n") == nil)
      #expect(try mount.waitForStatus(of: "s.bin") { $0.state == "complete" })
      #expect(try mount.sha256("s.bin") == Digest.ofContent(seed: 5, byteCount: 3 << 20))
    }

    @Test func `cancel ends it, what has come stays, and prefetch goes on from there`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 40 << 20
      let mount = try sandbox.mount(
        urls: [url(origin, "c.bin", length: length, seed: 6, query: "total-rate=8m")])
      #expect(try mount.control("prefetch c.bin\n") == nil)
      #expect(
        try mount.waitForStatus(of: "c.bin") {
          $0.state == "prefetching" && $0.cachedByteCount > 1 << 20 && $0.connections > 0
        })
      #expect(try mount.control("cancel c.bin\n") == nil)
      #expect(try mount.waitForStatus(of: "c.bin") { $0.state == "idle" && $0.connections == 0 })
      let cached = try mount.status(of: "c.bin").cachedByteCount
      pause(for: .seconds(1))
      #expect(try mount.status(of: "c.bin").cachedByteCount == cached)
      try origin.control("*", ["total-rate": "1g"])
      #expect(try mount.control("prefetch c.bin\n") == nil)
      #expect(try mount.waitForStatus(of: "c.bin") { $0.state == "complete" })
      #expect(try mount.sha256("c.bin") == Digest.ofContent(seed: 6, byteCount: length))
      // Bytes in flight at the moment of cancel may be sent twice.
      #expect(try origin.requests().bodyByteCount < length + (16 << 20))
    }

    @Test func `a prefetch gets over failures and an outage, and ends where the file is missing`()
      throws
    {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 12 << 20
      let mount = try sandbox.mount(urls: [
        url(origin, "w.bin", length: length, seed: 7, query: "total-rate=6m"),
        url(origin, "gone.bin", length: length, seed: 8, query: "status=404"),
      ])
      #expect(try mount.control("prefetch *\n") == nil)
      #expect(try mount.waitForStatus(of: "gone.bin") { $0.state == "failed" })
      #expect(try mount.waitForStatus(of: "w.bin") { $0.cachedByteCount > 1 << 20 })
      try origin.control("/data/w.bin", ["status": "503"])
      #expect(
        try mount.waitForStatus(of: "w.bin") { $0.lastError?.contains("503") == true })
      try origin.clearControl()
      #expect(
        try mount.waitForStatus(of: "w.bin", within: .seconds(60)) { $0.state == "complete" })
      #expect(try mount.sha256("w.bin") == Digest.ofContent(seed: 7, byteCount: length))
    }

    @Test func `a read is answered while everything else is being prefetched`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let urls = (0..<6).map {
        url(origin, "b\($0).bin", length: 64 << 20, seed: UInt64($0), query: "total-rate=8m")
      }
      let mount = try sandbox.mount(
        urls: urls + [url(origin, "r.bin", length: 8 << 20, seed: 9)])
      #expect(try mount.control("prefetch b*\n") == nil)
      #expect(try mount.waitForStatus(of: "b0.bin") { $0.cachedByteCount > 1 << 20 })
      let held = try HeldFile(mount.path("r.bin"))
      for offset in stride(from: Int64(0), to: 8 << 20, by: 1 << 20) {
        let expected = Digest.ofContent(seed: 9, offset: offset, byteCount: 65_536)
        #expect(
          try held.read(at: offset, 65_536, within: .seconds(10))
            == .bytes(count: 65_536, sha256: expected))
      }
      // No more than four files are prefetched at once.
      let active = try mount.status().files.filter { $0.connections > 0 }
      #expect(active.count <= 5)
      #expect(try mount.control("cancel *\n") == nil)
      held.close()
      #expect(try mount.unmount() == .exited(0))
    }

    // MARK: pause, resume

    @Test func `while paused only what reads wait for is fetched`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 64 << 20
      let mount = try sandbox.mount(urls: [url(origin, "h.bin", length: length, seed: 10)])
      let held = try HeldFile(mount.path("h.bin"))
      #expect(try mount.control("pause\n") == nil)
      #expect(try mount.waitForStatus(of: "h.bin") { $0.state == "paused" })
      // In order, like a player: each read is answered.
      let piece = 128 << 10
      for offset in stride(from: Int64(0), to: 8 << 20, by: Int64.Stride(piece)) {
        #expect(
          try held.read(at: offset, piece)
            == .bytes(
              count: piece,
              sha256: Digest.ofContent(seed: 10, offset: offset, byteCount: Int64(piece))))
      }
      pause(for: .milliseconds(500))
      let paused = try mount.status(of: "h.bin")
      #expect(paused.state == "paused")
      // The kernel's own read-ahead arrives as reads.
      #expect(paused.cachedByteCount <= 9 << 20, "\(paused.cachedByteCount)")
      #expect(try mount.control("resume h.bin\n") == nil)
      for offset in stride(from: Int64(8 << 20), to: 16 << 20, by: Int64.Stride(piece)) {
        _ = try held.read(at: offset, piece)
      }
      #expect(try mount.waitForStatus(of: "h.bin") { $0.cachedByteCount > 20 << 20 })
      held.close()
    }

    @Test func `pause stops a prefetch, resume goes on with it`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 40 << 20
      let mount = try sandbox.mount(
        urls: [url(origin, "q.bin", length: length, seed: 11, query: "total-rate=8m")])
      #expect(try mount.control("prefetch q.bin\n") == nil)
      #expect(try mount.waitForStatus(of: "q.bin") { $0.cachedByteCount > 1 << 20 })
      #expect(try mount.control("pause *\n") == nil)
      #expect(try mount.waitForStatus(of: "q.bin") { $0.state == "paused" && $0.connections == 0 })
      let cached = try mount.status(of: "q.bin").cachedByteCount
      pause(for: .seconds(1))
      #expect(try mount.status(of: "q.bin").cachedByteCount == cached)
      try origin.control("*", ["total-rate": "1g"])
      #expect(try mount.control("resume *\n") == nil)
      #expect(try mount.waitForStatus(of: "q.bin") { $0.state == "complete" })
      #expect(try mount.sha256("q.bin") == Digest.ofContent(seed: 11, byteCount: length))
    }

    // MARK: connections, rate-limit

    @Test func `connections bounds what is asked for at once, from then on`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [
        url(origin, "one.bin", length: 16 << 20, seed: 12, query: "rate=16m"),
        url(origin, "six.bin", length: 48 << 20, seed: 13, query: "rate=8m"),
      ])
      #expect(try mount.control("connections 1\n") == nil)
      #expect(try mount.sha256("one.bin") == Digest.ofContent(seed: 12, byteCount: 16 << 20))
      #expect(try origin.requests().of(path: "/data/one.bin").sustainedConcurrency == 1)
      #expect(try mount.control("connections 6\n") == nil)
      #expect(try mount.sha256("six.bin") == Digest.ofContent(seed: 13, byteCount: 48 << 20))
      let requests = try origin.requests().of(path: "/data/six.bin")
      #expect(requests.peakConcurrency >= 4, "\(requests.peakConcurrency)")
      #expect(requests.sustainedConcurrency <= 6, "\(requests.sustainedConcurrency)")
    }

    @Test func `rate-limit holds for all files together, and can be taken back`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 6 << 20
      let mount = try sandbox.mount(
        urls: (0..<3).map { url(origin, "l\($0).bin", length: length, seed: UInt64($0)) })
      #expect(try mount.control("rate-limit 2M\n") == nil)
      let start = ContinuousClock.now
      let readers = try (0..<2).map { try sandbox.start(["sha256sum", mount.path("l\($0).bin")]) }
      for (index, reader) in readers.enumerated() {
        #expect(reader.wait(within: .seconds(60)) == .exited(0))
        #expect(
          reader.standardOutput.prefix(64)
            == Digest.ofContent(seed: UInt64(index), byteCount: length))
      }
      let seconds = (ContinuousClock.now - start).seconds
      #expect(seconds > 5, "12 MiB at 2 MiB/s in \(seconds) s")
      #expect(seconds < 20, "12 MiB at 2 MiB/s in \(seconds) s")
      // The limit also works in the middle of a transfer.
      #expect(try mount.control("rate-limit 100K\n") == nil)
      let last = try sandbox.start(["sha256sum", mount.path("l2.bin")])
      #expect(last.wait(within: .seconds(2)) == nil)
      #expect(try mount.control("rate-limit 0\n") == nil)
      #expect(last.wait(within: .seconds(10)) == .exited(0))
      #expect(last.standardOutput.prefix(64) == Digest.ofContent(seed: 2, byteCount: length))
    }
  }
}
