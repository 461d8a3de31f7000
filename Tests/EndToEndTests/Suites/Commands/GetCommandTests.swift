import Foundation
import Glibc
import Testing

/// `httpfs get` in a pipe: the names of files, the output, and the exit code.
extension RealMounts {
  @Suite struct GetCommand {
    private static let length: Int64 = 3 << 20

    private static func digest(_ seed: UInt64, _ byteCount: Int64 = length) -> String {
      Digest.ofContent(seed: seed, byteCount: byteCount)
    }

    // MARK: Names

    @Test func `a file gets the name that its URL has`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(origin.url("sub/a%20b.bin", length: Self.length, seed: 1))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["a b.bin"])
      #expect(try work.sha256("a b.bin") == Self.digest(1))
      #expect(result.output.isEmpty)
      #expect(result.error.contains("a b.bin: 3 MiB in "), "\(result.error)")
    }

    @Test(arguments: ["x", "new", "new/", "there", "there/", "new/deeper/x"])
    func `-o names a file, or a directory that is there or ends in a slash`(_ path: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      _ = try work.sandbox.makeDirectory("work/there")
      let result = try work.get(
        origin.url("a.bin", length: 1000, seed: 2), "-o", path)
      #expect(result.succeeded, "\(result.error)")
      let isDirectory = path.hasSuffix("/") || path == "there"
      let file = isDirectory ? path + (path.hasSuffix("/") ? "" : "/") + "a.bin" : path
      #expect(try work.sha256(file) == Self.digest(2, 1000))
      #expect(
        FileStatus.files(named: "a.bin", below: work.directory).count == (isDirectory ? 1 : 0))
    }

    @Test func `a URL that a list repeats with the same name is one file, with another name two`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 1000, seed: 2)
      for (line, names) in [("", ["a.bin"]), ("  out=b\n", ["a.bin", "b"])] {
        let list = try work.sandbox.write("\(url)\n\(line)", to: "list")
        let result = try work.get(url, "-i", list)
        #expect(result.succeeded, "\(result.error)")
        #expect(work.names == names)
      }
    }

    @Test func `-o - writes the file and nothing else to a pipe`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let command = try work.commandLine([
        "get", "-o", "-", origin.url("a.bin", length: 20 << 20, seed: 3),
      ]).map(quoted).joined(separator: " ")
      #expect(try shell("\(command) | sha256sum").prefix(64) == Self.digest(3, 20 << 20))
      #expect(work.names.isEmpty)
    }

    @Test func `-o - waits for a slow reader of the pipe instead of gathering the file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let command = try work.commandLine([
        "get", "-o", "-", origin.url("a.bin", length: 256 << 20, seed: 3),
      ]).map(quoted).joined(separator: " ")
      let memory = work.path("memory")
      try shell("command time -f %M -o \(quoted(memory)) \(command) | (sleep 3; cat >/dev/null)")
      #expect(try #require(Int(work.text("memory").trimmed)) < 96 << 10)
    }

    @Test func `-o - ends as a filter does, without a word, when the reader of the pipe goes`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let command = try work.commandLine([
        "get", "-o", "-", origin.url("a.bin", length: 64 << 20, seed: 3),
      ]).map(quoted).joined(separator: " ")
      let result = try run(
        ["bash", "-c", "\(command) | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}"],
        within: .seconds(20))
      #expect(result.output == "\(128 + SIGPIPE)\n")
      #expect(result.errorLines == [])
    }

    @Test func `-o - with a wrong checksum fails, although the bytes are out`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        "-o", "-", "--checksum", "sha-256=\(Self.digest(1))",
        origin.url("a.bin", length: 10, seed: 3))
      #expect(result.ending == .exited(32))
      #expect(result.errorLines.count == 1)
      #expect(result.error.contains(Self.digest(3, 10)), "\(result.error)")
    }

    // MARK: Several files

    @Test func `a value may follow its short option at once`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get("-x2", "-j1", "-oy.bin", origin.url("a.bin", length: 1000, seed: 3))
      #expect(result.succeeded)
      #expect(try work.sha256("y.bin") == Digest.ofContent(seed: 3, byteCount: 1000))
    }

    @Test func `-o names what a URL does not name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get("-o", "index.html", "http://127.0.0.1:\(origin.port)/")
      #expect(result.errorLines.last == "index.html: failed: HTTP 404 Not Found; check the URL")
    }

    @Test func `a page in place of a file is asked for again, then taken with a warning`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 1000, seed: 3, query: "fault=html-200")
      let result = try work.get(url)
      #expect(result.succeeded)
      #expect(result.errorLines.contains { $0.contains("warning: the server sent something else") })
      #expect(try origin.requests().count == 3)
    }

    @Test func `what the last event has to say comes before the command ends`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // The warning comes at the very end; a command that did not wait for it lost one of six.
      for index in 0..<30 {
        let url = origin.url("\(index).bin", length: 1000, seed: 3, query: "fault=html-200")
        let result = try work.get("--retries", "0", url)
        #expect(result.succeeded)
        #expect(
          result.errorLines.contains { $0.contains("warning: the server sent something else") },
          "\(result.error)")
      }
    }

    @Test func `a signal that is ignored at the start stays ignored`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 2 << 20, seed: 3, query: "rate=1m")
      let command = try work.commandLine(["get", "-x", "1", url]).map(quoted).joined(separator: " ")
      let process = try work.sandbox.start(["nohup", "bash", "-c", "exec \(command)"])
      #expect(work.waitForPart(of: "a.bin"))
      process.signal(SIGHUP)
      #expect(process.wait(within: .seconds(10)) == .exited(0))
    }

    @Test func `one 404 of four files does not stop the others and is named in the end`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        origin.url("a.bin", length: Self.length, seed: 1),
        origin.url("gone.bin", length: Self.length, seed: 2, query: "status=404"),
        origin.url("b.bin", length: Self.length, seed: 3),
        origin.url("c.bin", length: 0, seed: 4))
      #expect(result.ending == .exited(3))
      #expect(work.names == ["a.bin", "b.bin", "c.bin"])
      #expect(try work.sha256("a.bin") == Self.digest(1))
      #expect(try work.sha256("b.bin") == Self.digest(3))
      #expect(FileStatus.byteCount(of: work.path("c.bin")) == 0)
      let end = result.errorLines.suffix(2)
      #expect(end.first?.hasPrefix("3 files finished, 1 failed, ") == true, "\(result.error)")
      #expect(end.last?.hasPrefix("gone.bin: failed: HTTP 404") == true, "\(result.error)")
    }

    @Test func `--fail-fast cancels the others`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        "--fail-fast", origin.url("slow.bin", length: 64 << 20, seed: 1, query: "rate=1m"),
        origin.url("gone.bin", length: 10, seed: 2, query: "status=404&latency=300"),
        within: .seconds(15))
      #expect(result.ending == .exited(3))
      #expect(result.error.contains("1 failed, 1 cancelled"), "\(result.error)")
    }

    @Test func `-j is how many files run at a time`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = (0..<6).map {
        origin.url("\($0).bin", length: 10_000, seed: UInt64($0), query: "latency=150")
      }
      let result = try work.run(["get", "-j", "2"] + urls)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names.count == 6)
      #expect(try origin.requests().peakConcurrency >= 2)
      #expect(try origin.requests().sustainedConcurrency <= 2)
    }

    @Test func `-i follows out=, header= and checksum= of a list`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let list = try work.sandbox.write(
        """
        \(origin.url("a.bin", length: Self.length, seed: 1))
          out=first/renamed.bin
          header=X-Test: of the list
          checksum=sha-256=\(Self.digest(1))
        \(origin.url("b.bin", length: Self.length, seed: 2))
          checksum=sha-256=\(Self.digest(1))
        \(origin.url("c.bin", length: Self.length, seed: 3))

        """, to: "list.txt")
      let result = try work.get("-i", list)
      #expect(result.ending == .exited(32))
      #expect(work.names == ["c.bin", "first"])
      #expect(try work.sha256("first/renamed.bin") == Self.digest(1))
      #expect(try work.sha256("c.bin") == Self.digest(3))
      let failure = try #require(result.errorLines.last)
      #expect(failure.hasPrefix("b.bin: failed: "), "\(failure)")
      #expect(failure.contains(Self.digest(1)), "\(failure)")
      let requests = try origin.requests()
      #expect(requests.of(path: "/data/a.bin").allSatisfy { $0.fields["x-test"] == "of the list" })
      #expect(requests.of(path: "/data/c.bin").allSatisfy { $0.fields["x-test"] == nil })
    }

    @Test func `-i - reads the list from standard input`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let list = try work.sandbox.write(
        origin.url("a.bin", length: 10, seed: 1) + "\n  out=x\n", to: "list.txt")
      let result = try run(
        try work.commandLine(["get", "-i", "-"]), input: .file(list), within: .seconds(10))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["x"])
    }

    @Test func `two URLs of one name are refused before anything is fetched`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        origin.url("x/a.bin", length: 10, seed: 1), origin.url("y/a.bin", length: 10, seed: 2))
      #expect(result.ending == .exited(1))
      #expect(result.errorLines.count == 1)
      #expect(result.error.contains("'a.bin'"))
      #expect(try origin.requests().isEmpty)
      let tree = try work.get(
        "--tree", origin.url("x/a.bin", length: 10, seed: 1),
        origin.url("y/a.bin", length: 10, seed: 2))
      #expect(tree.succeeded, "\(tree.error)")
      #expect(FileStatus.files(named: "a.bin", below: work.directory).count == 2)
    }

    // MARK: Connections

    @Test func `-x 8 opens eight connections`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        "-x", "8", origin.url("a.bin", length: 32 << 20, seed: 5, query: "rate=4m"))
      #expect(result.succeeded, "\(result.error)")
      #expect(try work.sha256("a.bin") == Self.digest(5, 32 << 20))
      let requests = try origin.requests()
      #expect(requests.peakConcurrency >= 8, "\(requests.peakConcurrency) at once")
      // The server may see the end of a request that was cut short after the start of the next one.
      #expect(requests.sustainedConcurrency <= 9, "\(requests.sustainedConcurrency) at once")
      #expect(requests.bodyByteCount < 33 << 20)
    }

    @Test func `-x 1 stays with one`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        "-x", "1", origin.url("a.bin", length: 4 << 20, seed: 5, query: "rate=4m"))
      #expect(result.succeeded, "\(result.error)")
      #expect(try origin.requests().sustainedConcurrency == 1)
    }

    // MARK: Checksums and existing files

    @Test(arguments: ["sha-256", "SHA-1", "md5"])
    func `a right checksum is accepted`(_ algorithm: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: Self.length, seed: 6)
      // curl and coreutils provide the right digest.
      let program = algorithm.lowercased().filter { $0 != "-" } + "sum"
      let digest = try shell("curl -sS --noproxy '*' \(quoted(url)) | \(program)")
        .prefix { $0 != " " }
      let result = try work.get("--checksum", "\(algorithm)=\(digest)", url)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["a.bin"])
    }

    @Test func `a wrong checksum leaves what was there and asks for all bytes the next time`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("precious", to: "work/a.bin")
      let url = origin.url("a.bin", length: Self.length, seed: 6)
      let result = try work.get(
        "--overwrite", "--checksum", "sha-256=\(Self.digest(7))", url)
      #expect(result.ending == .exited(32))
      #expect(result.error.contains(Self.digest(7)), "\(result.error)")
      #expect(result.error.contains(Self.digest(6)), "\(result.error)")
      #expect(work.names == ["a.bin"])
      #expect(try work.text("a.bin") == "precious")
      try origin.clearLog()
      #expect(try work.get("--overwrite", "--checksum", "sha-256=\(Self.digest(6))", url).succeeded)
      #expect(try origin.requests().bodyByteCount >= Self.length)
      #expect(try work.sha256("a.bin") == Self.digest(6))
    }

    @Test(arguments: ["status=404", "fault=truncate&fault-at=100k", "status=500"])
    func `a file that is there stays as it was until the new one is whole`(_ fault: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("precious", to: "work/a.bin")
      let result = try work.get(
        "--overwrite", "--retries", "0",
        origin.url("a.bin", length: Self.length, seed: 6, query: fault))
      #expect(result.ending.isTransferFailure)
      #expect(try work.text("a.bin") == "precious")
    }

    @Test func `a new file takes over the permissions of the one that it replaces`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let path = try work.sandbox.write("old", to: "work/a.bin")
      #expect(chmod(path, 0o640) == 0)
      #expect(try work.get("--overwrite", origin.url("a.bin", length: 10, seed: 6)).succeeded)
      #expect(try output(of: ["stat", "-c", "%a %s", path]) == "640 10\n")
    }

    // MARK: Going on, or not

    @Test func `the same command goes on with what an earlier one has left`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 16 << 20, seed: 8)
      try origin.control("*", ["fault": "truncate", "fault-at": "8m"])
      let first = try work.get("-x", "1", "--retries", "0", url)
      #expect(first.ending == .exited(6))
      #expect(work.names == ["a.bin.httpfs-part", "a.bin.httpfs-part.record"])
      try origin.clearControl()
      try origin.clearLog()
      let second = try work.get("-x", "1", url)
      #expect(second.succeeded, "\(second.error)")
      #expect(second.error.contains("resum"), "\(second.error)")
      #expect(work.names == ["a.bin"])
      #expect(try work.sha256("a.bin") == Self.digest(8, 16 << 20))
      // 8 MiB were present; one MiB more allows for bytes in flight.
      #expect(try origin.requests().bodyByteCount <= 9 << 20)
    }

    @Test func `a checksum is compared also of what goes to /dev/null`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: Self.length, seed: 3)
      let digest = Digest.ofContent(seed: 3, byteCount: Self.length)
      #expect(try work.get(url, "-o", "/dev/null", "--checksum", "sha-256=\(digest)").succeeded)
      let wrong = String(repeating: "0", count: 64)
      let result = try work.get(url, "-o", "/dev/null", "--checksum", "sha-256=\(wrong)")
      #expect(result.ending == .exited(32))
      #expect(result.error.contains("got sha-256=\(digest)"), "\(result.error)")
      #expect(work.names.isEmpty)
    }

    @Test func `--no-resume begins at the first byte`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 16 << 20, seed: 8)
      try origin.control("*", ["fault": "truncate", "fault-at": "8m"])
      #expect(try work.get("-x", "1", "--retries", "0", url).ending.isTransferFailure)
      try origin.clearControl()
      try origin.clearLog()
      #expect(try work.get("--no-resume", url).succeeded)
      #expect(try origin.requests().bodyByteCount >= 16 << 20)
      #expect(work.names == ["a.bin"])
      #expect(try work.sha256("a.bin") == Self.digest(8, 16 << 20))
    }

    @Test func `a remote file that has changed is begun anew, and the user is told`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 8 << 20, seed: 8)
      try origin.control("*", ["fault": "truncate", "fault-at": "4m"])
      #expect(try work.get("-x", "1", "--retries", "0", url).ending.isTransferFailure)
      try origin.clearControl()
      try origin.control("*", ["version": "2"])
      let second = try work.get(url)
      #expect(second.succeeded, "\(second.error)")
      #expect(second.error.contains("a.bin: starting over: the remote file has changed"))
      #expect(
        try work.sha256("a.bin") == Digest.ofContent(seed: 8, version: 2, byteCount: 8 << 20))
    }

    // MARK: What is said

    @Test func `--json writes an object a line, the last one with the sums`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        "--json", origin.url("a.bin", length: Self.length, seed: 1),
        origin.url("gone.bin", length: 5, seed: 2, query: "status=404"),
        origin.url("b.bin", length: 1000, seed: 3, query: "chunked=yes"))
      #expect(result.ending == .exited(3))
      #expect(result.error.isEmpty, "\(result.error)")
      let lines = try result.jsonLines()
      let summary = try #require(lines.last)
      #expect(summary["event"] as? String == "summary")
      #expect(lines.dropLast().allSatisfy { $0["event"] as? String == "progress" })
      #expect(summary["finished"] as? Int == 2)
      #expect(summary["failed"] as? Int == 1)
      #expect(summary["received"] as? Int64 == Self.length + 1000)
      var last: [String: [String: Any]] = [:]
      for line in lines.dropLast() {
        let name = try #require(line["name"] as? String)
        let received = try #require(line["received"] as? Int64)
        if let total = line["total"] as? Int64 { #expect(received <= total) }
        last[name] = line
      }
      #expect(last["a.bin"]?["state"] as? String == "finished")
      #expect(last["a.bin"]?["received"] as? Int64 == Self.length)
      #expect(last["a.bin"]?["total"] as? Int64 == Self.length)
      #expect(last["b.bin"]?["received"] as? Int64 == 1000)
      #expect(last["gone.bin"]?["state"] as? String == "failed")
      #expect((last["gone.bin"]?["reason"] as? String)?.contains("404") == true)
    }

    @Test func `--quiet says nothing of success and one line of a failure`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let good = try work.get("-q", origin.url("a.bin", length: 1000, seed: 1))
      #expect(good.succeeded)
      #expect(good.output.isEmpty && good.error.isEmpty)
      let bad = try work.get(
        "--quiet", origin.url("b.bin", length: 1000, seed: 1),
        origin.url("gone.bin", length: 5, seed: 2, query: "status=404"))
      #expect(bad.ending == .exited(3))
      #expect(bad.output.isEmpty)
      #expect(bad.errorLines.count == 1)
      #expect(bad.error.hasPrefix("gone.bin: failed: HTTP 404"))
    }

    @Test func `--quiet passes over the warnings about a list and a session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let good = origin.url("a.bin", length: 1000, seed: 1)
      let gone = origin.url("gone.bin", length: 5, seed: 2, query: "status=404")
      let list = try work.sandbox.write("\(good)\n  bogus=1\n", to: "l.urls")
      #expect(try work.get("-o", "loud/", "-i", list).error.contains("'bogus' ignored"))
      for options in [["-q"], ["--quiet", "--json"]] {
        let result = try work.run(["get", "-i", list] + options)
        #expect(result.succeeded && result.error.isEmpty, "\(result.error)")
      }
      #expect(try work.get("-q", "--session", "todo", gone).ending.isTransferFailure)
      let session = try work.text("todo")
      try work.sandbox.write(session + "  bogus=1\n", to: "work/todo")
      let again = try work.get("-q", "--session", "todo")
      #expect(again.ending == .exited(3))
      #expect(again.errorLines.count == 1 && again.error.hasPrefix("gone.bin: failed: HTTP 404"))
    }

    @Test func `a pipe gets plain lines without control characters`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get(
        origin.url("a%1B%5B31m.bin", length: Self.length, seed: 1, query: "rate=1m"),
        origin.url("b.bin", length: 1000, seed: 2))
      #expect(result.succeeded, "\(result.error)")
      #expect(result.output.isEmpty)
      #expect(!result.error.isEmpty && result.error.hasSuffix("\n"))
      #expect(
        result.error.unicodeScalars.allSatisfy { $0 == "\n" || $0.value >= 0x20 }, "\(result.error)"
      )
    }

    @Test func `--compressed stores a body that decodes to a thousand times as much`() throws {
      let work = try TransferWorkspace()
      let root = try work.sandbox.makeDirectory("root")
      try shell("head -c 268435456 /dev/zero | gzip -1 > \(quoted(root))/a.bin")
      let server = try work.sandbox.nginx(
        root: root, locations: "add_header Content-Encoding gzip;")
      let result = try work.get("--compressed", server.url("a.bin"))
      #expect(result.succeeded, "\(result.error)")
      let wanted = try shell("head -c 268435456 /dev/zero | sha256sum").prefix(64)
      #expect(try work.sha256("a.bin") == wanted)
    }

    @Test(arguments: ["gzip", "deflate"])
    func `--compressed stores the decoded bytes`(_ coding: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: Self.length, seed: 9, query: "coding=\(coding)")
      let result = try work.get("--compressed", "--json", url)
      #expect(result.succeeded, "\(result.error)")
      #expect(try work.sha256("a.bin") == Self.digest(9))
      let requests = try origin.requests()
      #expect(requests.count == 1)
      #expect(requests.first?.fields["accept-encoding"]?.contains(coding) == true)
      #expect(try result.jsonLines().last?["received"] as? Int64 == Self.length)
    }
  }
}

extension String {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
