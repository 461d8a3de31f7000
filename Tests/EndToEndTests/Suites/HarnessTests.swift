import Glibc
import Testing

/// Checks the harness itself: its counts and its clean-up must be right before it judges httpfs.
extension RealMounts {
  @Suite struct Harness {
    @Test func `a child that does not end is reported at its deadline and killed`() throws {
      #expect(throws: HarnessError.self) {
        try run(["sleep", "60"], within: .milliseconds(100))
      }
      let child = try ChildProcess(["sleep", "60"])
      child.kill()
      #expect(child.ending == .signalled(SIGKILL))
    }

    @Test func `a child's output and exit status are kept apart`() throws {
      let result = try run(["sh", "-c", "echo out; echo err >&2; exit 3"])
      #expect(result.output == "out\n")
      #expect(result.error == "err\n")
      #expect(result.ending == .exited(3))
    }

    @Test func `overlapping requests are counted and touching ones are not`() {
      func request(_ start: Double, _ end: Double) -> LoggedRequest {
        LoggedRequest(
          path: "/", method: "GET", range: nil, status: 206, bodyByteCount: 1, connection: 1,
          start: start, end: end)
      }
      let requests = [request(0, 2), request(1, 3), request(2, 4), request(5, 6)]
      #expect(requests.peakConcurrency == 2)
      #expect(requests.span == 6)
    }

    @Test func `nginx logs the body bytes of each request`() throws {
      let sandbox = try Sandbox()
      let root = try sandbox.makeDirectory("www")
      try sandbox.write([UInt8](repeating: 7, count: 100_000), to: "www/a.bin")
      let nginx = try sandbox.nginx(root: root)
      let url = nginx.url("a.bin")
      try output(of: ["curl", "-sS", "-o", "/dev/null", "-r", "10-19", url])
      try output(of: ["curl", "-sS", "-o", "/dev/null", url])
      let requests = try nginx.takeRequests().of(path: "/a.bin")
      #expect(requests.map(\.bodyByteCount) == [10, 100_000])
      #expect(requests.map(\.range) == ["bytes=10-19", nil])
      #expect(try nginx.takeRequests().isEmpty)
    }

    @Test func `the Origin serves the bytes that the tests expect`() throws {
      let origin = try OriginServer()
      let url = origin.url("x.bin", length: 3_000_001, seed: 9)
      let digest = try shell("curl -sS \(quoted(url)) | sha256sum")
      #expect(digest.prefix(64) == Digest.ofContent(seed: 9, byteCount: 3_000_001))
      let part = try shell("curl -sS -r 1234567-2345678 \(quoted(url)) | sha256sum")
      #expect(
        part.prefix(64)
          == Digest.ofContent(seed: 9, offset: 1_234_567, byteCount: 2_345_678 - 1_234_567 + 1))
      try origin.control("/data/*", ["version": "2"])
      let second = try shell("curl -sS \(quoted(url)) | sha256sum")
      #expect(second.prefix(64) == Digest.ofContent(seed: 9, version: 2, byteCount: 3_000_001))
      #expect(try origin.requests().map(\.status) == [200, 206, 200])
    }
  }
}
