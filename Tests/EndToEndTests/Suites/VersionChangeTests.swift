import Testing

/// An open handle never sees two versions.
extension RealMounts {
  @Suite struct VersionChanges {
    private static let length: Int64 = 64 << 20
    private static let piece = 128 << 10

    /// The expected result of a read that returns bytes of `version`.
    private func expected(version: UInt64, at offset: Int64, seed: UInt64) -> HeldFile.Reading {
      .bytes(
        count: Self.piece,
        sha256: Digest.ofContent(
          seed: seed, version: version, offset: offset, byteCount: Int64(Self.piece)))
    }

    @Test(arguments: ["both", "etag", "weak", "date"])
    func `a change between two reads gives ESTALE, then the new version at open`(
      validators: String
    ) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url("v.bin", length: Self.length, seed: 61, query: "validators=\(validators)")
        ])
      let old = try HeldFile(mount.path("v.bin"))
      #expect(try old.read(at: 0, Self.piece) == expected(version: 1, at: 0, seed: 61))
      try origin.control("/data/v.bin", ["version": "2"])
      for offset in stride(from: Int64(8 << 20), to: Self.length, by: 8 << 20) {
        let reading = try old.read(at: offset, Self.piece)
        #expect(reading == .failed("ESTALE"), "at \(offset)")
      }
      // The bytes that the handle has read stay the same.
      let again = try old.read(at: 0, Self.piece)
      #expect([expected(version: 1, at: 0, seed: 61), .failed("ESTALE")].contains(again))

      let new = try HeldFile(mount.path("v.bin"))
      for offset in stride(from: Int64(0), to: Self.length, by: 8 << 20) {
        #expect(
          try new.read(at: offset, Self.piece) == expected(version: 2, at: offset, seed: 61),
          "at \(offset)")
      }
      // The old handle coexists with the new one and keeps its version.
      let last = try old.read(at: 0, Self.piece)
      #expect([expected(version: 1, at: 0, seed: 61), .failed("ESTALE")].contains(last))
    }

    @Test func `a change while nothing is open is seen by the next open`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 4 << 20
      let mount = try sandbox.mount(
        urls: [origin.url("v.bin", length: length, seed: 62)], options: ["--revalidate", "0"])
      #expect(try mount.sha256("v.bin") == Digest.ofContent(seed: 62, byteCount: length))
      try origin.control("/data/v.bin", ["version": "2", "length": String(length + 4096)])
      #expect(
        try mount.sha256("v.bin")
          == Digest.ofContent(seed: 62, version: 2, byteCount: length + 4096))
    }

    @Test func `a change between two mounts leaves no byte of the old version`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 4 << 20
      let url = origin.url("v.bin", length: length, seed: 63)
      let first = try sandbox.mount(urls: [url])
      #expect(try first.sha256("v.bin") == Digest.ofContent(seed: 63, byteCount: length))
      try first.unmount()
      try origin.control("/data/v.bin", ["version": "2"])
      let second = try sandbox.mount(urls: [url])
      #expect(
        try second.sha256("v.bin") == Digest.ofContent(seed: 63, version: 2, byteCount: length))
    }

    @Test func `alternating entity tags never mix bytes`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("f.bin", length: Self.length, seed: 64, query: "etag-flip=1")])
      guard let file = try? HeldFile(mount.path("f.bin")) else { return }
      for offset in stride(from: Int64(0), to: Self.length, by: 16 << 20) {
        let reading = try file.read(at: offset, Self.piece)
        if case .bytes(let count, _) = reading {
          // Only cached bytes of the version, perhaps fewer than requested.
          #expect(
            reading
              == .bytes(
                count: count,
                sha256: Digest.ofContent(seed: 64, offset: offset, byteCount: Int64(count))))
        } else {
          #expect([.failed("ESTALE"), .failed("EIO")].contains(reading))
        }
      }
      // A few reads cause a few requests, not a storm of restarts.
      #expect(try origin.requests().count <= 60)
    }
  }
}
