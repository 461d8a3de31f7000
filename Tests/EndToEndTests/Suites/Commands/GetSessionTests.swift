import Foundation
import Glibc
import Testing

/// Sessions of `httpfs get`: what goes on in the next run.
extension RealMounts {
  @Suite struct GetSession {
    @Test(arguments: [SIGINT, SIGKILL])
    func `a session goes on after its command was ended, and is gone at its end`(_ signal: CInt)
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // The second download completes at once; the third has not begun when the command ends.
      try origin.control("*/a.bin", ["total-rate": "2m"])
      let urls = SessionFiles.urls(origin)
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
      #expect(work.names == SessionFiles.names)
      try SessionFiles.expectAll(work)
      let requests = try origin.requests()
      #expect(requests.of(path: "/data/b.bin").isEmpty)
      #expect(requests.of(path: "/data/a.bin").bodyByteCount < SessionFiles.length)
    }

    @Test func `what has failed stays in the session with its reason`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/b.bin", ["status": "403"])
      let urls = SessionFiles.urls(origin)
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
      #expect(work.names == SessionFiles.names)
      try SessionFiles.expectAll(work)
    }

    @Test(arguments: ["absolute", "./relative", "../work/up", "a/../b", "spaced  name"])
    func `a session remembers any output directory`(_ directory: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let target = directory == "absolute" ? work.path("absolute") : directory
      try origin.control("*/b.bin", ["status": "503"])
      let urls = SessionFiles.urls(origin)
      let result = try work.get(
        "--session", "todo", "-o", target + "/", "--retries", "0", urls[0], urls[1], urls[2])
      #expect(result.ending == .exited(22), "\(result.error)")
      try origin.clearControl()
      let second = try work.get("--session", "todo")
      #expect(second.succeeded, "\(second.error)")
      try SessionFiles.expectAll(work, below: directory + "/")
      #expect(!work.names.contains("todo"))
    }

    @Test func `a session with one URL still takes -o as its file`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let result = try work.get("--session", "todo", "-o", "x.bin", SessionFiles.urls(origin)[0])
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["x.bin"])
      #expect(
        try work.sha256("x.bin") == Digest.ofContent(seed: 0, byteCount: SessionFiles.length))
    }

    @Test func `a session without downloads is like none`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // As an earlier version left it when it was killed at its end.
      try work.sandbox.write("# A session of httpfs get; go on\n", to: "work/todo")
      let alone = try work.get("--session", "todo")
      #expect(alone.ending == .exited(1))
      #expect(alone.error.contains("'todo' has no downloads; name URLs"), "\(alone.error)")
      let result = try work.get("--session", "todo", SessionFiles.urls(origin)[0])
      #expect(result.succeeded, "\(result.error)")
      #expect(work.names == ["a.bin"])
    }

    @Test func `a session can be read that has a file and a directory of one name`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let urls = SessionFiles.urls(origin)
      try work.sandbox.write(
        "# A session of httpfs get\n\(urls[0])\n  out=x\n\(urls[1])\n  out=x//b.bin\n"
          + "\(urls[2])\n  out=c\n\(urls[2])\n  out=./c\n", to: "work/todo")
      // One of them fails, and only that stays.
      let result = try work.get("--session", "todo", "-j", "1")
      #expect(!result.succeeded && result.error.contains("2 failed"), "\(result.error)")
      #expect(try work.sha256("x") == Digest.ofContent(seed: 0, byteCount: SessionFiles.length))
      let session = try work.text("todo")
      #expect(session.contains("out=x//b.bin") && !session.contains("out=x\n"), "\(session)")
      #expect(session.contains("out=./c\n") && !session.contains("out=c\n"), "\(session)")
    }

    @Test func `a session holds all that lists can say, and reasons of any length`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      let fields = (0..<100).map { "  header=X-\($0): v\n" }.joined()
      let mirrors = (0..<700).map {
        "\t" + origin.url("\($0)", length: SessionFiles.length, seed: 1)
      }
      let directories = String(repeating: "d/", count: 125)
      let list = try work.sandbox.write(
        """
        \(SessionFiles.urls(origin)[0])
        \(fields)  user-agent=x
          referer=*
        \(SessionFiles.urls(origin)[1])\(mirrors.joined())
        \(SessionFiles.urls(origin)[2])
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

    @Test func `--output without URLs is said to move no file of a session`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*", ["status": "403"])
      #expect(try work.get("--session", "todo", SessionFiles.urls(origin)[0]).ending == .exited(24))
      try origin.clearControl()
      let result = try work.get("--session", "todo", "-o", "elsewhere/")
      #expect(result.succeeded)
      #expect(result.error.contains("warning: --output is not used"), "\(result.error)")
      #expect(work.names == ["a.bin"])
    }
  }
}
