import Testing

/// A refusal by the remote becomes the right errno, with the reason in `.status`.
extension RealMounts {
  @Suite struct RemoteErrors {
    /// A refusal by the remote, and the error that a local reader gets.
    struct Refusal: CustomTestStringConvertible {
      let name: String
      let parameters: String
      let message: String
      let mentions: String

      var testDescription: String { name }
    }

    @Test(arguments: [
      Refusal(
        name: "404", parameters: "status=404", message: "No such file or directory",
        mentions: "404"),
      Refusal(
        name: "410", parameters: "status=410", message: "No such file or directory",
        mentions: "410"),
      Refusal(
        name: "403", parameters: "status=403", message: "Permission denied",
        mentions: "403"),
      Refusal(
        name: "401", parameters: "status=401", message: "Permission denied",
        mentions: "401"),
    ])
    func `a status becomes its errno`(refusal: Refusal) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url("no.bin", length: 1000, seed: 1, query: refusal.parameters),
          origin.url("yes.bin", length: 1000, seed: 2),
        ], options: ["--read-timeout", "5"])
      let result = try run(["cat", mount.path("no.bin")], within: .seconds(15))
      #expect(result.ending == .exited(1))
      #expect(result.error.contains(refusal.message), "\(result.error)")
      let error = try #require(try mount.status(of: "no.bin").lastError)
      #expect(error.contains(refusal.mentions), "\(error)")
      // One failure does not affect the other files.
      #expect(try mount.sha256("yes.bin") == Digest.ofContent(seed: 2, byteCount: 1000))
    }

    @Test func `a server that only fails gives EIO by the deadline`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [origin.url("no.bin", length: 1000, seed: 1, query: "status=500")],
        options: ["--read-timeout", "3"])
      let result = try run(["cat", mount.path("no.bin")], within: .seconds(12))
      #expect(result.ending == .exited(1))
      #expect(
        result.error.contains("Input/output error") || result.error.contains("timed out"),
        "\(result.error)")
      #expect(try mount.status(of: "no.bin").lastError?.contains("500") == true)
    }

    @Test func `a refusal with an HTML page is asked for once`() throws {
      let sandbox = try Sandbox()
      let nginx = try sandbox.nginx(root: try sandbox.makeDirectory("www"))
      let mount = try sandbox.mount(urls: [nginx.url("nothere.bin")])
      let result = try run(["stat", mount.path("nothere.bin")], within: .seconds(15))
      #expect(result.error.contains("No such file"), "\(result.error)")
      #expect(try mount.status(of: "nothere.bin").lastError == "HTTP 404 Not Found; check the URL")
      #expect(try nginx.takeRequests().count == 1)
    }

    @Test func `503 with Retry-After is waited for, then read`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(urls: [
        origin.url(
          "busy.bin", length: 100_000, seed: 3,
          query: "status=503&retry-after=1&fault-count=2")
      ])
      #expect(try mount.sha256("busy.bin") == Digest.ofContent(seed: 3, byteCount: 100_000))
      #expect(try mount.status(of: "busy.bin").retries >= 1)
    }

    @Test func `a refused connection and an unknown host give EIO and the reason`() throws {
      let sandbox = try Sandbox()
      let port = try FreePort.next()
      let mount = try sandbox.mount(
        urls: ["http://127.0.0.1:\(port)/refused.bin", "http://no-such-host.invalid/unknown.bin"],
        options: ["--read-timeout", "3"])
      for name in ["refused.bin", "unknown.bin"] {
        let result = try run(["cat", mount.path(name)], within: .seconds(15))
        #expect(result.ending == .exited(1))
        #expect(
          result.error.contains("Input/output error") || result.error.contains("timed out"),
          "\(result.error)")
        #expect(try mount.status(of: name).lastError?.isEmpty == false)
      }
      // The names stay in the directory.
      #expect(try output(of: ["ls", mount.mountpoint]) == "refused.bin\nunknown.bin\n")
    }

    @Test(arguments: [
      "fault=truncate&fault-count=3", "fault=reset&fault-count=3", "fault=short-body&fault-count=2",
      "fault=stall&fault-count=1&stall-seconds=2", "fault=ignore-range&fault-count=1",
      "fault=wrong-content-range&fault-count=2", "fault=missing-content-range&fault-count=2",
      "fault=earlier-range&fault-count=2", "fault=empty-206&fault-count=2",
      "fault=html-200&fault-count=2", "fault=multipart&fault-count=2",
      "fault=extra-bytes&fault-count=3", "status=500&fault-count=2",
    ])
    func `a fault that passes leaves right bytes`(query: String) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 12 << 20
      let mount = try sandbox.mount(
        urls: [origin.url("f.bin", length: length, seed: 5)], options: ["--read-timeout", "30"])
      // The length is known before the fault, so later responses can be checked against it.
      try output(of: ["stat", mount.path("f.bin")])
      var parameters: [String: String] = [:]
      for pair in query.split(separator: "&") {
        let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
        parameters[parts[0]] = parts[1]
      }
      try origin.control("/data/f.bin", parameters)
      #expect(
        try mount.sha256("f.bin", within: .seconds(90))
          == Digest.ofContent(seed: 5, byteCount: length))
    }

    @Test func `a body in another coding is never taken for the file`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 4 << 20
      let mount = try sandbox.mount(
        urls: [origin.url("g.bin", length: length, seed: 7)], options: ["--read-timeout", "5"])
      try output(of: ["stat", mount.path("g.bin")])
      try origin.control("/data/g.bin", ["fault": "gzip", "fault-count": "1"])
      // The coding is part of the version: the handle may become stale, but returns no coded byte.
      let first = try run(["sha256sum", mount.path("g.bin")], within: .seconds(15))
      let digest = Digest.ofContent(seed: 7, byteCount: length)
      #expect(!first.succeeded || first.output.prefix(64) == digest)
      #expect(try mount.sha256("g.bin") == digest)
    }

    @Test func `redirects are followed, and a loop ends in EIO`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try sandbox.mount(
        urls: [
          origin.url(
            "from.bin", length: 10, seed: 1,
            query: "redirect=/data/to.bin%3Flength%3D300000%26seed%3D6"),
          origin.url("loop.bin", length: 10, seed: 1, query: "fault=redirect-loop"),
        ], options: ["--read-timeout", "5"])
      #expect(try mount.sha256("from.bin") == Digest.ofContent(seed: 6, byteCount: 300_000))
      let loop = try run(["cat", mount.path("loop.bin")], within: .seconds(15))
      #expect(loop.error.contains("Input/output error"), "\(loop.error)")
      #expect(try mount.status(of: "loop.bin").lastError?.contains("redirect") == true)
    }
  }
}
