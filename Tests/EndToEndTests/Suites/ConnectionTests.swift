import Foundation
import Glibc
import Testing

/// The mount uses parallel connections where they help.
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
      // The rate of all connections, in units of the rate of one. It includes the start, when there
      // are few connections.
      let ratio = Double(requests.bodyByteCount) / (requests.span * Double(rate))
      #expect(ratio >= 4, "\(ratio) × one connection")
      print("throttled connections: \(ratio) × one, \(requests.peakConcurrency) at once")
    }

    @Test func `how many connections have paid is known to the next mount`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 96 << 20
      func peakOfFirstRead(_ name: String, seed: UInt64, byteCount: Int64) throws -> Int {
        try origin.clearLog()
        let mount = try sandbox.mount(
          urls: [origin.url(name, length: length, seed: seed, query: "rate=10000000")])
        let read = try run([
          "dd", "if=\(mount.path(name))", "of=/dev/null", "bs=1M", "count=\(byteCount >> 20)",
        ])
        #expect(read.succeeded, "\(read.error)")
        // A handle reports what it has learned when it is released.
        try mount.waitUntilClosed()
        try mount.unmount()
        return Set(try origin.requests().map(\.connection)).count
      }
      _ = try peakOfFirstRead("first.bin", seed: 61, byteCount: length)
      let hosts = try String(contentsOfFile: sandbox.path("cache/v1/hosts"), encoding: .utf8)
      let words = hosts.split(separator: " ")
      #expect(words.first.map(String.init) == "http://127.0.0.1:\(origin.port)")
      let learned = try #require(words.count == 3 ? Int(words[1]) : nil)
      #expect(learned >= 4, "\(hosts)")
      // Without that knowledge, so short a read reaches two connections.
      let knowing = try peakOfFirstRead("second.bin", seed: 62, byteCount: 6 << 20)
      #expect(knowing >= 4, "\(knowing) connections, of \(learned) that have paid")
    }

    @Test func `what was learned of connections is kept where a file is open at the end`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("t.bin", length: 96 << 20, seed: 63, query: "rate=10000000")])
      // As when the kernel drops the release that an unmount overtakes.
      let held = try HeldFile(mount.path("t.bin"))
      let read = try run(["dd", "if=\(mount.path("t.bin"))", "of=/dev/null", "bs=1M"])
      #expect(read.succeeded, "\(read.error)")
      mount.process.signal(SIGTERM)
      #expect(mount.process.wait(within: .seconds(10)) == .exited(0))
      held.close()
      let hosts = try String(contentsOfFile: sandbox.path("cache/v1/hosts"), encoding: .utf8)
      #expect(hosts.hasPrefix("http://127.0.0.1:\(origin.port) "), "\(hosts)")
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
      #expect(requests.sustainedConcurrency <= 2, "\(requests.sustainedConcurrency) at once")
    }
  }
}
