import Foundation
import Glibc
import Testing

/// `httpfs get --session FILE`: the list of downloads survives the process.
extension RealMounts {
  @Suite struct GetSession {
    private static let length: Int64 = 8 << 20
    private static let names = ["a.bin", "b.bin", "c.bin"]

    private func urls(_ origin: OriginServer) -> [String] {
      Self.names.enumerated().map {
        origin.url($1, length: Self.length, seed: UInt64($0), query: "token=canary")
      }
    }

    private func expectAll(_ work: TransferWorkspace, below directory: String = "") throws {
      for (seed, name) in Self.names.enumerated() {
        #expect(
          try work.sha256(directory + name)
            == Digest.ofContent(seed: UInt64(seed), byteCount: Self.length), "\(name)")
      }
    }

    @Test(arguments: [SIGINT, SIGKILL])
    func `a session goes on after its command was ended, and is gone at its end`(_ signal: CInt)
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // The second download completes at once; the third has not begun when the command ends.
      try origin.control("*/a.bin", ["total-rate": "2m"])
      let urls = urls(origin)
      let process = try work.start(
        "get", "--session", "todo", "-j", "1", "-x", "2", urls[1], urls[0], urls[2])
      #expect(Deadline(after: .seconds(10)).wait { work.names.contains("b.bin") })
      #expect(work.waitForPart(of: "a.bin"))
      pause(for: .milliseconds(500))
      process.signal(signal)
      #expect(
        process.wait(within: .seconds(30))
          == (signal == SIGINT ? .exited(130) : .signalled(SIGKILL)))
      let session = try work.text("todo")
      #expect(session.contains(urls[0]) && session.contains(urls[2]))
      #expect(!session.contains(urls[1]), "\(session)")
      #expect(session.contains(signal == SIGINT ? "# paused" : "# running"), "\(session)")
      #expect(try output(of: ["stat", "-c", "%a", work.path("todo")]) == "600\n")

      try origin.clearControl()
      try origin.clearLog()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      #expect(work.names == Self.names)
      try expectAll(work)
      let requests = try origin.requests()
      #expect(requests.of(path: "/data/b.bin").isEmpty)
      #expect(requests.of(path: "/data/a.bin").bodyByteCount < Self.length)
    }

    @Test func `what has failed stays in the session with its reason`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/b.bin", ["status": "403"])
      let urls = urls(origin)
      let result = try work.get("--session", "todo", urls[0], urls[1], urls[2])
      #expect(result.ending == .exited(24))
      let session = try work.text("todo")
      #expect(session.contains("# failed: HTTP 403"), "\(session)")
      #expect(session.contains(urls[1]))
      #expect(!session.contains(urls[0]) && !session.contains(urls[2]), "\(session)")
      #expect(work.names == ["a.bin", "c.bin", "todo"])
      try origin.clearControl()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      #expect(work.names == Self.names)
      try expectAll(work)
    }

    @Test(arguments: ["absolute", "./relative", "../work/up", "a/../b", "spaced  name"])
    func `a session remembers any output directory`(_ directory: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let target = directory == "absolute" ? work.path("absolute") : directory
      try origin.control("*/b.bin", ["status": "503"])
      let urls = urls(origin)
      let result = try work.get(
        "--session", "todo", "-o", target + "/", "--retries", "0", urls[0], urls[1], urls[2])
      #expect(result.ending == .exited(22), "\(result.error)")
      try origin.clearControl()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      try expectAll(work, below: directory + "/")
      #expect(!work.names.contains("todo"))
    }

    @Test func `a session with one URL still takes -o as its file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get("--session", "todo", "-o", "x.bin", urls(origin)[0])
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["x.bin"])
      #expect(
        try work.sha256("x.bin") == Digest.ofContent(seed: 0, byteCount: Self.length))
    }

    @Test func `headers and checksums of a list are kept in the session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let list = try work.sandbox.write(
        """
        \(urls(origin)[0])
          out=dir/x.bin
          header=X-Key: header canary
          checksum=sha-256=\(Digest.ofContent(seed: 0, byteCount: Self.length))

        """, to: "list.txt")
      #expect(try work.get("--session", "todo", "-i", list).ending.isTransferFailure)
      try origin.clearControl()
      try origin.clearLog()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      #expect(FileStatus.byteCount(of: work.path("dir/x.bin")) == Self.length)
      #expect(try origin.requests().allSatisfy { $0.fields["x-key"] == "header canary" })

      // The checksum is not lost either.
      try origin.control("*", ["status": "403"])
      #expect(try work.get("--session", "again", "-i", list).ending.isTransferFailure)
      try origin.clearControl()
      try origin.control("*", ["version": "2"])
      let third = try work.get("--session", "again")
      #expect(third.ending == .exited(32))
      #expect(third.error.contains("sha-256") || third.error.contains("hash"), "\(third.error)")
    }

    @Test func `new URLs join a session without doubling what it has`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let urls = urls(origin)
      #expect(try work.get("--session", "todo", urls[0]).ending.isTransferFailure)
      try origin.clearControl()
      let second = try work.get("--session", "todo", urls[0], urls[1], urls[2])
      #expect(second.succeeded, "\(second.error)")
      #expect(work.names == Self.names)
      try expectAll(work)
    }

    @Test func `a session keeps the place of a file, and the command says all else about it`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let url = urls(origin)[0]
      let digest = Digest.ofContent(seed: 0, byteCount: Self.length)
      let zeros = String(repeating: "0", count: 64)
      #expect(try work.get("--session", "todo", "-o", "one", url).ending == .exited(24))
      try origin.clearControl()
      let sums = try work.sandbox.write("\(zeros)  one\n", to: "sums")
      let other = try work.sandbox.write("\(digest)  other\n", to: "other")
      let list = try work.sandbox.write("\(url)\n  length=7\n", to: "list")
      for (arguments, code) in [
        (["--checksum-file", other], CInt(1)), (["--checksum-file", sums], 32),
        (["--checksum", "sha-256=\(zeros)", url], 32), ([url], 32), (["-i", list], 22),
      ] {
        let wrong = try work.run(["get", "--session", "todo"] + arguments)
        #expect(wrong.ending == .exited(code), "\(arguments): \(wrong.error)")
        #expect(work.names == ["todo"], "\(arguments)")
      }
      // The right checksum makes the session's wrong checks void.
      let right = try work.get(
        "--session", "todo", "-o", "two/", "--checksum", "sha-256=\(digest)", url)
      #expect(right.succeeded, "\(right.error)")
      #expect(right.error.contains("'one' keeps its place in the session, not 'two/a.bin'"))
      #expect(work.names == ["one"])
    }

    @Test func `each check of a file stays in its session until the command names it`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = urls(origin)[0]
      let zeros = String(repeating: "0", count: 64)
      try origin.control("*", ["status": "403"])
      #expect(
        try work.get("--session", "todo", "--checksum", "sha-256=\(zeros)", url).ending
          == .exited(24))
      try origin.clearControl()
      let metalink = try work.sandbox.write(
        """
        <?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">
        <file name="a.bin"><size>\(Self.length)</size>
        <url>\(url.replacing("&", with: "&amp;"))</url></file></metalink>
        """, to: "a.meta4")
      let pieces = try work.sandbox.write(
        "\(url)\n  pieces=sha-256:\(Self.length):"
          + "\(Digest.ofContent(seed: 0, byteCount: Self.length))\n", to: "pieces")
      for list in [metalink, pieces] {
        let wrong = try work.get("--session", "todo", "-i", list)
        #expect(wrong.ending == .exited(32), "\(wrong.error)")
        #expect(work.names == ["todo"])
      }
      let session = try work.text("todo")
      for check in ["checksum=sha-256=\(zeros)", "length=\(Self.length)", "pieces=sha-256:"] {
        #expect(session.contains("  \(check)"), "\(session)")
      }
      let other = try work.sandbox.write("\(url)\n  length=7\n", to: "other")
      #expect(try work.get("--session", "todo", "-i", other).ending.isTransferFailure)
      #expect(try work.text("todo").contains("  checksum=sha-256=\(zeros)"))
      let digest = Digest.ofContent(seed: 0, byteCount: Self.length)
      let right = try work.sandbox.write(
        "\(url)\n  checksum=sha-256=\(digest)\n  length=\(Self.length)\n", to: "right")
      let last = try work.get("--session", "todo", "-i", right)
      #expect(last.succeeded, "\(last.error)")
      #expect(work.names == ["a.bin"])
    }

    @Test func `files of two users, or of other places and header fields, are two`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let url = urls(origin)[0]
      func named(_ user: String) -> String { url.replacing("http://", with: "http://\(user)@") }
      let keyed = try work.sandbox.write("\(url)\n  out=c\n  header=X-Key: k\n", to: "list")
      for arguments in [
        ["-o", "a", named("alice:x")], ["-o", "b", named("bob:y")], ["-i", keyed],
        ["-o", "d", url],
      ] {
        let result = try work.run(["get", "--session", "todo"] + arguments)
        #expect(result.ending == .exited(24), "\(result.error)")
      }
      let lines = try work.text("todo").split(separator: "\n")
      for (line, place) in [(named("alice:x"), "a"), (named("bob:y"), "b"), (url, "d")] {
        let number = try #require(lines.lastIndex { $0 == line })
        #expect(["  out=\(place)", "  out=.//\(place)"].contains(lines[number + 1]), "\(lines)")
      }
      #expect(lines.count { $0.hasPrefix("http") } == 4, "\(lines)")
      // A new password is that of the same user.
      #expect(
        try work.get("--session", "todo", named("alice:new")).ending == .exited(24))
      let session = try work.text("todo")
      #expect(session.contains("alice:new@") && !session.contains("alice:x@"), "\(session)")
      #expect(session.split(separator: "\n").count { $0.hasPrefix("http") } == 4)
    }

    @Test func `a header of a list replaces the one that the session has`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.post([
        "match": ["path": "*", "fields": ["X-Key": "old"]], "parameters": ["status": 403],
      ])
      for (key, code) in [("old", CInt(24)), ("new", 0)] {
        let list = try work.sandbox.write(
          "\(urls(origin)[0])\n  header=X-Key: \(key)\n", to: "list")
        let result = try work.get("--session", "todo", "-i", list)
        #expect(result.ending == .exited(code), "\(result.error)")
      }
    }

    @Test func `mirrors, header fields and limits are those of the command, not of the session`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let url = urls(origin)[0]
      let mirror = origin.url("mirror", length: Self.length, seed: 0)
      func fetch(_ text: String) throws -> [String] {
        try origin.clearLog()
        let list = try work.sandbox.write(text, to: "list")
        #expect(try work.get("--session", "todo", "-i", list).ending == .exited(24))
        return try origin.requests().map { "\($0.path) \($0.fields["x-key"] ?? "")" }
      }
      var requests = try fetch("\(url)\n  header=X-Key: secret\n  max-download-limit=90000000\n")
      #expect(!requests.isEmpty && requests.allSatisfy { $0.hasSuffix(" secret") })
      // The header field was meant for one server, and must not reach another one.
      requests = try fetch("\(url)\t\(mirror)\n")
      #expect(requests.contains { $0.contains("mirror") })
      #expect(requests.allSatisfy { !$0.contains("secret") })
      requests = try fetch("\(url)\n  header=X-Key: other\n")
      #expect(!requests.isEmpty && requests.allSatisfy { !$0.contains("mirror") })
      let session = try work.text("todo")
      #expect(!session.contains("mirror") && !session.contains("limit="), "\(session)")
    }

    @Test func `another checksum replaces all checks of a file of a session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = urls(origin)[0]
      let zeros = String(repeating: "0", count: 64)
      var list = try work.sandbox.write(
        "\(url)\n  checksum=sha-256=\(zeros)\n  length=\(Self.length + 1)\n", to: "list")
      #expect(try !work.get("--session", "todo", "-i", list).succeeded)
      let digest = Digest.ofContent(seed: 0, byteCount: Self.length)
      list = try work.sandbox.write("\(url)\n  checksum=sha-256=\(digest)\n", to: "list")
      let result = try work.get("--session", "todo", "-i", list)
      #expect(result.succeeded, "\(result.error)")
    }

    @Test(arguments: [true, false])
    func `a line of --checksum-file that is another checksum replaces the session's length`(
      namesURL: Bool
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = urls(origin)[0]
      let zeros = String(repeating: "0", count: 64)
      let list = try work.sandbox.write(
        "\(url)\n  checksum=sha-256=\(zeros)\n  length=\(Self.length + 1)\n", to: "list")
      #expect(try !work.get("--session", "todo", "-i", list).succeeded)
      let digest = Digest.ofContent(seed: 0, byteCount: Self.length)
      let sums = try work.sandbox.write("\(digest)  a.bin\n", to: "sums")
      let named = namesURL ? [url] : []
      let result = try work.run(["get", "--session", "todo", "--checksum-file", sums] + named)
      #expect(result.succeeded, "\(result.error)")
    }

    @Test func `a header field that selects the bytes is part of what a file of a session is`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = urls(origin)[0].replacing("a.bin", with: "get.php")
      func fetch(_ keys: [String]) throws -> CommandResult {
        let text = keys.map { "\(url)\n  header=X-Key: \($0)\n" }.joined()
        return try work.get("--session", "todo", "-i", work.sandbox.write(text, to: "list"))
      }
      func rules(_ refused: [String]) throws {
        try origin.clearControl()
        // Each key has a file of its own name and length.
        for (key, length) in [("one", 1000), ("two", 2000)] {
          let head =
            "HTTP/1.1 200 OK\r\nContent-Disposition: attachment; filename=\(key).bin\r\n"
            + "ETag: \"\(key)\"\r\nContent-Length: \(length)\r\n\r\n"
          try origin.post([
            "match": ["path": "*", "fields": ["X-Key": key]], "name": key,
            "actions": [["text": head + String(repeating: "x", count: length)]],
          ])
        }
        for key in refused {
          let refusal = "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n"
          try origin.post([
            "match": ["path": "*", "fields": ["X-Key": key], "requests": ["from": 2]],
            "name": "no \(key)", "actions": [["text": refusal]],
          ])
        }
      }
      func expectFiles() {
        #expect(work.names == ["one.bin", "two.bin"])
        #expect(FileStatus.byteCount(of: work.path("one.bin")) == 1000)
        #expect(FileStatus.byteCount(of: work.path("two.bin")) == 2000)
      }
      // The first is complete; the same command then finds the second in the session.
      try rules(["two"])
      #expect(try fetch(["one", "two"]).ending == .exited(24))
      #expect(work.names == ["one.bin", "todo"])
      try rules([])
      let second = try fetch(["one", "two"])
      #expect(second.succeeded, "\(second.error)")
      expectFiles()
      // Both are in the session, and the command names them in another order.
      for name in work.names { try FileManager.default.removeItem(atPath: work.path(name)) }
      try rules(["one", "two"])
      #expect(try fetch(["one", "two"]).ending == .exited(24))
      #expect(work.names == ["todo"])
      try rules([])
      let third = try fetch(["two", "one"])
      #expect(third.succeeded, "\(third.error)")
      expectFiles()
    }

    @Test func `files of one object are told apart by their directories`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = urls(origin)[0].replacing("a.bin", with: "get.php")
      let signed = "\(url)&X-Amz-Credential=c&X-Amz-Date=20260101T000000Z&X-Amz-Signature="
      try origin.control("*", ["status": "403"])
      let list = try work.sandbox.write(
        "\(signed)1\n  out=b/x.bin\n\(signed)2\n  out=a/x.bin\n", to: "list")
      #expect(try work.get("--session", "todo", "-i", list).ending == .exited(24))
      let text = "\(signed)3\n  out=x.bin\n\(signed)4\n  out=c/x.bin\n"
      let other = try work.sandbox.write(text, to: "other")
      #expect(
        try work.get("--session", "todo", "-o", "a/", "-i", other).ending == .exited(24))
      let session = try work.text("todo")
      for place in ["=1\n  out=.//b/x", "=3\n  out=.//a/x", "=4\n  out=a//c/x"] {
        #expect(session.contains(place), "\(session)")
      }
      #expect(session.split(separator: "\n").count { $0.hasPrefix("http") } == 3)
      // Of what is not provably one file, nothing is replaced.
      let changed = try work.sandbox.write(
        text.replacing("\n  out", with: "\n  header=X-Key: k\n  out"), to: "other")
      let refused = try work.get("--session", "todo", "-o", "a/", "-i", changed)
      #expect(refused.ending == .exited(1))
      #expect(refused.error.contains("one of them in the session"), "\(refused.error)")
      #expect(try work.text("todo") == session)
    }

    @Test func `each of several files of one object has its own signature in a session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = urls(origin)
      let signed = "\(urls[0])&X-Amz-Credential=c&X-Amz-Date=20260101T000000Z&X-Amz-Signature="
      func fetch(_ files: [(String, Int)]) throws -> CommandResult {
        let text = files.map { "\(signed)\($1)\n  out=\($0).bin\n" }.joined()
        return try work.get("--session", "todo", "-i", work.sandbox.write(text, to: "list"))
      }
      try origin.control("*", ["status": "403"])
      #expect(try work.get("--session", "todo", urls[2]).ending == .exited(24))
      for files in [[("one", 1), ("two", 2)], [("two", 3), ("one", 4)]] {
        #expect(try fetch(files).ending == .exited(24))
        let session = try work.text("todo")
        for (name, number) in files {
          #expect(session.contains("=\(number)\n  out=.//\(name).bin\n"), "\(session)")
        }
      }
      try origin.clearControl()
      #expect(try fetch([("one", 5), ("two", 6)]).succeeded)
      #expect(work.names == ["c.bin", "one.bin", "two.bin"])
    }

    @Test func `two spellings of a place are one`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let (first, second) = (urls(origin)[0], urls(origin)[0].replacing("/data/", with: "/data/x/"))
      #expect(
        try work.get("--session", "todo", "-o", work.path("o/"), first).ending == .exited(24))
      let result = try work.get("--session", "todo", "--overwrite", "-o", "o/", second)
      #expect(result.ending == .exited(1), "\(result.error)")
      #expect(result.error.contains("two files of the name 'o/a.bin'"), "\(result.error)")
    }

    @Test func `a session without downloads is like none`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // As an earlier version left it when it was killed at its end.
      try work.sandbox.write("# A session of httpfs get; go on\n", to: "work/todo")
      let alone = try work.get("--session", "todo")
      #expect(alone.ending == .exited(1))
      #expect(alone.error.contains("'todo' has no downloads; name URLs"), "\(alone.error)")
      let result = try work.get("--session", "todo", urls(origin)[0])
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["a.bin"])
    }

    @Test func `a session can be read that has a file and a directory of one name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = urls(origin)
      try work.sandbox.write(
        "# A session of httpfs get\n\(urls[0])\n  out=x\n\(urls[1])\n  out=x//b.bin\n"
          + "\(urls[2])\n  out=c\n\(urls[2])\n  out=./c\n", to: "work/todo")
      // One of them fails, and only that stays.
      let result = try work.get("--session", "todo", "-j", "1")
      #expect(!result.succeeded && result.error.contains("2 failed"), "\(result.error)")
      #expect(try work.sha256("x") == Digest.ofContent(seed: 0, byteCount: Self.length))
      let session = try work.text("todo")
      #expect(session.contains("out=x//b.bin") && !session.contains("out=x\n"), "\(session)")
      #expect(session.contains("out=./c\n") && !session.contains("out=c\n"), "\(session)")
    }

    @Test func `a session holds all that lists can say, and reasons of any length`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let fields = (0..<100).map { "  header=X-\($0): v\n" }.joined()
      let mirrors = (0..<700).map { "\t" + origin.url("\($0)", length: Self.length, seed: 1) }
      let directories = String(repeating: "d/", count: 125)
      let list = try work.sandbox.write(
        """
        \(urls(origin)[0])
        \(fields)  user-agent=x
          referer=*
        \(urls(origin)[1])\(mirrors.joined())
        \(urls(origin)[2])
          out=\(directories)c.bin

        """, to: "list")
      let first = try work.get("--session", "todo", "-o", "a/b/c/d/e/", "-i", list)
      #expect(first.ending == .exited(24), "\(first.error)")
      let session = try work.text("todo")
      #expect(
        session.split(separator: "\n").filter { $0.hasPrefix("#") }.allSatisfy {
          $0.utf8.count < 1100
        })
      try origin.clearControl()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      #expect(work.names == ["a"])
    }

    @Test func `a session that does not exist is said to, and none is made`() throws {
      let work = try TransferWorkspace()
      let result = try work.get("--session", "todo")
      #expect(result.ending == .exited(1))
      #expect(result.errorLines.count == 1)
      #expect(result.error.contains("'todo' does not exist"))
      #expect(work.names.isEmpty)
    }

    @Test func `a list that is not a session is never overwritten or removed`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let text = "# mine\n" + urls(origin).joined(separator: "\n") + "\n"
      try work.sandbox.write(text, to: "work/list")
      let result = try work.get("--session", "list")
      #expect(result.ending == .exited(1))
      #expect(result.errorLines.count == 1)
      #expect(result.error.contains("'list' is not a session"), "\(result.error)")
      #expect(work.names == ["list"])
      #expect(try work.text("list") == text)
    }

    @Test(arguments: ["x\n  header=X-Key: injected", "x\r", "x\r\ny", "x\u{1}b", "x\u{7F}b"])
    func `a name that a session could not hold is refused before anything is fetched`(
      _ name: String
    ) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get("--session", "todo", "-o", name, urls(origin)[0])
      #expect(result.ending == .exited(1))
      #expect(result.errorLines.count == 1, "\(result.error)")
      #expect(result.error.contains("a session cannot hold the name 'x\\u{"), "\(result.error)")
      #expect(work.names.isEmpty)
      #expect(try origin.requests().isEmpty)
      // Without a session, it is an ordinary name.
      #expect(try work.get("-o", name, urls(origin)[0]).succeeded)
      #expect(work.names == [name])
    }

    @Test func `a huge file that is not a session is refused before it is read`() throws {
      let work = try TransferWorkspace()
      try work.sandbox.write("", to: "work/todo")
      #expect(truncate(work.path("todo"), 20 << 30) == 0)
      let result = try work.get("--session", "todo")
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("'todo' is not a session"), "\(result.error)")
    }

    @Test(arguments: ["a.bin.httpfs-part", "./a.bin.httpfs-part.record", "x.httpfs-lock"])
    func `a session is not named like a file that belongs to a download`(_ name: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get("--session", name, urls(origin)[0])
      #expect(result.ending == .exited(64), "\(result.error)")
      #expect(result.error.contains("without '.httpfs-'"), "\(result.error)")
      #expect(work.names.isEmpty)
    }

    @Test func `--output without URLs is said to move no file of a session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      #expect(try work.get("--session", "todo", urls(origin)[0]).ending == .exited(24))
      try origin.clearControl()
      let result = try work.get("--session", "todo", "-o", "elsewhere/")
      #expect(result.succeeded)
      #expect(result.error.contains("warning: --output is not used"), "\(result.error)")
      #expect(work.names == ["a.bin"])
    }

    @Test func `the file of another URL can take its place after its lines are deleted`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "404"])
      let urls = urls(origin)
      #expect(try work.get("--session", "todo", urls[1]).ending == .exited(3))
      #expect(try work.get("--session", "todo", "-o", "a.bin", urls[2]).ending == .exited(3))
      try origin.clearControl()
      let refused = try work.get("--session", "todo", urls[0])
      #expect(refused.ending == .exited(1))
      #expect(refused.error.contains("or delete its lines in the session"), "\(refused.error)")
      let session = try work.text("todo")
      let start = try #require(session.firstRange(of: urls[2])?.lowerBound)
      let end = try #require(session.firstRange(of: "out=a.bin\n")?.upperBound)
      try work.sandbox.write(
        session.replacingCharacters(in: start..<end, with: ""), to: "work/todo")
      let result = try work.get("--session", "todo", urls[0])
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["a.bin", "b.bin"])
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 0, byteCount: Self.length))
    }

    @Test(arguments: ["todo", "./todo", "x/../todo", "absolute"])
    func `a session is never a file that is downloaded`(_ name: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let path = name == "absolute" ? work.path("todo") : name
      let result = try work.get("--session", "todo", "-o", path, urls(origin)[0])
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("cannot be the session"), "\(result.error)")
      #expect(try origin.requests().isEmpty)
      #expect(work.names.isEmpty)
    }

    @Test func `a session is never a file that is downloaded by another name of its directory`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let real = try work.sandbox.makeDirectory("work/real")
      try FileManager.default.createSymbolicLink(
        atPath: work.path("link"), withDestinationPath: "real")
      let result = try work.get(
        "--session", "link/todo", "--overwrite", "-o", "real/todo", urls(origin)[0])
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("cannot be the session"), "\(result.error)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: real).isEmpty)
    }

    @Test func `a session is of one process at a time, and none is lost`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/a.bin", ["total-rate": "2m"])
      let urls = urls(origin)
      let first = try work.start("get", "--session", "todo", urls[0])
      #expect(work.waitForPart(of: "a.bin"))
      let second = try work.get("--session", "todo", urls[1])
      #expect(second.ending == .exited(1))
      #expect(second.error.contains("'todo' is in use by another process"), "\(second.error)")
      #expect(first.wait(within: .seconds(30)) == .exited(0))
      #expect(work.names == ["a.bin"])
    }

    @Test func `what somebody else has put in the place of a session is left there`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/a.bin", ["total-rate": "4m"])
      let process = try work.start("get", "--session", "todo", urls(origin)[0])
      #expect(work.waitForPart(of: "a.bin"))
      let mine = try work.sandbox.write("precious\n", to: "work/mine")
      #expect(rename(mine, work.path("todo")) == 0)
      #expect(process.wait(within: .seconds(30)) == .exited(1))
      #expect(process.standardError.contains("another file has come to be at 'todo'"))
      #expect(try work.text("todo") == "precious\n")
      #expect(work.names == ["a.bin", "todo"])
    }

    @Test func `a file that gets the number of a removed session is left there`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/a.bin", ["total-rate": "4m"])
      try origin.control("*/get.php", ["latency": "2000"])
      // First a file that the command has written, then one that it has only read.
      for url in [urls(origin)[0], urls(origin)[1].replacing("b.bin", with: "get.php")] {
        let process = try work.start("get", "--session", "todo", url)
        if url.contains("a.bin") {
          #expect(work.waitForPart(of: "a.bin"))
        } else {
          // It has read the session, and waits for the answer to its question for the name.
          #expect(
            Deadline(after: .seconds(10)).wait { work.names.contains("todo.httpfs-lock") })
          pause(for: .seconds(1))
        }
        try FileManager.default.removeItem(atPath: work.path("todo"))
        try work.sandbox.write("precious\n", to: "work/todo")
        #expect(process.wait(within: .seconds(30)) == .exited(1))
        #expect(try work.text("todo") == "precious\n")
        #expect(!work.names.contains { $0.hasPrefix("todo.") }, "\(work.names)")
        try work.sandbox.write(
          "# A session of httpfs get\n\(urls(origin)[2])\n  out=c.bin\n", to: "work/todo")
      }
    }

    @Test func `the lock of a session keeps its name while the session is replaced`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/a.bin", ["total-rate": "4m"])
      let urls = (0..<40).map { origin.url("\($0).bin", length: 1000, seed: 1) }
      let list = try work.sandbox.write(urls.map { $0 + "\n" }.joined(), to: "list")
      let process = try work.start(
        "get", "-j", "1", "--session", "todo", "-i", list, self.urls(origin)[0])
      var locks: Set<UInt64> = []
      var sessions: Set<UInt64> = []
      #expect(work.waitForPart(of: "a.bin"))
      while process.isRunning {
        var status = stat()
        let isLocked = stat(work.path("todo.httpfs-lock"), &status) == 0
        locks.insert(isLocked ? UInt64(status.st_ino) : 0)
        if stat(work.path("todo"), &status) == 0 { sessions.insert(UInt64(status.st_ino)) }
        if sessions.isEmpty { break }
      }
      locks.remove(0)
      #expect(locks.count == 1)
      #expect(process.wait(within: .seconds(30)) == .exited(0), "\(process.standardError)")
      #expect(!work.names.contains { $0.hasPrefix("todo") }, "\(work.names)")
    }

    @Test func `a lock of a session that is not one is refused`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      for name in ["todo.httpfs-lock", "todo.httpfs-next"] {
        try work.sandbox.write("precious\n", to: "work/\(name)")
        #expect(chmod(work.path(name), 0o600) == 0)
        let result = try work.get("--session", "todo", urls(origin)[0])
        #expect(result.ending == .exited(1))
        #expect(result.error.contains("'\(name)', which the session needs"), "\(result.error)")
        #expect(work.names == [name])
        #expect(try work.text(name) == "precious\n")
        try FileManager.default.removeItem(atPath: work.path(name))
      }
      #expect(try origin.requests().isEmpty)
    }

    @Test func `what a killed process has left of its session's next state is taken away`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/a.bin", ["total-rate": "2m"])
      let process = try work.start("get", "--session", "todo", urls(origin)[0])
      #expect(work.waitForPart(of: "a.bin"))
      process.signal(SIGKILL)
      #expect(process.wait(within: .seconds(30)) == .signalled(SIGKILL))
      // As after a kill in the middle of a write.
      try work.sandbox.write("# A session of", to: "work/todo.httpfs-next")
      #expect(chmod(work.path("todo.httpfs-next"), 0o600) == 0)
      try origin.clearControl()
      #expect(try work.get("--session", "todo").succeeded)
      #expect(work.names == ["a.bin"])
    }

    @Test(.enabled(if: Host.isRoot, "needs root, to mount"))
    func `a session that does not fit on its disk leaves the one before it and nothing else`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let disk = try work.sandbox.tinyDisk(byteCount: 4 << 20)
      let session = disk.path + "/todo"
      try origin.control("*", ["status": "403"])
      #expect(try work.get("--session", session, urls(origin)[0]).ending.isTransferFailure)
      let before = try String(contentsOfFile: session, encoding: .utf8)
      _ = try run(["dd", "if=/dev/zero", "of=\(disk.path)/other", "bs=64k"])
      try origin.clearLog()
      let result = try work.get("--session", session, urls(origin)[0], urls(origin)[1])
      #expect(result.ending == .exited(1))
      #expect(
        result.errorLines
          == ["httpfs: cannot write session '\(session)': No space left on device"])
      #expect(try origin.requests().isEmpty)
      #expect(try String(contentsOfFile: session, encoding: .utf8) == before)
      let names = try FileManager.default.contentsOfDirectory(atPath: disk.path)
      #expect(!names.contains("todo.httpfs-next"), "\(names)")
    }

    @Test func `a long session is written seldom while its files arrive`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let padding = String(repeating: "n", count: 150)
      let list = try work.sandbox.write(
        (0..<10_000).map { origin.url("\(padding)\($0)", length: 1, seed: 1) + "\n" }.joined(),
        to: "list.txt")
      let process = try work.start("get", "-q", "--session", "todo", "-i", list)
      #expect(Deadline(after: .seconds(30)).wait { work.names.count > 10 })
      // More than 2 MiB, for which it waits 4 s; before, each tick wrote it.
      var identities: Set<UInt64> = []
      for _ in 0..<20 {
        var status = stat()
        if stat(work.path("todo"), &status) == 0 { identities.insert(UInt64(status.st_ino)) }
        pause(for: .milliseconds(100))
      }
      #expect((1...2).contains(identities.count), "\(identities)")
      process.signal(SIGINT)
      #expect(process.wait(within: .seconds(30)) == .exited(130))
      #expect(try work.text("todo").contains("# paused"))
    }

    @Test func `a session in a directory that is not there is refused before anything is fetched`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get("--session", "no/such/todo", urls(origin)[0])
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("cannot write session 'no/such/todo'"), "\(result.error)")
      #expect(try origin.requests().isEmpty)
    }
  }
}
