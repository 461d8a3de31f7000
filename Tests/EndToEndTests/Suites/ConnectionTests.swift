import Testing

/// Issue point 5: parallel connections where they help.
extension RealMounts {
  @Suite struct Connections {
    @Test func `a throttle of each connection is met by at least five of them`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 512 << 20
      let rate = 10_000_000
      let mount = try sandbox.mount(
        urls: [origin.url("t.bin", length: length, seed: 51, query: "rate=\(rate)")])
      #expect(
        try mount.sha256("t.bin", within: .seconds(120))
          == Digest.ofContent(seed: 51, byteCount: length))
      try mount.unmount()
      let requests = try origin.requests()
      #expect(Set(requests.map(\.connection)).count >= 5)
      #expect(requests.peakConcurrency >= 5, "\(requests.peakConcurrency) at once")
      // What the connections did together, in units of what one is allowed; the start, when there
      // are few yet, is part of it.
      let ratio = Double(requests.bodyByteCount) / (requests.span * Double(rate))
      #expect(ratio >= 4, "\(ratio) × one connection")
      print("throttled connections: \(ratio) × one, \(requests.peakConcurrency) at once")
    }

    @Test func `--connections is a limit`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 48 << 20
      let mount = try sandbox.mount(
        urls: [origin.url("t.bin", length: length, seed: 52, query: "rate=16777216")],
        options: ["--connections", "2"])
      #expect(try mount.sha256("t.bin") == Digest.ofContent(seed: 52, byteCount: length))
      try mount.unmount()
      let requests = try origin.requests()
      #expect(requests.peakConcurrency <= 2, "\(requests.peakConcurrency) at once")
    }
  }
}
