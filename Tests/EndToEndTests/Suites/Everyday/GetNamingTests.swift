import Foundation
import Glibc
import Testing

/// Files whose servers name them, by `Content-Disposition`.
extension RealMounts {
  @Suite struct GetNaming {
    static let length: Int64 = 3 << 20
    static let digest = Digest.ofContent(seed: 5, byteCount: length)

    /// Makes the responses for `path` carry the field.
    func disposition(
      _ field: String, of path: String = "*", at origin: OriginServer
    ) throws {
      try origin.post([
        "match": ["path": path], "name": path,
        "actions": [["head": ["set": ["Content-Disposition": field]]], "body"],
      ])
    }

    func url(_ origin: OriginServer, _ name: String = "get.php") -> String {
      origin.url(name, length: Self.length, seed: 5)
    }

    @Test(arguments: ["get", "get.php", "a.bin"])
    func `a file gets the name that its server sends, where the URL has no ordinary one`(
      _ name: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition(
        "attachment; filename=x; filename*=UTF-8''r%C3%A9sum%C3%A9%201.pdf", at: origin)
      let result = try work.get(url(origin, name))
      #expect(result.succeeded, "\(result.error)")
      let isOrdinary = name == "a.bin"
      let file = isOrdinary ? "a.bin" : "résumé 1.pdf"
      #expect(work.names == [file])
      #expect(try work.sha256(file) == Self.digest)
      #expect(!result.error.contains("asking"), "\(result.error)")
      // The question costs a request of one byte, and only where it is worth one.
      let questions = try origin.requests().filter { $0.range == "bytes=0-0" }
      #expect(questions.count == (isOrdinary ? 0 : 1))
      // The same command finds the file.
      let again = try work.get(url(origin, name))
      #expect(again.succeeded && again.error.contains("unchanged"), "\(again.error)")
    }

    @Test(arguments: ["-J", "--remote-header-name", "--content-disposition", "-OJL"])
    func `-J asks for every name`(_ option: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let result = try work.get(option, url(origin, "a.bin"))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["b.bin"])
      #expect(try work.get("-J", "--tree", url(origin, "a.bin")).ending == .exited(64))
    }

    @Test(arguments: [
      ["--no-content-disposition"], ["-o", "get.php"], ["--tree"], ["-o", "-"],
    ])
    func `nobody is asked for a name that the user gives`(_ options: [String]) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let result = try work.run(["get", "-x", "1"] + options + [url(origin)])
      #expect(result.succeeded, "\(result.error)")
      #expect(FileStatus.files(named: "b.bin", below: work.directory).isEmpty)
      #expect(try origin.requests().count == 1)
    }

    @Test func `-o DIR and dir= keep their places, out= its name, and JSON tells the name`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let list = try work.sandbox.write(
        "\(url(origin, "one"))\n  dir=sub\n\(url(origin, "two"))\n  out=mine\n", to: "list")
      let result = try work.get("--json", "-o", "down/", "-i", list)
      #expect(result.succeeded, "\(result.output)\(result.error)")
      #expect(try work.sha256("down/sub/b.bin") == Self.digest)
      #expect(try work.sha256("down/mine") == Self.digest)
      let names = try result.jsonLines().compactMap { $0["name"] as? String }
      #expect(Set(names) == ["down/sub/b.bin", "down/mine"])
    }

    @Test(arguments: ["405", "403", "503", "reset", "none", "stall"])
    func `without a usable answer, the file has the name of its URL, and a failure is said`(
      _ fault: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let action: Any =
        switch fault {
        case "reset": "reset"
        case "none": ["head": ["set": ["Content-Disposition": "attachment"]]]
        case "stall": "stall"
        default: ["text": "HTTP/1.1 \(fault) No\r\nContent-Length: 0\r\n\r\n"]
        }
      try origin.post([
        "match": ["path": "*", "fields": ["Range": "bytes=0-0"]],
        "actions": fault == "none" ? [action, "body"] : [action],
      ])
      let result = try work.get("--stall-timeout", "1", url(origin))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["get.php"])
      let notices = result.errorLines.filter { !$0.hasPrefix("get.php: ") }
      #expect(notices.count == (fault == "none" ? 0 : 1), "\(result.error)")
      #expect(
        notices.allSatisfy { $0.contains("1 file has the name of its URL: \(origin.origin)") })
      #expect(fault != "503" || result.error.contains("HTTP 503"), "\(result.error)")
    }

    @Test func `a server without ranges is not made to send the file twice`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let length: Int64 = 64 << 20
      let whole = origin.url("get", length: length, seed: 5, query: "ranges=no")
      let result = try work.get(whole)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["b.bin"])
      // The kernel holds as much of the first answer as its socket buffers can grow to.
      #expect(try origin.requests().bodyByteCount < length + length / 2)
    }

    @Test func `an empty file has the name that its server sends`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let result = try work.get(origin.url("get", length: 0, seed: 5))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["b.bin"])
    }

    @Test func `an interrupted download resumes under the same name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let length: Int64 = 10 << 20
      let slow = origin.url("get", length: length, seed: 5, query: "rate=1m")
      let process = try work.start("get", "-x", "1", slow)
      #expect(work.waitForPart(of: "b.bin"))
      pause(for: .seconds(1))
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(10)) == .exited(130))
      try origin.control("*", ["rate": "100m"])
      let second = try work.get(slow)
      #expect(second.succeeded && second.error.contains("resum"), "\(second.error)")
      #expect(work.names == ["b.bin"])
      #expect(try work.sha256("b.bin") == Digest.ofContent(seed: 5, byteCount: length))
    }

    @Test func `a server's name leaves the unfinished download of another URL alone`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let length: Int64 = 10 << 20
      let slow = origin.url("b.bin", length: length, seed: 5, query: "rate=1m")
      let process = try work.start("get", "-x", "1", slow)
      #expect(work.waitForPart(of: "b.bin"))
      pause(for: .seconds(1))
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(10)) == .exited(130))
      try disposition("attachment; filename=b.bin", of: "/data/get.php", at: origin)
      for option in ["--overwrite", "--no-resume"] {
        let result = try work.get(option, url(origin))
        #expect(result.ending == .exited(73), "\(result.error)")
        #expect(result.error.contains("unfinished download of another URL"), "\(result.error)")
      }
      try origin.control("*/b.bin", ["rate": "100m"])
      let second = try work.get(slow)
      #expect(second.succeeded && second.error.contains("resum"), "\(second.error)")
      #expect(try work.sha256("b.bin") == Digest.ofContent(seed: 5, byteCount: length))
    }

    @Test func `a session keeps the name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try origin.post([
        "match": ["path": "*", "requests": ["from": 2, "to": 2]], "parameters": ["status": 403],
        "name": "refusal",
      ])
      let first = try work.get("--session", "s", url(origin))
      #expect(first.ending == .exited(24), "\(first.error)")
      #expect(try work.text("s").contains("out=.//b.bin"))
      try disposition("attachment; filename=c.bin", at: origin)
      #expect(try work.get("--session", "s").succeeded)
      #expect(work.names == ["b.bin"])
    }

    @Test func `a name that is taken is kept, and a file of the user is not replaced`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try work.sandbox.write("mine\n", to: "work/b.bin")
      let refused = try work.get(url(origin))
      #expect(refused.ending == .exited(73), "\(refused.error)")
      #expect(try work.text("b.bin") == "mine\n")
      // Also a name that other files of the command have; the server is not the one to choose.
      // Nor is it with --overwrite, also where it names a link.
      #expect(symlink("nowhere", work.path("link")) == 0)
      for (name, options) in [("b.bin", ["--overwrite"]), ("link", ["-J", "--overwrite"])] {
        try disposition("attachment; filename=\(name)", at: origin)
        let refused = try work.run(["get"] + options + [url(origin)])
        #expect(refused.ending == .exited(73), "\(refused.error)")
        #expect(refused.errorLines.count == 1)
        for text in ["'\(name)'", "-o", "--no-content-disposition"] {
          #expect(refused.error.contains(text), "\(refused.error)")
        }
      }
      #expect(try work.text("b.bin") == "mine\n")
      let target = try FileManager.default.destinationOfSymbolicLink(atPath: work.path("link"))
      #expect(target == "nowhere")
      try disposition("attachment; filename=b.bin", at: origin)
      let second = try work.get("-o", "d/", url(origin), url(origin, "get"), url(origin, "b.bin"))
      #expect(second.ending == .exited(73), "\(second.error)")
      #expect(second.error.contains("has the same name here"), "\(second.error)")
      #expect(second.error.contains("2 failed"), "\(second.error)")
      #expect(try work.sha256("d/b.bin") == Self.digest)
      #expect(try origin.requests().filter { $0.path == "/data/b.bin" }.count > 0)
    }

    @Test func `several files of one URL path get the names that tell them apart`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=\"{field(X-Name)}.bin\"", at: origin)
      let urls = ["one", "two"].map { "\(url(origin))&x=\($0)\n  header=X-Name: \($0)\n" }
      let list = try work.sandbox.write(urls.joined(), to: "list")
      let result = try work.get("-i", list)
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["one.bin", "two.bin"])
    }

    @Test(arguments: [
      ("../../escape", "escape"), (".bashrc", "_bashrc"), ("-rf", "_rf"),
      ("/tmp/absolute", "absolute"), ("a\u{202E}b", "a_b"), ("..", "get.php"),
      (String(repeating: "n", count: 300) + ".bin", String(repeating: "n", count: 251) + ".bin"),
    ])
    func `a hostile name stays in the directory, and is no setting and no option`(
      _ sent: String, _ name: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=\"\(sent)\"", at: origin)
      let result = try work.get("-o", "down/", url(origin))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["down"])
      #expect(try work.sha256("down/\(name)") == Self.digest)
      #expect(try FileManager.default.contentsOfDirectory(atPath: work.path("down")) == [name])
    }

    @Test func `--overwrite replaces an earlier download that the server named`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      #expect(try work.get(url(origin)).succeeded)
      try origin.control("*", ["version": "2"])
      let second = try work.get("--overwrite", url(origin))
      #expect(second.succeeded && !second.error.contains("unchanged"), "\(second.error)")
      #expect(work.names == ["b.bin"])
    }

    @Test func `a session remembers that the server chose the name, and does not overwrite`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try work.sandbox.write("mine\n", to: "work/b.bin")
      let first = try work.get("--session", "s", "--overwrite", url(origin))
      #expect(first.ending == .exited(73), "\(first.error)")
      for arguments in [[], [url(origin)]] {
        let next = try work.run(["get", "--session", "s", "--overwrite"] + arguments)
        #expect(next.ending == .exited(73), "\(next.error)")
        #expect(!next.error.contains("unknown option"), "\(next.error)")
        #expect(next.error.contains("but not in the same session"), "\(next.error)")
      }
      #expect(try work.text("b.bin") == "mine\n")
      // What the message says helps.
      try FileManager.default.moveItem(atPath: work.path("b.bin"), toPath: work.path("mine"))
      #expect(try work.get("--session", "s").succeeded)
      #expect(work.names == ["b.bin", "mine"])
    }

    @Test func `a URL without a name and without one from its server fails alone`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let nameless = origin.url("", length: 10, seed: 1)
      let shown = nameless.prefix { $0 != "?" }
      let advice = "the URL has no file name; choose one with -o FILE"
      let refused = try work.get("--no-content-disposition", nameless, url(origin, "a.bin"))
      #expect(refused.ending == .exited(1))
      #expect(refused.errorLines == ["httpfs: '\(shown)': \(advice)"])
      #expect(work.names.isEmpty)

      let list = try work.sandbox.write("\(nameless)\n\(url(origin, "a.bin"))\n", to: "list")
      let result = try work.get("-i", list, "--session", "s")
      #expect(result.ending == .exited(1), "\(result.error)")
      #expect(result.error.contains("\(advice), or with out= in a list"), "\(result.error)")
      #expect(work.names == ["a.bin"])

      try origin.post(["match": ["path": "/data/"], "parameters": ["status": 403]])
      let denied = try work.get("--json", "-o", "d/", "-i", list)
      #expect(denied.ending == .exited(24), "\(denied.output)\(denied.error)")
      #expect(try work.sha256("d/a.bin") == Self.digest)
      let failure = try #require(denied.jsonLines().first { $0["status"] as? Int != nil })
      #expect(failure["status"] as? Int == 403)
      #expect((failure["name"] as? String)?.hasPrefix(String(shown)) == true)
    }

    @Test func `URLs of one name whose servers do not answer fail alone, except the first`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.post([
        "match": ["path": "*", "fields": ["Range": "bytes=0-0"]], "parameters": ["status": 404],
      ])
      let list = try work.sandbox.write(
        "\(url(origin))&x=1\n\(url(origin))&x=2\n\(url(origin, "a.bin"))\n", to: "list")
      let result = try work.get("-i", list)
      #expect(result.ending == .exited(3), "\(result.error)")
      #expect(result.error.contains("HTTP 404"), "\(result.error)")
      #expect(result.error.contains("another URL has the same name"), "\(result.error)")
      #expect(work.names == ["a.bin", "get.php"])
    }

    @Test func `a server that names the session, or a directory of the user, fails alone`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=s", at: origin)
      let list = try work.sandbox.write(
        "\(url(origin, "get"))\n\(url(origin, "a.bin"))\n  out=foo/x.bin\n", to: "list")
      let first = try work.get("-i", list, "--session", "s")
      #expect(first.ending == .exited(73), "\(first.error)")
      #expect(first.error.contains("cannot be the session"), "\(first.error)")
      #expect(try work.sha256("foo/x.bin") == Self.digest)

      try disposition("attachment; filename=foo", at: origin)
      let second = try work.get("-j", "1", "-o", "d/", "-i", list)
      #expect(second.ending == .exited(73), "\(second.error)")
      #expect(second.error.contains("has the same name here"), "\(second.error)")
      #expect(try work.sha256("d/foo/x.bin") == Self.digest)
    }

    @Test(arguments: [403, 404])
    func `a URL that is valid once fails with the advice to name the file`(_ status: Int) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.post([
        "match": ["path": "*", "requests": ["from": 2]], "parameters": ["status": status],
        "name": "refusal",
      ])
      let result = try work.get(url(origin))
      #expect(result.ending == .exited(status == 403 ? 24 : 3), "\(result.error)")
      #expect(result.error.contains("valid only once"), "\(result.error)")
      #expect(result.error.contains("use -o FILE"), "\(result.error)")
      #expect(!result.error.contains("--netrc"), "\(result.error)")
      let named = try work.get("-o", "b.bin", url(origin))
      #expect(!named.error.contains("valid only once"), "\(named.error)")
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["stall", "retry-after"])
    func `a server that holds the question delays other files for 10 seconds at most`(
      _ fault: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let held = "HTTP/1.1 503 No\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n"
      try origin.post([
        "match": ["path": "/data/get.php", "fields": ["Range": "bytes=0-0"]],
        "actions": fault == "stall" ? ["stall"] : [["text": held]],
      ])
      let start = ContinuousClock.now
      let result = try work.get(url(origin), url(origin, "a.bin"))
      #expect(ContinuousClock.now - start < .seconds(16))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["a.bin", "get.php"])
    }

    @Test func `the server does not choose the line of --checksum-file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let zeros = String(repeating: "0", count: 64)
      let wrong = try work.sandbox.write("\(zeros)  get.php\n\(Self.digest)  b.bin\n", to: "wrong")
      let refused = try work.get("--checksum-file", wrong, url(origin))
      #expect(refused.ending == .exited(32), "\(refused.error)")
      let right = try work.sandbox.write("\(Self.digest)  b.bin\n", to: "right")
      let result = try work.get("--checksum-file", right, url(origin))
      #expect(result.succeeded, "\(result.error)")
      let other = try work.sandbox.write("\(Self.digest)  a.bin\n", to: "other")
      let some = try work.get("--checksum-file", other, url(origin), url(origin, "a.bin"))
      #expect(some.ending == .exited(1), "\(some.error)")
      #expect(some.error.contains("'b.bin' has no line in"), "\(some.error)")
      #expect(work.names == ["a.bin", "b.bin"])
      // Names are compared byte by byte.
      let form = try work.sandbox.write("\(Self.digest)  e\u{301}.bin\n", to: "form")
      let composed = try work.get("--checksum-file", form, url(origin, "%C3%A9.bin"))
      #expect(composed.error.contains("has no line in"), "\(composed.error)")
    }

    @Test func `a file without a line in --checksum-file never reaches its session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let sums = try work.sandbox.write("\(Self.digest)  a.bin\n", to: "sums")
      for _ in 0..<2 {
        let result = try work.get(
          "--session", "s", "--checksum-file", sums, url(origin), url(origin, "a.bin"))
        #expect(result.ending == .exited(1), "\(result.error)")
        #expect(result.error.contains("'b.bin' has no line in"), "\(result.error)")
        #expect(result.error.contains("the session does not keep it"), "\(result.error)")
        #expect(work.names == ["a.bin"])
      }
    }

    @Test func `--overwrite replaces a file of the URL's own name, whoever confirms it`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=get.php", at: origin)
      try work.sandbox.write("mine\n", to: "work/get.php")
      #expect(try work.get(url(origin)).ending == .exited(73))
      let result = try work.get("--overwrite", url(origin))
      #expect(result.succeeded, "\(result.error)")
      #expect(try work.sha256("get.php") == Self.digest)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a silent host is asked a few times, and other hosts say their names`() throws {
      let work = try TransferWorkspace()
      let (silent, origin) = (try OriginServer(), try OriginServer())
      try silent.post([
        "match": ["path": "*", "fields": ["Range": "bytes=0-0"]], "actions": ["stall"],
      ])
      try disposition("attachment; filename=b.bin", at: origin)
      let names = (0..<9).map { "x\($0)" }
      let nameless = silent.url("", length: 10, seed: 1)
      let urls = names.map { url(silent, $0) } + [nameless, url(origin)]
      let list = try work.sandbox.write(urls.map { $0 + "\n" }.joined(), to: "list")
      let start = ContinuousClock.now
      let result = try work.get("-j", "2", "-i", list)
      #expect(ContinuousClock.now - start < .seconds(20))
      #expect(result.ending == .exited(2), "\(result.error)")
      #expect(work.names == ["b.bin"] + names)
      // A question that was not sent has not shown that the server is silent.
      #expect(result.error.contains("was not asked"), "\(result.error)")
      // Two at a time; the first that ends may be followed by another before the second ends.
      #expect(try silent.requests().filter { $0.range == "bytes=0-0" }.count <= 3)
    }

    @Test(.timeLimit(.minutes(1)))
    func `the time that --url-command takes is not its server's`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      let command = "test -e ../asked || { touch ../asked; sleep 11; }; echo \"$1\""
      let result = try work.get("--url-command", command, url(origin))
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["b.bin"])
    }

    @Test func `a file of a session keeps its name before new ones`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try origin.post([
        "match": ["path": "/data/get.php", "requests": ["from": 2]],
        "parameters": ["status": 403], "name": "refusal",
      ])
      #expect(try work.get("--session", "s", url(origin)).ending == .exited(24))
      // Nobody has been asked in this run.
      let resumed = try work.get("--session", "s")
      #expect(resumed.ending == .exited(24), "\(resumed.error)")
      #expect(!resumed.error.contains("valid only once"), "\(resumed.error)")

      let refused = try work.get("--session", "s", url(origin, "b.bin"))
      #expect(refused.error.contains("two files of the name"), "\(refused.error)")
      #expect(try work.text("s").contains("out=.//b.bin"))
      try origin.clearControl()
      try disposition("attachment; filename=b.bin", at: origin)
      let result = try work.get("--session", "s", url(origin, "get"))
      #expect(result.ending == .exited(73), "\(result.error)")
      #expect(result.error.contains("has the same name here"), "\(result.error)")
      #expect(work.names == ["b.bin"])
      #expect(try origin.requests().filter { $0.path == "/data/get" }.count == 1)
    }

    @Test func `a directory of the command comes before a name that its session remembers`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try origin.post([
        "match": ["path": "/data/get.php", "requests": ["from": 2]],
        "parameters": ["status": 403], "name": "refusal",
      ])
      #expect(try work.get("--session", "s", url(origin)).ending == .exited(24))
      let list = try work.sandbox.write("\(url(origin, "a.bin"))\n  out=b.bin/x.bin\n", to: "list")
      let result = try work.get("--session", "s", "-i", list)
      #expect(result.ending == .exited(73), "\(result.error)")
      #expect(try work.sha256("b.bin/x.bin") == Self.digest)
      #expect(try work.text("s").contains("out=.//b.bin"))
    }

    @Test func `a message says that the session does not keep a file without a name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let nameless = origin.url("", length: 10, seed: 1)
      let result = try work.get("--session", "s", "--retries", "0", nameless)
      #expect(result.ending == .exited(1), "\(result.error)")
      #expect(result.error.contains("the session does not keep it"), "\(result.error)")
      #expect(work.names.isEmpty)
    }

    @Test func `--skip-existing does not hide that a name is taken`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try disposition("attachment; filename=b.bin", at: origin)
      try work.sandbox.write("mine\n", to: "work/b.bin")
      let result = try work.get("--skip-existing", url(origin), url(origin, "get"))
      #expect(result.ending == .exited(73), "\(result.error)")
      #expect(result.error.contains("has the same name here"), "\(result.error)")
      #expect(try work.text("b.bin") == "mine\n")
    }
  }
}
