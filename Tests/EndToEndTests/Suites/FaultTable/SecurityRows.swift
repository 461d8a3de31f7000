import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 78 and 79 of the fault table: other users, and secrets.
extension RealMounts {
  @Suite struct SecurityRows {
    // MARK: 78

    @Test(
      "78 another user: EACCES unless --allow-other",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func anotherUser(seed: UInt64) throws {
      try #require(Host.isRoot, "needs root, to become another user")
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let url = origin.url("u.bin", length: 100_000, seed: seed)
      let digest = Digest.ofContent(seed: seed, byteCount: 100_000)
      let closed = try sandbox.mount(urls: [url])
      for command in [
        ["cat", closed.path("u.bin")], ["ls", closed.mountpoint], ["cat", closed.path(".status")],
        ["stat", closed.mountpoint], [try Products.httpfs, "status", closed.mountpoint],
      ] {
        let result = try run(OrdinaryUserMount.asUser + command, within: .seconds(10))
        #expect(!result.succeeded, "\(command)")
        #expect(result.error.contains("Permission denied"), "\(result.error)")
      }
      #expect(try closed.sha256("u.bin") == digest)
      #expect(try closed.unmount() == .exited(0))

      let open = try sandbox.mount(urls: [url], options: ["--allow-other"], cache: "cache2")
      let asUser = OrdinaryUserMount.asUser
      #expect(
        try output(of: asUser + ["sha256sum", open.path("u.bin")]).prefix(64) == digest)
      let write = try run(asUser + ["sh", "-c", "echo x > \(quoted(open.path("u.bin")))"])
      #expect(!write.succeeded)
      // The cache stays private.
      let cache = try run(asUser + ["ls", open.cacheDirectory])
      #expect(cache.error.contains("Permission denied"), "\(cache.output)\(cache.error)")
      #expect(try open.unmount() == .exited(0))
    }

    @Test(
      "78 root may not look into the mount of an ordinary user",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func mountOfUser(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mount = try OrdinaryUserMount.make(
        sandbox, urls: [origin.url("u.bin", length: 100_000, seed: seed)])
      #expect(
        try mount.sha256("u.bin") == Digest.ofContent(seed: seed, byteCount: 100_000))
      let asRoot = ["nsenter", "--target", String(mount.process.processID), "--mount", "--"]
      let result = try run(asRoot + ["cat", mount.path("u.bin")], within: .seconds(10))
      #expect(result.error.contains("Permission denied"), "\(result.error)")
      #expect(try mount.unmount() == .exited(0))
    }

    // MARK: 79

    /// Secrets of every kind that a source can have, each with a distinct text.
    private struct Canaries {
      let user: String
      let password: String
      let query: String
      let header: String
      let cookie: String
      let netrc: String

      init(seed: UInt64) {
        var random = SeededGenerator(seed: seed &* 79)
        func canary(_ kind: String) -> String {
          kind + String(UInt64.random(in: 1 << 40 ..< .max, using: &random), radix: 36)
        }
        user = canary("user")
        password = canary("password")
        query = canary("query")
        header = canary("header")
        cookie = canary("cookie")
        netrc = canary("netrc")
      }

      /// The texts that must not appear, including the coded form of the credentials.
      var all: [String] {
        [
          user, password, query, header, cookie, netrc,
          Data("\(user):\(password)".utf8).base64EncodedString(),
        ]
      }

      func url(_ origin: OriginServer, _ name: String, length: Int64, more: String = "") -> String {
        origin.url(
          name, length: length, seed: 79,
          query: "token=\(query)&set-cookie=session=\(cookie)\(more)"
        ).replacingOccurrences(of: "://", with: "://\(user):\(password)@")
      }

      func expectNone(
        in text: String, _ place: String, sourceLocation: SourceLocation = #_sourceLocation
      ) {
        for canary in all {
          #expect(!text.contains(canary), "\(canary) in \(place)", sourceLocation: sourceLocation)
        }
      }

      /// Expects that no file below `directory`, and no file name, contains a secret.
      func expectNone(
        below directory: String, sourceLocation: SourceLocation = #_sourceLocation
      ) throws {
        let patterns = all.flatMap { ["-e", $0] }
        let files = try run(["grep", "-rlaF"] + patterns + [directory])
        #expect(files.ending == .exited(1), "\(files.output)", sourceLocation: sourceLocation)
        expectNone(
          in: try output(of: ["find", directory]), "names", sourceLocation: sourceLocation)
      }
    }

    @Test(
      "79 no secret in status, log, command lines or the cache, whatever happens",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func secretsOfMount(seed: UInt64) throws {
      let canaries = Canaries(seed: seed)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let home = try sandbox.makeDirectory("home")
      try sandbox.write(
        "machine 127.0.0.1 login netrc password \(canaries.netrc)\n", to: "home/.netrc")
      let length: Int64 = 300_000
      let faults = [
        "good", "status=404", "status=503", "status=401", "fault=truncate&fault-at=1000",
        "fault=redirect-loop", "fault=html-200", "fault=reset&fault-at=100", "fault=header-bomb",
        "redirect=ftp://h/\(canaries.query)", "fault=wrong-content-range",
        "redirect=http://\(canaries.user):\(canaries.password)@127.0.0.1:1/x?\(canaries.query)",
      ]
      let list = faults.enumerated().map { index, fault in
        canaries.url(origin, "s\(index).bin", length: length, more: "&\(fault)")
          + "\n header=X-Key: \(canaries.header)\n header=Cookie: \(canaries.cookie)\n"
      }
      let path = try sandbox.write(list.joined(), to: "urls.txt")
      let log = sandbox.path("mount.log")
      let mount = sandbox.adopt(
        try Mount(
          source: path, mountpoint: try sandbox.makeDirectory("mnt"),
          cacheDirectory: sandbox.path("cache"),
          options: ["--read-timeout", "2", "--log-level", "trace", "--log-file", log],
          launcher: ["env", "HOME=\(home)"]))
      #expect(
        try mount.sha256("s0.bin") == Digest.ofContent(seed: 79, byteCount: length))
      // The others fail in different ways; the readers' errors are checked, too.
      let readers = try faults.indices.dropFirst().map {
        try sandbox.start(["cat", mount.path("s\($0).bin")])
      }
      func expectNoSecretShown() throws {
        for name in [".status", ".status.json"] {
          canaries.expectNone(in: try output(of: ["cat", mount.path(name)]), name)
        }
        for process in [mount.process.processID] + ProcessTable.watchdogs(of: mount.mountpoint) {
          let words = ProcessTable.commandLine(of: process)
          #expect(words.last == mount.mountpoint)
          canaries.expectNone(in: words.joined(separator: " "), "\(words)")
        }
      }
      try expectNoSecretShown()
      for reader in readers { _ = reader.wait(within: .seconds(8)) }
      try expectNoSecretShown()
      let httpfs = try Products.httpfs
      for command in [
        ["list", path], ["status", mount.mountpoint], ["status", "--json", mount.mountpoint],
      ] {
        canaries.expectNone(in: try output(of: [httpfs] + command), "\(command)")
      }
      mount.process.signal(SIGHUP)
      pause(for: .milliseconds(300))
      #expect(try mount.unmount() == .exited(0))
      canaries.expectNone(in: mount.process.standardOutput + mount.process.standardError, "output")
      let text = try String(contentsOfFile: log, encoding: .utf8)
      #expect(!text.isEmpty)
      canaries.expectNone(in: text, "log")
      try canaries.expectNone(below: mount.cacheDirectory)

      // The test would prove nothing if the secrets had not been sent; the one of netrc must not be
      // sent.
      let request = try #require(try origin.requests().last { $0.path.hasSuffix("/s0.bin") })
      #expect(request.fields["x-key"] == canaries.header)
      #expect(request.fields["cookie"]?.contains(canaries.cookie) == true)
      #expect(request.fields["authorization"] == "Basic \(canaries.all[6])")
      #expect(
        try !origin.requests().contains { "\($0.fields)".contains(canaries.netrc) })
    }

    @Test(
      "79 no secret in the command lines of a daemon, get and put that were given a URL",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func secretsOfCommandLines(seed: UInt64) throws {
      let canaries = Canaries(seed: seed)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let mountpoint = try sandbox.makeDirectory("mnt")
      let url = canaries.url(origin, "d.bin", length: 8 << 20)
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      try output(
        of: [
          try Products.httpfs, "mount", "--daemon", "--cache-dir", sandbox.path("cache"), url,
          mountpoint,
        ])
      let daemons = ProcessTable.processes {
        $0.first?.hasSuffix("httpfs") == true && $0.last == mountpoint
      }
      #expect(daemons.count == 1)
      for process in daemons + ProcessTable.watchdogs(of: mountpoint) {
        let words = ProcessTable.commandLine(of: process)
        canaries.expectNone(in: words.joined(separator: " "), "\(words)")
      }
      #expect(
        try output(of: ["sha256sum", "\(mountpoint)/d.bin"]).prefix(64)
          == Digest.ofContent(seed: 79, byteCount: 8 << 20))
      try output(of: [try Products.httpfs, "unmount", mountpoint])

      try origin.control("*", ["rate": "1m", "upload-rate": "1m"])
      let upload = sandbox.path("upload.bin")
      try TestContent.write(to: upload, seed: 79, byteCount: 16 << 20)
      let headers = [
        "-H", "X-Key: \(canaries.header)", "-HX-More:\(canaries.header)",
        "--header=Cookie: \(canaries.cookie)", "--header", "X-Last: \(canaries.header)",
      ]
      for arguments in [
        ["get", "--quiet"] + headers + ["-o", sandbox.path("g"), url],
        ["put", "--quiet"] + headers + [upload, url],
        ["put", "--quiet"] + headers
          + ["--form", "key=\(canaries.header)", "--form", "file=@\(upload)", url],
      ] {
        let command = try sandbox.start([try Products.httpfs] + arguments)
        let began = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
          try !ProcessTable.commandLine(of: command.processID).isEmpty
            && output(of: [
              "curl", "-sS", "--noproxy", "*", "http://127.0.0.1:\(origin.port)/stats",
            ]).contains("\"active_requests\":0") == false
        }
        #expect(began && command.isRunning, "\(command.standardError)")
        let words = ProcessTable.commandLine(of: command.processID)
        #expect(words.count == arguments.count + 1, "\(words)")
        canaries.expectNone(in: words.joined(separator: " "), "\(words)")
        command.kill()
      }
      let requests = try origin.requests()
      #expect(requests.contains { $0.method == "GET" && $0.fields["x-more"] == canaries.header })
      #expect(requests.contains { $0.method == "PUT" && $0.fields["x-last"] == canaries.header })
    }

    @Test(
      "79 no secret in a core dump of a mount or a download",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func secretsOfCoreDumps(seed: UInt64) throws {
      let canaries = Canaries(seed: seed)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // An unprotected process shows that dumps are written here, and can be searched.
      let control = try sandbox.makeDirectory("control")
      _ = try run(
        coreLauncher(control) + ["env", "CANARY=\(canaries.query)", "sh", "-c", "kill -SEGV $$"])
      let pattern = try String(contentsOfFile: "/proc/sys/kernel/core_pattern", encoding: .utf8)
      let found = try run(["grep", "-rlaF", canaries.query, control])
      try #require(
        found.succeeded,
        "needs core dumps as files in the working directory; kernel.core_pattern is \(pattern)")

      let header = "\n header=X-Key: \(canaries.header)\n header=Cookie: a=\(canaries.cookie)\n"
      let list = try sandbox.write(
        canaries.url(origin, "c.bin", length: 4 << 20) + header, to: "urls.txt")
      let fields = try sandbox.write("X-File: \(canaries.header)\n", to: "fields.txt")
      let logins = try sandbox.write(
        "machine 127.0.0.1 login a password \(canaries.netrc)\n", to: "netrc")
      try output(of: ["chmod", "600", fields, logins])
      let directory = try sandbox.makeDirectory("dump-of-mount")
      let mount = sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory("mnt"),
          cacheDirectory: sandbox.path("cache"),
          options: ["--header-file", fields, "--netrc-file", logins],
          launcher: coreLauncher(directory)))
      #expect(
        try mount.sha256("c.bin") == Digest.ofContent(seed: 79, byteCount: 4 << 20))
      // A program that receives the dumps may ignore the limit: it gets registers but no memory.
      #expect(
        try String(
          contentsOfFile: "/proc/\(mount.process.processID)/coredump_filter", encoding: .utf8)
          == "00000000\n")
      #expect(try origin.requests().contains { $0.fields["x-file"] == canaries.header })
      mount.process.signal(SIGSEGV)
      #expect(mount.process.wait(within: .seconds(20)) != nil)
      try canaries.expectNone(below: directory)

      try origin.control("*", ["rate": "500k"])
      let downloads = try sandbox.makeDirectory("dump-of-get")
      let get = try sandbox.start(
        coreLauncher(downloads) + [
          try Products.httpfs, "get", "--quiet", "-H", "X-Key: \(canaries.header)",
          canaries.url(origin, "g.bin", length: 16 << 20),
        ])
      let part = "\(downloads)/g.bin.httpfs-part"
      #expect(Deadline(after: .seconds(10)).wait { (FileStatus.byteCount(of: part) ?? 0) > 0 })
      get.signal(SIGSEGV)
      #expect(get.wait(within: .seconds(20)) != nil)
      try canaries.expectNone(below: downloads)
      #expect(
        try origin.requests().contains { $0.fields["x-key"] == canaries.header },
        "the header was not sent")
    }

    /// The words that start a command in `directory`, where it may dump its whole memory.
    private func coreLauncher(_ directory: String) -> [String] {
      [
        "bash", "-c", "ulimit -c unlimited && cd \"$0\" && exec \"$@\"", directory,
      ]
    }
  }
}
