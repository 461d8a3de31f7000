import Foundation
import Glibc
import Testing

/// The file of a session, its lock, and the files of others in their places.
extension RealMounts {
  @Suite struct GetSessionFile {
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
      let text = "# mine\n" + SessionFiles.urls(origin).joined(separator: "\n") + "\n"
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
      let result = try work.get("--session", "todo", "-o", name, SessionFiles.urls(origin)[0])
      #expect(result.ending == .exited(1))
      #expect(result.errorLines.count == 1, "\(result.error)")
      #expect(result.error.contains("a session cannot hold the name 'x\\u{"), "\(result.error)")
      #expect(work.names.isEmpty)
      #expect(try origin.requests().isEmpty)
      // Without a session, it is an ordinary name.
      #expect(try work.get("-o", name, SessionFiles.urls(origin)[0]).succeeded)
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
      let result = try work.get("--session", name, SessionFiles.urls(origin)[0])
      #expect(result.ending == .exited(64), "\(result.error)")
      #expect(result.error.contains("without '.httpfs-'"), "\(result.error)")
      #expect(work.names.isEmpty)
    }

    @Test(arguments: ["todo", "./todo", "x/../todo", "absolute"])
    func `a session is never a file that is downloaded`(_ name: String) throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let path = name == "absolute" ? work.path("todo") : name
      let result = try work.get("--session", "todo", "-o", path, SessionFiles.urls(origin)[0])
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
        "--session", "link/todo", "--overwrite", "-o", "real/todo", SessionFiles.urls(origin)[0])
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("cannot be the session"), "\(result.error)")
      #expect(try FileManager.default.contentsOfDirectory(atPath: real).isEmpty)
    }

    @Test func `a session is of one process at a time, and none is lost`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/a.bin", ["total-rate": "2m"])
      let urls = SessionFiles.urls(origin)
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
      let process = try work.start("get", "--session", "todo", SessionFiles.urls(origin)[0])
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
      for url in [
        SessionFiles.urls(origin)[0],
        SessionFiles.urls(origin)[1].replacing("b.bin", with: "get.php"),
      ] {
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
          "# A session of httpfs get\n\(SessionFiles.urls(origin)[2])\n  out=c.bin\n",
          to: "work/todo")
      }
    }

    @Test func `the lock of a session keeps its name while the session is replaced`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try origin.control("*/a.bin", ["total-rate": "4m"])
      let urls = (0..<40).map { origin.url("\($0).bin", length: 1000, seed: 1) }
      let list = try work.sandbox.write(urls.map { $0 + "\n" }.joined(), to: "list")
      let process = try work.start(
        "get", "-j", "1", "--session", "todo", "-i", list, SessionFiles.urls(origin)[0])
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
        let result = try work.get("--session", "todo", SessionFiles.urls(origin)[0])
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
      let process = try work.start("get", "--session", "todo", SessionFiles.urls(origin)[0])
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
      #expect(
        try work.get("--session", session, SessionFiles.urls(origin)[0]).ending.isTransferFailure)
      let before = try String(contentsOfFile: session, encoding: .utf8)
      _ = try run(["dd", "if=/dev/zero", "of=\(disk.path)/other", "bs=64k"])
      try origin.clearLog()
      let result = try work.get(
        "--session", session, SessionFiles.urls(origin)[0], SessionFiles.urls(origin)[1])
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
      let result = try work.get("--session", "no/such/todo", SessionFiles.urls(origin)[0])
      #expect(result.ending == .exited(1))
      #expect(result.error.contains("cannot write session 'no/such/todo'"), "\(result.error)")
      #expect(try origin.requests().isEmpty)
    }
  }
}
