import Foundation
import Glibc
import Testing

/// A session and a command that name the same files.
extension RealMounts {
  @Suite struct GetSessionMerge {
    @Test func `headers and checksums of a list are kept in the session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let list = try work.sandbox.write(
        """
        \(SessionFiles.urls(origin)[0])
          out=dir/x.bin
          header=X-Key: header canary
          checksum=sha-256=\(Digest.ofContent(seed: 0, byteCount: SessionFiles.length))

        """, to: "list.txt")
      #expect(try work.get("--session", "todo", "-i", list).ending.isTransferFailure)
      try origin.clearControl()
      try origin.clearLog()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      #expect(FileStatus.byteCount(of: work.path("dir/x.bin")) == SessionFiles.length)
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
      let urls = SessionFiles.urls(origin)
      #expect(try work.get("--session", "todo", urls[0]).ending.isTransferFailure)
      try origin.clearControl()
      let second = try work.get("--session", "todo", urls[0], urls[1], urls[2])
      #expect(second.succeeded, "\(second.error)")
      #expect(work.names == SessionFiles.names)
      try SessionFiles.expectAll(work)
    }

    @Test func `a session keeps the place of a file, and the command says all else about it`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let url = SessionFiles.urls(origin)[0]
      let digest = Digest.ofContent(seed: 0, byteCount: SessionFiles.length)
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
      let url = SessionFiles.urls(origin)[0]
      let zeros = String(repeating: "0", count: 64)
      try origin.control("*", ["status": "403"])
      #expect(
        try work.get("--session", "todo", "--checksum", "sha-256=\(zeros)", url).ending
          == .exited(24))
      try origin.clearControl()
      let metalink = try work.sandbox.write(
        """
        <?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">
        <file name="a.bin"><size>\(SessionFiles.length)</size>
        <url>\(url.replacing("&", with: "&amp;"))</url></file></metalink>
        """, to: "a.meta4")
      let pieces = try work.sandbox.write(
        "\(url)\n  pieces=sha-256:\(SessionFiles.length):"
          + "\(Digest.ofContent(seed: 0, byteCount: SessionFiles.length))\n", to: "pieces")
      for list in [metalink, pieces] {
        let wrong = try work.get("--session", "todo", "-i", list)
        #expect(wrong.ending == .exited(32), "\(wrong.error)")
        #expect(work.names == ["todo"])
      }
      let session = try work.text("todo")
      for check in [
        "checksum=sha-256=\(zeros)", "length=\(SessionFiles.length)", "pieces=sha-256:",
      ] {
        #expect(session.contains("  \(check)"), "\(session)")
      }
      let other = try work.sandbox.write("\(url)\n  length=7\n", to: "other")
      #expect(try work.get("--session", "todo", "-i", other).ending.isTransferFailure)
      #expect(try work.text("todo").contains("  checksum=sha-256=\(zeros)"))
      let digest = Digest.ofContent(seed: 0, byteCount: SessionFiles.length)
      let right = try work.sandbox.write(
        "\(url)\n  checksum=sha-256=\(digest)\n  length=\(SessionFiles.length)\n", to: "right")
      let last = try work.get("--session", "todo", "-i", right)
      #expect(last.succeeded, "\(last.error)")
      #expect(work.names == ["a.bin"])
    }

    @Test func `files of two users, or of other places and header fields, are two`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let url = SessionFiles.urls(origin)[0]
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
          "\(SessionFiles.urls(origin)[0])\n  header=X-Key: \(key)\n", to: "list")
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
      let url = SessionFiles.urls(origin)[0]
      let mirror = origin.url("mirror", length: SessionFiles.length, seed: 0)
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
      let url = SessionFiles.urls(origin)[0]
      let zeros = String(repeating: "0", count: 64)
      var list = try work.sandbox.write(
        "\(url)\n  checksum=sha-256=\(zeros)\n  length=\(SessionFiles.length + 1)\n", to: "list")
      #expect(try !work.get("--session", "todo", "-i", list).succeeded)
      let digest = Digest.ofContent(seed: 0, byteCount: SessionFiles.length)
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
      let url = SessionFiles.urls(origin)[0]
      let zeros = String(repeating: "0", count: 64)
      let list = try work.sandbox.write(
        "\(url)\n  checksum=sha-256=\(zeros)\n  length=\(SessionFiles.length + 1)\n", to: "list")
      #expect(try !work.get("--session", "todo", "-i", list).succeeded)
      let digest = Digest.ofContent(seed: 0, byteCount: SessionFiles.length)
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
      let url = SessionFiles.urls(origin)[0].replacing("a.bin", with: "get.php")
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
      let url = SessionFiles.urls(origin)[0].replacing("a.bin", with: "get.php")
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
      let urls = SessionFiles.urls(origin)
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
      let (first, second) = (
        SessionFiles.urls(origin)[0],
        SessionFiles.urls(origin)[0].replacing("/data/", with: "/data/x/")
      )
      #expect(
        try work.get("--session", "todo", "-o", work.path("o/"), first).ending == .exited(24))
      let result = try work.get("--session", "todo", "--overwrite", "-o", "o/", second)
      #expect(result.ending == .exited(1), "\(result.error)")
      #expect(result.error.contains("two files of the name 'o/a.bin'"), "\(result.error)")
    }

    @Test func `the file of another URL can take its place after its lines are deleted`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "404"])
      let urls = SessionFiles.urls(origin)
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
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 0, byteCount: SessionFiles.length))
    }
  }
}
