import SeededRandom
import Testing

/// A read of a part of a file costs about that part.
extension RealMounts {
  @Suite struct PartialReads {
    private static let length: Int64 = 1 << 30

    /// Expects that at most `limit` bytes were sent, and none twice except hedged ones.
    private func expectAtMost(
      _ limit: Int64, _ origin: OriginServer, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let requests = try origin.requests()
      let sent = requests.distinctBodyByteCount
      #expect(sent <= limit, "\(sent) bytes", sourceLocation: sourceLocation)
      let isOnce =
        requests.bodyByteCount <= limit
        || requests.repeatedByteCount <= requests.maximumVainByteCount
      #expect(isOnce, "\(requests.repeatedByteCount) bytes twice", sourceLocation: sourceLocation)
    }

    @Test func `1 MiB from the middle of 1 GiB fetches at most 2 MiB`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("m.bin", length: Self.length, seed: 31)])
      let digest = try shell(
        "dd if=\(quoted(mount.path("m.bin"))) bs=1M skip=512 count=1 status=none | sha256sum")
      #expect(
        digest.prefix(64) == Digest.ofContent(seed: 31, offset: 512 << 20, byteCount: 1 << 20))
      try mount.unmount()
      try expectAtMost(2 << 20, origin)
    }

    @Test func `one 4 KiB read at a random place fetches at most 256 KiB`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [origin.url("r.bin", length: Self.length, seed: 32)])
      let offset: Int64 = 777_777_777
      let file = try HeldFile(mount.path("r.bin"))
      #expect(
        try file.read(at: offset, 4096)
          == .bytes(
            count: 4096, sha256: Digest.ofContent(seed: 32, offset: offset, byteCount: 4096)))
      file.close()
      try mount.unmount()
      try expectAtMost(256 << 10, origin)
    }

    @Test(arguments: [1, 16])
    func `200 random reads cost a request each, and as many at once as there are threads`(
      threads: Int
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("r.bin", length: Self.length, seed: 33, query: "latency=50")])
      var generator = SeededGenerator(seed: UInt64(threads))
      let offsets = (0..<200).map { _ in
        Int64.random(in: 0..<Self.length / 4096 - 1, using: &generator) * 4096
      }
      let reads = try RandomReads.run(
        mount.path("r.bin"), offsets: offsets, byteCount: 4096, threads: threads,
        within: .seconds(60))
      #expect(
        reads.digests
          == offsets.map { Digest.ofContent(seed: 33, offset: $0, byteCount: 4096) })
      try mount.unmount()
      let requests = try origin.requests()
      let rangeCount = Set(requests.map(\.range)).count
      #expect(rangeCount <= 205, "\(rangeCount) ranges")
      // A hedge requests a range again.
      #expect(
        requests.count <= 205 + requests.maximumHedgeCount, "\(requests.count) requests")
      try expectAtMost(2 * 200 * 4096 + (256 << 10), origin)
      if threads == 1 {
        // The reads are sequential, with a round trip each: at most a probe and a read are in
        // flight at once.
        #expect(requests.sustainedConcurrency <= 2)
      } else {
        #expect(requests.peakConcurrency >= 8, "\(requests.peakConcurrency) at once")
      }
      print(
        "200 random reads, \(threads) threads: \(reads.seconds) s, ideal \(10.0 / Double(threads))")
    }

    @Test func `what one reader fetched is not fetched for another`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 32 << 20
      let mount = try sandbox.mount(
        urls: [origin.url("s.bin", length: length, seed: 34, query: "rate=16777216")])
      let readers = try (0..<4).map { _ in try sandbox.start(["sha256sum", mount.path("s.bin")]) }
      for reader in readers {
        #expect(reader.wait(within: .seconds(60)) == .exited(0))
        #expect(reader.standardOutput.prefix(64) == Digest.ofContent(seed: 34, byteCount: length))
      }
      try mount.unmount()
      let requests = try origin.requests()
      #expect(requests.distinctBodyByteCount == length)
      #expect(requests.repeatedByteCount <= length / 100 + requests.maximumVainByteCount)
    }
  }
}
