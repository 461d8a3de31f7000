import Foundation
import Glibc
import Testing

/// Downloads as people type them who know curl, wget and aria2, and exit codes for their scripts.
extension RealMounts {
  @Suite struct GetHabits {
    struct Failure: CustomTestStringConvertible, Sendable {
      let code: CInt
      let error: String
      let query: String
      var options: [String] = []

      var testDescription: String { "\(code) \(error) \(query)" }
    }

    static let failures = [
      Failure(code: 3, error: "status", query: "status=404"),
      Failure(code: 3, error: "status", query: "status=410"),
      Failure(code: 24, error: "status", query: "status=403"),
      Failure(code: 24, error: "status", query: "status=401"),
      Failure(code: 22, error: "status", query: "status=500"),
      Failure(code: 22, error: "status", query: "status=418"),
      Failure(code: 23, error: "redirect", query: "fault=redirect-loop"),
      Failure(
        code: 32, error: "checksumMismatch", query: "",
        options: ["--checksum", "sha-256=" + String(repeating: "0", count: 64)]),
      Failure(code: 6, error: "connectionLost", query: "fault=reset&fault-at=0"),
      Failure(code: 2, error: "timedOut", query: "fault=stall", options: ["--timeout", "1s"]),
      Failure(
        code: 9, error: "destination", query: "", options: ["-o", "/proc/self/nowhere/a.bin"]),
    ]

    @Test(arguments: failures)
    func `each kind of failure has its exit code, and its name and status in JSON`(
      _ failure: Failure
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 300_000, seed: 5, query: failure.query)
      let result = try work.run(
        ["get", "--json", "--retries", "0"] + failure.options + [url])
      #expect(result.ending == .exited(failure.code), "\(result.output)\(result.error)")
      let line = try #require(try result.jsonLines().last { $0["event"] as? String == "progress" })
      #expect(line["state"] as? String == "failed")
      #expect(line["error"] as? String == failure.error)
      let status = failure.query.split(separator: "=").last.flatMap { Int($0) }
      #expect(line["status"] as? Int == (failure.error == "status" ? status : nil))
    }

    @Test
    func `failures for several reasons end with 1, those of TLS and of a name with their own`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let both = try work.get(
        "--retries", "0", origin.url("a.bin", length: 10, seed: 1, query: "status=404"),
        origin.url("b.bin", length: 10, seed: 1, query: "status=403"))
      #expect(both.ending == .exited(1))
      let unresolved = try work.get("--retries", "0", "http://nosuch.invalid/a")
      #expect(unresolved.ending == .exited(19), "\(unresolved.error)")
      let root = try work.sandbox.makeDirectory("root")
      let server = try work.sandbox.nginx(
        root: root,
        features: ServerFeatures(
          certificate: try work.sandbox.certificateAuthority().certificate()))
      let untrusted = try work.get("--retries", "0", try server.secureURL("a"))
      #expect(untrusted.ending == .exited(60), "\(untrusted.error)")
      #expect(untrusted.error.contains("with --cacert FILE, or use --insecure"))
      // Also to standard output.
      let piped = try work.get(
        "--retries", "0", "-o", "-", origin.url("a.bin", length: 10, seed: 1, query: "status=404"))
      #expect(piped.ending == .exited(3))
    }

    @Test(arguments: [
      ("404", "HTTP 404 Not Found; check the URL"), ("410", "HTTP 410 Gone; check the URL"),
      (
        "403",
        "HTTP 403 Forbidden: access is refused; give credentials with --netrc or -H"
      ), ("500", "HTTP 500 Internal Server Error"),
    ])
    func `a failure is told with what helps, as mount tells it`(
      _ status: String, _ reason: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 1, query: "status=\(status)")
      let file = try work.get("--retries", "0", url)
      #expect(file.errorLines.last == "a.bin: failed: \(reason)")
      let pipe = try work.get("--retries", "0", "-o", "-", url)
      #expect(pipe.errorLines.last?.hasSuffix(": \(reason)") == true, "\(pipe.error)")
      try work.sandbox.write("up", to: "work/up")
      let upload = try work.put("--retries", "0", "up", url)
      #expect(upload.errorLines.last == "up: failed: \(reason)")
    }

    @Test func `a server that stalls again and again is given up, whatever little it sends`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // Each response stalls half way through the rest.
      let url = origin.url("a.bin", length: 1 << 20, seed: 5, query: "fault=stall")
      let result = try work.get("-x", "1", "--timeout", "1s", "--retries", "1", url)
      #expect(result.ending == .exited(2), "\(result.error)")
      // The bytes are not lost.
      try origin.post(["match": "*", "parameters": ["fault": NSNull()]])
      #expect(try work.get(url).succeeded)
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 5, byteCount: 1 << 20))
    }

    @Test func `--max-time ends a command that would go on`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 64 << 20, seed: 5, query: "rate=100k")
      for output in ["a.bin", "-"] {
        let time = try elapsed {
          let result = try work.get("--max-time", "1s", "-o", output, url)
          #expect(result.ending == .exited(2), "\(result.error)")
          #expect(result.error.contains("--max-time"), "\(result.error)")
        }
        #expect(time > .seconds(1) && time < .seconds(10))
      }
    }

    @Test func `a file has the modification time of the server, unless that is not wanted`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 1000, seed: 5)
      func modified(_ name: String) throws -> Int {
        try #require(Int(try output(of: ["stat", "-c", "%Y", work.path(name)]).dropLast()))
      }
      #expect(try work.get(url).succeeded)
      // 2020-01-01 01:00 GMT, the date of version 1.
      #expect(try modified("a.bin") == 1_577_840_400)
      // The same command finds the file unchanged.
      let again = try work.get(url)
      #expect(again.error.contains("unchanged"), "\(again.error)")
      #expect(try work.get("--no-remote-time", "-o", "b.bin", url).succeeded)
      #expect(try modified("b.bin") > 1_700_000_000)
    }

    @Test func `options of curl, wget and aria2 are understood`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 1000, seed: 5)
      let digest = Digest.ofContent(seed: 5, byteCount: 1000)
      #expect(try work.get("-c", "-N", "-L", "-R", "-O", url).succeeded)
      #expect(try work.sha256("a.bin") == digest)
      #expect(try work.get("-s", "-P", "down", url).error.isEmpty)
      #expect(try work.sha256("down/a.bin") == digest)
      #expect(try work.get("-d", "aria", url).succeeded)
      #expect(try work.sha256("aria/a.bin") == digest)
      #expect(try work.get("-O", "named.bin", url).succeeded)
      #expect(try work.sha256("named.bin") == digest)
      try shell("echo mine > \(quoted(work.path("a.bin")))")
      #expect(try work.get("-nc", url).succeeded)
      #expect(try work.text("a.bin") == "mine\n")
      #expect(try work.get(url).ending == .exited(73))
    }

    @Test(arguments: [
      (["-qO-"], nil), (["-LO"], "a.bin"), (["-fsSL", "-o", "zz"], "zz"), (["-fsSLo", "zz"], "zz"),
      (["-qc"], "a.bin"), (["-Ofile"], "file"), (["-nH", "-nd"], "a.bin"), (["-sSfLOJ"], "a.bin"),
      (["-OLs"], "a.bin"), (["-qP", "down"], "down/a.bin"),
      (["-Pdown"], "down/a.bin"), (["-C-", "-qx2"], "a.bin"),
    ])
    func `short options may stand together, with a value at their end`(
      _ options: [String], _ name: String?
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 1000, seed: 5)
      let result = try work.run(["get"] + options + [url])
      #expect(result.succeeded, "\(result.error)")
      guard let name else {
        #expect(!result.output.isEmpty && work.names.isEmpty)
        return
      }
      #expect(try work.sha256(name) == Digest.ofContent(seed: 5, byteCount: 1000))
    }

    @Test(arguments: [
      (["-k", "1M"], "-k is curl's here"), (["-s", "5"], "write -x 5"),
      (["-u", "u:pw"], "use --netrc"), (["--user", "u"], "use --netrc"),
      (["--password", "p"], "use --netrc"), (["--tries=3"], "Use '--retries'"),
      (["-t", "3"], "Use '--retries'"), (["-v"], "--json"), (["-A", "x"], "--user-agent"),
      (["-Ork"], "write -O and the rest apart"),
      (["-P", ""], "'' is none"), (["-d", ""], "'' is none"), (["-U", "u:pw"], "--proxy http://"),
      (["-rl", "x"], "--depth"), (["--usr"], "Unknown option '--usr'"),
    ])
    func `an option of another program that is none here is answered with what to write`(
      _ options: [String], _ text: String
    ) throws {
      let result = try TransferWorkspace().run(["get"] + options + ["http://127.0.0.1:9/a"])
      #expect(result.ending != .exited(0))
      #expect(result.errorLines.first?.contains(text) == true, "\(result.error)")
      #expect(!result.error.contains("Did you mean"), "\(result.error)")
    }

    @Test func `--checksum-file compares each file with its line`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = ["a.bin", "b.bin"].map { origin.url($0, length: 1000, seed: 5) }
      let digest = Digest.ofContent(seed: 5, byteCount: 1000)
      let wrong = String(repeating: "0", count: 64)
      let sums = try work.sandbox.write(
        "# sums\n\(digest)  ./a.bin\nSHA3-256 (b.bin) = \(wrong)\nSHA256 (b.bin) = \(digest)\n",
        to: "SHA256SUMS")
      #expect(try work.run(["get", "--checksum-file", sums] + urls).succeeded)
      for tool in ["md5sum", "sha1sum", "sha224sum", "sha384sum", "sha512sum"] {
        for option in ["", "--tag"] {
          let text = try shell("cd \(quoted(work.directory)) && \(tool) \(option) a.bin b.bin")
          let file = try work.sandbox.write(text, to: "SUMS")
          let result = try work.run(["get", "--overwrite", "--checksum-file", file] + urls)
          #expect(result.succeeded, "\(tool) \(option): \(result.error)")
        }
      }
      let bad = try work.sandbox.write("\(digest) *a.bin\n\(wrong) *b.bin\n", to: "BAD")
      let result = try work.run(["get", "-o", "again/", "--checksum-file", bad] + urls)
      #expect(result.ending == .exited(32), "\(result.error)")
      #expect(access(work.path("again/a.bin"), F_OK) == 0)
      #expect(access(work.path("again/b.bin"), F_OK) != 0)
      let one = try work.sandbox.write("\(digest)  a.bin\n", to: "ONE")
      let missing = try work.run(["get", "-o", "third/", "--checksum-file", one] + urls)
      #expect(missing.ending == .exited(1))
      #expect(missing.error.contains("'b.bin' has no line in"), "\(missing.error)")
    }

    @Test func `--mirror names another server of the same file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 1000, seed: 5)
      let dead = "http://127.0.0.1:9/a.bin"
      let first = try work.get("-o", "a.bin", "--mirror", url, dead)
      #expect(first.succeeded)
      #expect(first.error.contains("a mirror does not answer: \(dead): "), "\(first.error)")
      #expect(!first.error.contains("from \(dead)"), "\(first.error)")
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 5, byteCount: 1000))
      #expect(try work.get("--mirror", url, url, dead).ending == .exited(64))
    }
  }
}
