import Foundation
import Glibc
import SeededRandom
import Testing

/// The rows about the hosts that get requests, and the times: gates, redirects, certificates.
extension RealMounts.NetworkRows {
  // MARK: 23

  @Test(
    "23 Retry-After of one file holds back every request to its host", .timeLimit(.minutes(2)),
    arguments: FaultSeeds.all)
  func retryAfter(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 1000 &+ 23)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let (status, delay) = (Bool.random(using: &random) ? 429 : 503, 3)
    let length: Int64 = 2 << 20
    let names = (0..<4).map { "f\($0).bin" }
    let mount = try sandbox.mount(
      urls: names.map { origin.url($0, length: length, seed: seed &+ 1) },
      options: ["--read-timeout", "20"])
    for name in names.prefix(3) { try output(of: ["stat", mount.path(name)]) }
    try origin.clearLog()
    try origin.control(
      "/data/f0.bin", ["status": "\(status)", "retry-after": "\(delay)", "fault-count": "1"])
    let first = try sandbox.start(["sha256sum", mount.path("f0.bin")])
    #expect(try Deadline(after: .seconds(5)).wait { try !origin.requests().isEmpty })
    // A known file, and one without any earlier request.
    let others = try [1, 3].map { try sandbox.start(["sha256sum", mount.path(names[$0])]) }
    var reasons: [String] = []
    _ = try Deadline(after: .seconds(2)).wait(every: .milliseconds(100)) {
      reasons += try mount.status(of: names[1]).waitingReads.map(\.reason)
      return reasons.contains { $0.contains("asked for no request") }
    }
    #expect(reasons.contains { $0.contains("asked for no request") }, "\(reasons)")
    for reader in [first] + others {
      #expect(reader.wait(within: .seconds(20)) == .exited(0), "\(reader.standardError)")
      #expect(
        reader.standardOutput.prefix(64) == Digest.ofContent(seed: seed &+ 1, byteCount: length))
    }
    try expectSilence(origin.requests(), status: status, delay: Double(delay))
  }

  @Test(
    "23 a demand read that may not ask ends by its own deadline", .timeLimit(.minutes(2)),
    arguments: FaultSeeds.all)
  func longRetryAfter(seed: UInt64) throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let names = ["known.bin", "other.bin", "new.bin"]
    let mount = try sandbox.mount(
      urls: names.map { origin.url($0, length: 2 << 20, seed: seed) },
      options: ["--read-timeout", "4"])
    for name in names.prefix(2) { try output(of: ["stat", mount.path(name)]) }
    // Far more than httpfs obeys.
    try origin.control("*", ["status": "503", "retry-after": "99999999999999999999"])
    let start = ContinuousClock.now
    for (index, name) in names.enumerated() {
      let result = try run(
        ["dd", "if=\(mount.path(name))", "of=/dev/null", "bs=64k", "skip=16", "count=1"],
        within: .seconds(15))
      #expect(result.ending == .exited(1), "\(name)")
      #expect(result.duration <= .seconds(4 + 5), "\(name): \(result.duration)")
      if index == 0 { try origin.clearLog() }
    }
    // The gate is closed for 30 s, so no request was sent.
    #expect(.now - start < .seconds(25))
    #expect(try origin.requests().isEmpty)
    #expect(mount.process.isRunning)
  }

  @Test(
    "23 Retry-After of one download holds back the others of its host", .timeLimit(.minutes(2)),
    arguments: FaultSeeds.all)
  func retryAfterOfDownloads(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    let length: Int64 = 300_000
    let urls = (0..<6).map {
      origin.url("f\($0).bin", length: length, seed: seed, query: "latency=100")
    }
    try origin.control(
      "/data/f0.bin", ["status": "429", "retry-after": "2", "fault-count": "1"])
    let result = try work.run(["get", "-j", "2"] + urls)
    #expect(result.ending == .exited(0), "\(result.error)")
    let digest = Digest.ofContent(seed: seed, byteCount: length)
    for name in work.names { #expect(try work.sha256(name) == digest) }
    #expect(work.names.count == 6)
    try expectSilence(origin.requests(), status: 429, delay: 2)
  }

  /// Expects no request for `delay` seconds after the refusal, except those in flight.
  private func expectSilence(
    _ requests: [LoggedRequest], status: Int, delay: Double,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let refusal = try #require(
      requests.first { $0.status == status }, sourceLocation: sourceLocation)
    let early = requests.filter {
      // Requests that were sent before the answer arrived are logged within a moment.
      $0.start > refusal.end + 0.05 && $0.start < refusal.end + delay - 0.05
    }
    #expect(early.isEmpty, "\(early)", sourceLocation: sourceLocation)
    #expect(
      requests.contains { $0.start >= refusal.end + delay - 0.05 },
      sourceLocation: sourceLocation)
    // The refused files are requested soon after, not at the maximum delay.
    let first = requests.map(\.start).filter { $0 > refusal.end + 0.05 }.min() ?? .infinity
    #expect(first < refusal.end + delay + 2, sourceLocation: sourceLocation)
  }

  // MARK: 29

  @Test(
    "29 a redirect from https to http is refused, with the reason", .timeLimit(.minutes(2)),
    arguments: FaultSeeds.all)
  func downgrade(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let authority = try work.sandbox.certificateAuthority()
    let plain = try OriginServer()
    let target = plain.url("plain.bin", length: 1000, seed: seed)
    let nginx = try work.sandbox.nginx(
      root: try work.sandbox.makeDirectory("www"),
      locations: "location /down { return 307 '\(target)'; }",
      features: ServerFeatures(certificate: try authority.certificate()))
    let url = try nginx.secureURL("down.bin")
    let mount = try MountNamespace.mount(
      work.sandbox, urls: [url], launcher: try MountNamespace.launcher(trusting: authority))
    let result = try run(mount.enter + ["cat", mount.path("down.bin")], within: .seconds(15))
    #expect(result.error.contains("Input/output error"), "\(result.error)")
    #expect(
      try mount.status(of: "down.bin").lastError?.contains("from https to http") == true)

    let trust = ["--ca-file", authority.certificatePath]
    let upload = try work.sandbox.write("secret", to: "up")
    for verb in [["get"], ["put", upload]] {
      let command = try work.run(verb + trust + [url])
      #expect(command.ending == .exited(23))
      #expect(command.error.contains("from https to http"), "\(command.error)")
    }
    #expect(work.names.isEmpty)
    #expect(try plain.requests().isEmpty)
    // Once each: none of these errors is retried.
    #expect(try nginx.takeRequests().count <= 4)
  }

  // MARK: 30

  @Test(
    "30 a redirect out of HTTP is refused", .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
  func otherSchemes(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    let canary = try work.sandbox.write("CANARY-\(seed)", to: "canary.bin")
    let port = try FreePort.next()
    let targets = [
      "file://\(canary)", "file:\(canary)", "ftp://127.0.0.1:\(port)/a", "gopher://127.0.0.1:70/a",
      "dict://127.0.0.1:\(port)/d", "FILE://localhost\(canary)",
    ]
    let urls = targets.enumerated().map { index, target in
      origin.url("s\(index).bin", length: 1, seed: seed, query: "redirect=\(target)")
    }
    let mount = try work.sandbox.mount(urls: urls, options: ["--read-timeout", "10"])
    for (index, target) in targets.enumerated() {
      let result = try run(["cat", mount.path("s\(index).bin")], within: .seconds(15))
      #expect(result.error.contains("Input/output error"), "\(target): \(result.error)")
      #expect(!result.output.contains("CANARY"))
      let error = try #require(try mount.status(of: "s\(index).bin").lastError)
      #expect(error.contains("redirect refused"), "\(target): \(error)")
      let upload = try work.sandbox.write("x", to: "up")
      for verb in [["get"], ["put", upload]] {
        let command = try work.run(verb + [urls[index] + "&redirect-status=308"])
        #expect(command.ending == .exited(23), "\(target)")
        #expect(command.error.contains("redirect refused"), "\(target): \(command.error)")
      }
    }
    #expect(work.names.isEmpty)
    // One attempt each, by the mount, get and put.
    #expect(try origin.requests().count <= 3 * targets.count + targets.count)
  }

  // MARK: 31

  @Test(
    "31 a redirect to another origin loses credentials, cookies and the user's own fields",
    .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
  func strippedFields(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let (first, second) = (try OriginServer(), try OriginServer())
    let length: Int64 = 2 << 20
    let canary = "CANARY\(seed)"
    // Use another host: cookies belong to hosts, whatever the port.
    let target = second.url("t.bin", length: length, seed: seed)
      .replacing("127.0.0.1", with: "localhost")
    let escaped = target.replacing("&", with: "%26").replacing("?", with: "%3F")
      .replacing("=", with: "%3D")
    let query = "set-cookie=session=\(canary)C&redirect-status=307&redirect=\(escaped)"
    let url = first.url("a.bin", length: 1, seed: seed, query: query)
      .replacing("http://", with: "http://user:\(canary)P@")
    let mount = try work.sandbox.mount(urls: [
      url, "  header=X-Token: \(canary)X", "  header=Authorization: Bearer \(canary)B",
    ])
    #expect(try mount.sha256("a.bin") == Digest.ofContent(seed: seed, byteCount: length))
    let fields = ["-H", "X-Token: \(canary)X", "-H", "Cookie: own=\(canary)O"]
    let get = try work.run(["get"] + fields + [url])
    #expect(get.ending == .exited(0), "\(get.error)")
    let put = try work.run(
      ["put"] + fields + [try work.sandbox.write("body", to: "up"), url])
    #expect(put.ending == .exited(0), "\(put.error)")

    let atFirst = try first.requests()
    #expect(atFirst.count >= 3)
    for request in atFirst {
      #expect(request.fields["x-token"] == canary + "X")
      #expect(request.fields["authorization"] != nil)
    }
    let atSecond = try second.requests()
    #expect(Set(atSecond.map(\.method)) == ["GET", "PUT"])
    for request in atSecond {
      #expect(request.fields["x-token"] == nil)
      #expect(request.fields["authorization"] == nil)
      #expect(request.fields["cookie"] == nil)
      #expect(!request.fields.values.contains { $0.contains(canary) }, "\(request.fields)")
    }
  }

  // MARK: 35

  @Test(
    "35 a refused stream and a GOAWAY are asked for again on a new connection, within bounds",
    .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
  func refusedStreams(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 1000 &+ 35)
    let sandbox = try Sandbox()
    let authority = try sandbox.certificateAuthority()
    for fault in ["refuse", "goaway"] {
      let work = try TransferWorkspace()
      let count = Int.random(in: 1...4, using: &random)
      let server = try FaultyHTTP2Server(
        certificate: try authority.certificate(), fault: fault, count: count)
      let result = try work.run(
        [
          "get", "--http2", "-x", "1", "--ca-file", authority.certificatePath,
          "https://localhost:\(server.port)/a.bin",
        ], within: .seconds(30))
      #expect(result.ending == .exited(0), "\(fault): \(result.error)")
      #expect(try work.sha256("a.bin") == server.digest, "\(fault)")
      let requests = server.requestCount
      #expect(requests > count && requests <= count + 3, "\(fault): \(requests) requests")

      // A server that never serves: the transfer ends after a bounded number of attempts.
      let hopeless = try FaultyHTTP2Server(
        certificate: try authority.certificate(), fault: fault, count: 1_000_000)
      let failure = try work.run(
        [
          "get", "--http2", "-x", "1", "--retries", "2", "-o", "never.bin", "--ca-file",
          authority.certificatePath, "https://localhost:\(hopeless.port)/a.bin",
        ], within: .seconds(30))
      #expect(failure.ending.isTransferFailure, "\(fault)")
      #expect(!failure.error.isEmpty)
      // libcurl itself retries up to five times.
      let tries = hopeless.requestCount
      #expect((3...18).contains(tries), "\(fault): \(tries) requests")
      #expect(!work.names.contains("never.bin"))
    }
  }

  // MARK: 44

  @Test(
    "44 a certificate that is expired, self-signed or another host's is refused, without a fallback",
    .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
  func badCertificates(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let authority = try work.sandbox.certificateAuthority()
    let certificates = [
      ("expired", try authority.expiredCertificate()),
      ("self-signed", try authority.selfSignedCertificate()),
      ("localhost", try authority.otherHostCertificate()),
    ]
    let root = try work.sandbox.makeDirectory("www")
    try TestContent.write(to: "\(root)/a.bin", seed: seed, byteCount: 10_000)
    let launcher = try MountNamespace.launcher(trusting: authority)
    // A valid certificate first, to show that the test's set-up is not the reason for the refusals.
    let good = try work.sandbox.nginx(
      root: root, features: ServerFeatures(certificate: try authority.certificate()))
    let trusted = try MountNamespace.mount(
      work.sandbox, urls: [try good.secureURL("a.bin")], cache: "good", launcher: launcher)
    #expect(
      try trusted.sha256("a.bin") == Digest.ofContent(seed: seed, byteCount: 10_000))

    for (word, certificate) in certificates {
      let nginx = try work.sandbox.nginx(
        root: root, features: ServerFeatures(certificate: certificate, acceptsUploads: true))
      let url = try nginx.secureURL("a.bin")
      let mount = try MountNamespace.mount(
        work.sandbox, urls: [url], options: ["--read-timeout", "10"], cache: "cache-\(word)",
        launcher: launcher)
      let result = try run(mount.enter + ["cat", mount.path("a.bin")], within: .seconds(20))
      #expect(result.error.contains("Input/output error"), "\(word): \(result.error)")
      #expect(result.duration < .seconds(3), "\(word): \(result.duration)")
      let error = try #require(try mount.status(of: "a.bin").lastError)
      #expect(error.contains("TLS failure") && error.contains(word), "\(error)")
      let trust = ["--ca-file", authority.certificatePath]
      let get = try work.run(["get"] + trust + [url])
      #expect(get.ending == .exited(60))
      #expect(get.error.contains("TLS failure"), "\(get.error)")
      let put = try work.run(
        ["put"] + trust
          + [try work.sandbox.write("x", to: "up"), try nginx.secureURL("upload/x")])
      #expect(put.ending == .exited(60))
      #expect(put.error.contains("TLS failure"), "\(put.error)")
      // Neither over TLS nor without it.
      #expect(try nginx.takeRequests().isEmpty, "\(word)")
      #expect(try mount.unmount() == .exited(0))
    }
    #expect(work.names.isEmpty)
  }
}
