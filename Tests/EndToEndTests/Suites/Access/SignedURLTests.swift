import Foundation
import Glibc
import Testing

/// URLs that expire: from redirects, from a user's command, or from the list.
extension RealMounts {
  @Suite struct SignedURLs {
    private static let byteCount: Int64 = 256 << 20
    private static let digest = Digest.ofContent(seed: 91, byteCount: byteCount)
    private static let connections = 3

    /// Expects about one link per lifetime, and few requests with an expired link.
    private func expectFewRenewals(
      _ origin: OriginServer, _ duration: Duration, atLeast least: Int,
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let requests = try origin.requests()
      let links = requests.count { $0.path.hasPrefix("/signed/") }
      let refusals = requests.count { $0.status == 403 }
      print("\(duration): \(requests.count) requests, \(links) links, \(refusals) refused")
      // Each link is valid for two to three seconds, because it expires at a whole second.
      #expect(links >= least, sourceLocation: sourceLocation)
      #expect(links <= Int(duration.seconds / 2) + 4, sourceLocation: sourceLocation)
      #expect(refusals <= links + Self.connections, sourceLocation: sourceLocation)
    }

    @Test(.timeLimit(.minutes(4)), arguments: [false, true])
    func `a mount and a download read 256 MiB by links that live 3 seconds`(
      isByCommand: Bool
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let signer = try SigningCommand(work.sandbox, lifetime: 3)
      let url =
        isByCommand
        ? origin.url(
          "a.bin", length: Self.byteCount, seed: 91, query: "rate=10m&require-signature=yes")
        : origin.signedURL("a.bin", length: Self.byteCount, seed: 91, query: "rate=10m")
      var options = ["--connections", "\(Self.connections)"]
      if isByCommand { options += ["--url-command", signer.command] }
      let log = work.sandbox.path("log")
      let mount = try work.sandbox.mount(
        urls: [url], options: options + ["--log-level", "trace", "--log-file", log])
      var read = ""
      let reading = try elapsed { read = try mount.sha256("a.bin") }
      #expect(read == Self.digest)
      try expectFewRenewals(origin, reading, atLeast: 3)
      if isByCommand { #expect(Set(signer.runs) == ["a.bin"]) }

      let attributes = try run(["getfattr", "-d", mount.path("a.bin")])
      let status = try output(of: ["cat", mount.path(".status"), mount.path(".status.json")])
      #expect(!(status + attributes.output).contains("signature"))
      #expect(try mount.unmount() == .exited(0))

      try origin.clearLog()
      let download = try work.run(
        ["get", "-o", "got", "--session", "todo", url] + options, within: .seconds(90))
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("got") == Self.digest)
      // A download's requests are long: a request in flight continues when its link expires.
      try expectFewRenewals(origin, download.duration, atLeast: 2)
      #expect(!(download.output + download.error).contains("signature"))
      unlink(work.path("got"))
      let traces = try run([
        "grep", "-r", "-l", "-e", "signature=0x", "-e", "expires=", log, mount.cacheDirectory,
        work.directory,
      ])
      #expect(traces.ending == .exited(1), "\(traces.output)")
    }

    @Test func `a command that fails says so in .status, and what it says next is heard`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let failures: [(script: String, message: String)] = [
        ("echo https://h/?key=canary-canary >&2; exit 3", "failed (exit code 3)"),
        ("true", "printed nothing"),
        ("echo ftp://canary-canary/", "printed no http or https URL"),
        ("echo http://h/canary-canary; echo http://h/", "more than one line"),
        ("echo $$ > \(quoted(sandbox.path("pid"))); sleep 300; true", "the URL command "),
        ("kill -9 $$", "signal 9"),
      ]
      let names = failures.indices.map { "f\($0).bin" }
      for (name, failure) in zip(names, failures) {
        try sandbox.write(failure.script + "\n", to: "\(name).sh")
      }
      let log = sandbox.path("log")
      let mount = try sandbox.mount(
        urls: names.map {
          origin.url($0, length: 100_000, seed: 92, query: "require-signature=yes&listed-canary=1")
        },
        options: [
          "--read-timeout", "3", "--log-file", log, "--url-command",
          ". \(quoted(sandbox.directory))/\"$HTTPFS_NAME\".sh",
        ])
      for (name, failure) in zip(names, failures) {
        let result = try run(["cat", mount.path(name)], within: .seconds(20))
        #expect(result.error.contains("Input/output error"), "\(name): \(result.error)")
        let said = try mount.status(of: name).lastError ?? ""
        #expect(said.contains(failure.message), "\(name): \(said)")
      }
      // The hung command is gone, with all its children.
      let pid = try String(contentsOfFile: sandbox.path("pid"), encoding: .utf8)
      let group = try #require(pid_t(pid.trimmingCharacters(in: .whitespacesAndNewlines)))
      #expect(Deadline(after: .seconds(5)).wait { kill(-group, 0) != 0 })
      #expect(try origin.requests().isEmpty)

      let good = try SigningCommand(sandbox, lifetime: 60)
      for name in names { try sandbox.write(good.command + "\n", to: "\(name).sh") }
      let digest = Digest.ofContent(seed: 92, byteCount: 100_000)
      for name in names {
        // A failure is cached for a second.
        let isRead = try Deadline(after: .seconds(20)).wait(every: .milliseconds(200)) {
          try run(["sha256sum", mount.path(name)]).output.hasPrefix(digest)
        }
        #expect(isRead, "\(name)")
      }
      let status = try output(of: ["cat", mount.path(".status"), mount.path(".status.json")])
      #expect(!status.contains("canary"))
      let line = ProcessTable.commandLine(of: mount.process.processID)
      #expect(!line.contains { $0.contains("canary") })
      #expect(try mount.unmount() == .exited(0))
      let text = try String(contentsOfFile: log, encoding: .utf8)
      #expect(text.contains("the URL command says"))
      #expect(!text.contains("canary"))
    }

    @Test func `get tells why the command fails, and gives up after its retries`() throws {
      let work = try TransferWorkspace()
      let result = try work.get(
        "--retries", "1", "--url-command", "echo for $HTTPFS_NAME >&2; exit 3", "-o", "got",
        "http://127.0.0.1:1/a?canary=1")
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("the URL command failed (exit code 3)"), "\(result.error)")
      #expect(result.error.contains("the URL command says: for got"), "\(result.error)")
      #expect(!result.error.contains("canary"))
      #expect(work.names.isEmpty)
      let empty = try work.get("--url-command", " ", "-o", "got", "http://127.0.0.1:1/a")
      #expect(empty.ending == .exited(64))
    }

    @Test func `the end of a mount ends the command that runs`() throws {
      let sandbox = try Sandbox()
      let mount = try sandbox.mount(
        urls: ["http://127.0.0.1:1/a"],
        options: ["--url-command", "echo $$ > \(quoted(sandbox.path("pid"))); sleep 300; true"])
      let reader = try sandbox.start(["cat", mount.path("a")])
      var group: pid_t?
      let began = Deadline(after: .seconds(10)).wait {
        let text = try? String(contentsOfFile: sandbox.path("pid"), encoding: .utf8)
        group = text.flatMap { pid_t($0.trimmingCharacters(in: .whitespacesAndNewlines)) }
        return group != nil
      }
      #expect(began)
      mount.process.signal(SIGTERM)
      #expect(mount.process.wait(within: .seconds(15)) == .exited(0))
      #expect(reader.wait(within: .seconds(30)) != nil)
      let number = try #require(group)
      #expect(Deadline(after: .seconds(5)).wait { kill(-number, 0) != 0 })
    }

    @Test func `a list with fresh signatures goes on with open handles and cached bytes`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let length: Int64 = 64 << 20
      func link(_ lifetime: Int) throws -> String {
        try origin.link("a.bin", length: length, seed: 93, lifetime: lifetime)
      }
      func expected(_ offset: Int64) -> HeldFile.Reading {
        .bytes(
          count: 65_536, sha256: Digest.ofContent(seed: 93, offset: offset, byteCount: 65_536))
      }
      let list = try sandbox.write(try link(6) + "\n", to: "list")
      let mount = try sandbox.mount(source: list)
      let file = try HeldFile(mount.path("a.bin"))
      #expect(try file.read(at: 0, 65_536) == expected(0))
      let inode = try output(of: ["stat", "-c", "%i", mount.path("a.bin")])
      let refused = try Deadline(after: .seconds(20)).wait(every: .milliseconds(1100)) {
        try file.read(at: Int64.random(in: 20...40) << 20, 65_536) == .failed("EACCES")
      }
      #expect(refused)
      let said = try mount.status(of: "a.bin").lastError ?? ""
      #expect(said.contains("the signature of the listed URL has expired"), "\(said)")

      try sandbox.write(try link(3600) + "\n", to: "list")
      mount.process.signal(SIGHUP)
      let isRead = try Deadline(after: .seconds(20)).wait(every: .milliseconds(200)) {
        try file.read(at: 48 << 20, 65_536) == expected(48 << 20)
      }
      #expect(isRead)
      #expect(try output(of: ["stat", "-c", "%i", mount.path("a.bin")]) == inode)
      file.close()
      let cached = try mount.status(of: "a.bin").cachedByteCount
      #expect(try mount.unmount() == .exited(0))

      try origin.clearLog()
      let next = try sandbox.mount(source: try link(3600))
      try output(of: ["stat", next.path("a.bin")])
      #expect(try next.status(of: "a.bin").cachedByteCount >= cached)
      let again = try HeldFile(next.path("a.bin"))
      for offset in [0, 48 << 20] as [Int64] {
        #expect(try again.read(at: offset, 65_536) == expected(offset))
      }
      again.close()
      #expect(try next.status(of: "a.bin").fetchedByteCount <= 1 << 20)
      #expect(try next.unmount() == .exited(0))
    }

    @Test func `a download goes on under a fresh signature`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let length: Int64 = 64 << 20
      try origin.control("/data/*", ["rate": "4m"])
      let first = try work.start(
        "get", "-x", "2", "-o", "got",
        try origin.link("a.bin", length: length, seed: 94, lifetime: 600))
      let part = work.path("got.httpfs-part")
      #expect(work.waitForPart(of: "got"))
      #expect(
        Deadline(after: .seconds(30)).wait { (FileStatus.byteCount(of: part) ?? 0) > 2 << 20 })
      first.signal(SIGINT)
      #expect(first.wait(within: .seconds(20)) == .exited(130))
      try origin.clearControl()
      try origin.clearLog()
      let second = try work.get(
        "-o", "got", try origin.link("a.bin", length: length, seed: 94, lifetime: 500))
      #expect(second.succeeded, "\(second.error)")
      #expect(try work.sha256("got") == Digest.ofContent(seed: 94, byteCount: length))
      let sent = try origin.requests().reduce(0) { $0 + $1.bodyByteCount }
      #expect(sent < length, "\(sent)")
    }

    @Test func `nginx' secure links are renewed by a command`() throws {
      let work = try TransferWorkspace()
      let length: Int64 = 96 << 20
      let root = try work.sandbox.makeDirectory("root")
      try TestContent.write(to: "\(root)/a.bin", seed: 95, byteCount: length)
      let nginx = try work.sandbox.nginx(
        root: root,
        locations: """
              location /s/ {
                secure_link $arg_md5,$arg_expires;
                secure_link_md5 "$secure_link_expires$uri key-canary";
                if ($secure_link = "") { return 403; }
                if ($secure_link = "0") { return 410; }
                alias \(root)/;
                limit_rate 10m;
              }
          """)
      let script = try work.sandbox.write(
        """
        path=/s/$HTTPFS_NAME
        expires=$(($(date +%s) + 3))
        hash=$(printf %s "$expires$path key-canary" | openssl md5 -binary | openssl base64 \\
          | tr +/ -_ | tr -d =)
        echo "http://127.0.0.1:\(nginx.port)$path?md5=$hash&expires=$expires"

        """, to: "sign.sh")
      let options = ["--connections", "2", "--url-command", "sh \(quoted(script))"]
      let mount = try work.sandbox.mount(urls: [nginx.url("a.bin")], options: options)
      let digest = Digest.ofContent(seed: 95, byteCount: length)
      #expect(try mount.sha256("a.bin") == digest)
      let requests = try nginx.takeRequests()
      #expect(requests.allSatisfy { $0.path == "/s/a.bin" })
      let refusals = requests.count { $0.status >= 400 }
      print("\(requests.count) requests, \(refusals) refused")
      #expect(refusals <= 8)
      #expect(try mount.unmount() == .exited(0))
      let download = try work.run(["get", "-o", "a.bin", nginx.url("a.bin")] + options)
      #expect(download.succeeded, "\(download.error)")
      #expect(try work.sha256("a.bin") == digest)
    }
  }
}
