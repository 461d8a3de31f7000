import Testing

/// Servers that do not support ranges, or do not send the length of a body.
extension RealMounts {
  @Suite struct StreamedBodies {
    private static let length: Int64 = 24 << 20

    @Test(arguments: ["ranges=no", "chunked=1", "close-delimited=1", "fault=ignore-range"])
    func `a body that can only be streamed is streamed once`(query: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("w.bin", length: Self.length, seed: 121, query: query)])
      let digest = Digest.ofContent(seed: 121, byteCount: Self.length)
      #expect(try mount.sha256("w.bin") == digest)
      #expect(try output(of: ["stat", "-c", "%s", mount.path("w.bin")]) == "\(Self.length)\n")
      #expect(try mount.sha256("w.bin") == digest)
      let status = try mount.status(of: "w.bin")
      #expect(status.state == "complete")
      #expect(status.length == Self.length)
      try mount.unmount()
      // A probe may be cut off; the body itself is sent once.
      #expect(Double(try origin.requests().bodyByteCount) <= 1.5 * Double(Self.length))
    }

    @Test(arguments: ["ranges=no", "chunked=1"])
    func `the prefix is served while the body grows, and .status says so`(query: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url("w.bin", length: Self.length, seed: 122, query: "\(query)&rate=2097152")
        ])
      let head = try output(
        of: ["bash", "-c", "head -c 1000000 \(quoted(mount.path("w.bin"))) | sha256sum"],
        within: .seconds(30))
      #expect(head.prefix(64) == Digest.ofContent(seed: 122, byteCount: 1_000_000))
      let status = try mount.status(of: "w.bin")
      #expect(status.state == "streaming", "\(status.state)")
      #expect(status.cachedByteCount < Self.length)
    }
  }
}
