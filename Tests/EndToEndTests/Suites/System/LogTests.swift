import Foundation
import Glibc
import Testing

/// The destination of a mount's log.
extension RealMounts {
  @Suite struct Logs {
    private func text(_ path: String) -> String {
      (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    }

    @Test(arguments: [false, true])
    func `SIGHUP opens the log by its name again, as logrotate wants`(isDaemon: Bool) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        origin.url("l.bin", length: 1000, seed: 321) + "\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      defer { _ = try? run(["fusermount3", "-u", "-z", mountpoint]) }
      let socket = try NotifySocket(name: sandbox.path("notify"))
      // The name is relative, and the daemon leaves its directory.
      let command =
        "cd \(quoted(sandbox.directory)); NOTIFY_SOCKET=\(quoted(socket.name)) exec \"$@\""
      let child = try ChildProcess(
        ["sh", "-c", command, "sh", try Products.httpfs, "mount"]
          + (isDaemon ? ["--daemon"] : [])
          + ["--cache-dir", sandbox.path("cache"), "--log-file", "mount.log"]
          + ["--log-level", "notice", list, mountpoint])
      defer {
        child.signal(SIGTERM)
        _ = child.wait(within: .seconds(5))
      }
      let process = try #require(pid_t(try socket.next()["MAINPID"] ?? ""))
      defer { kill(process, SIGTERM) }
      let (log, old) = (sandbox.path("mount.log"), sandbox.path("mount.log.1"))
      #expect(
        try FileManager.default.attributesOfItem(atPath: log)[.posixPermissions] as? Int == 0o600)
      func reload() throws {
        try #require(kill(process, SIGHUP) == 0)
        #expect(try socket.next()["RELOADING"] == "1")
        #expect(try socket.next()["READY"] == "1")
      }
      try reload()
      #expect(text(log).contains("notice list reloaded"))
      try #require(rename(log, old) == 0)
      let before = text(old)
      try reload()
      #expect(text(log).split(separator: "\n").count == 1, "\(text(log))")
      #expect(text(log).contains("notice list reloaded"))
      #expect(text(old) == before)
      #expect(
        try FileManager.default.attributesOfItem(atPath: log)[.posixPermissions] as? Int == 0o600)

      // If the file cannot be opened, no message is lost.
      try #require(unlink(log) == 0)
      _ = try sandbox.makeDirectory("mount.log")
      try reload()
      #expect(access(log, F_OK) == 0)
      try #require(rmdir(log) == 0)
      try reload()
      #expect(text(log).contains("notice list reloaded"))
    }

    @Test(
      .enabled(if: Host.isRoot, "needs root, to give files to another user"),
      arguments: ["--log-file", "--trace"])
    func `a file that another user has chosen is not written to`(option: String) throws {
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/l.bin\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let shared = try sandbox.makeDirectory("shared")
      try #require(chmod(shared, 0o1777) == 0)
      func expectRefusal(of name: String, _ reason: String) throws {
        let result = try run(
          [try Products.httpfs, "mount", "--cache-dir", sandbox.path("cache")]
            + [option, sandbox.path(name), list, mountpoint], within: .seconds(20))
        #expect(result.ending == .exited(1))
        #expect(result.errorLines.count == 1 && result.error.contains("'\(sandbox.path(name))': "))
        #expect(result.error.contains(reason), "\(result.error)")
      }
      let foreign = try sandbox.write("", to: "foreign")
      try #require(chmod(foreign, 0o666) == 0 && chown(foreign, 65534, 65534) == 0)
      // A user's own link to a foreign file is refused, too.
      try #require(symlink("foreign", sandbox.path("link")) == 0)
      for name in ["foreign", "link"] { try expectRefusal(of: name, "belongs to another user") }
      let precious = try sandbox.write("", to: "precious")
      for (name, target) in [("to-file", "../precious"), ("to-nothing", "../new")] {
        let link = "\(shared)/\(name)"
        try #require(symlink(target, link) == 0 && lchown(link, 65534, 65534) == 0)
        try expectRefusal(of: "shared/\(name)", "is a symbolic link of another user")
      }
      try #require(symlink("shared/to-file", sandbox.path("chain")) == 0)
      try expectRefusal(of: "chain", "is a symbolic link of another user")
      try #require(Glibc.link(precious, "\(shared)/name") == 0)
      try expectRefusal(of: "shared/name", "has another name")
      #expect(text(foreign).isEmpty && text(precious).isEmpty)
      #expect(FileStatus.byteCount(of: sandbox.path("new")) == nil)
    }

    @Test func `a log goes to one's own file by one's own link, and to devices and pipes`() throws {
      let sandbox = try Sandbox()
      let list = try sandbox.write("http://127.0.0.1:9/l.bin\n", to: "urls.txt")
      let shared = try sandbox.makeDirectory("shared")
      try #require(chmod(shared, 0o1777) == 0)
      // The daemon can pass through a directory that its owner may not read.
      let closed = try sandbox.makeDirectory("closed")
      try #require(chmod(closed, 0o311) == 0)
      defer { chmod(closed, 0o755) }
      try #require(symlink("../closed/own.log", "\(shared)/link") == 0)
      for (number, log) in ["\(shared)/link", "/dev/stderr", "/dev/null"].enumerated() {
        let mount = sandbox.adopt(
          try Mount(
            source: list, mountpoint: try sandbox.makeDirectory("mnt\(number)"),
            cacheDirectory: sandbox.path("cache\(number)"),
            options: ["--log-level", "notice", "--log-file", log]))
        mount.process.signal(SIGHUP)
        let isLogged = Deadline(after: .seconds(10)).wait {
          switch number {
          case 0: text("\(closed)/own.log").contains("list reloaded")
          case 1: mount.process.standardError.contains("list reloaded")
          default: true
          }
        }
        #expect(isLogged, "\(log)")
      }
    }

    @Test func `lines for the journal carry their priority, and no time`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        origin.url("l.bin", length: 1000, seed: 322) + "\n", to: "urls.txt")
      let journal = try sandbox.write("", to: "journal")
      let script =
        "exec 2>>\(quoted(journal)); JOURNAL_STREAM=$(stat --format=%d:%i \(quoted(journal)));"
        + " export JOURNAL_STREAM; exec \"$@\""
      let mount = sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory("mnt"),
          cacheDirectory: sandbox.path("cache"), options: ["--log-level", "notice"],
          launcher: ["sh", "-c", script, "sh"]))
      mount.process.signal(SIGHUP)
      #expect(
        Deadline(after: .seconds(10)).wait { text(journal).contains("<5>list reloaded files=1\n") },
        "\(text(journal))")
      try sandbox.write("no URL at all\n", to: "urls.txt")
      mount.process.signal(SIGHUP)
      #expect(
        Deadline(after: .seconds(10)).wait { text(journal).contains("<3>the list was not") },
        "\(text(journal))")
      let failed = try run(
        ["sh", "-c", script, "sh", try Products.httpfs, "mount", sandbox.path("none"), "/"])
      #expect(failed.ending == .exited(1))
      #expect(text(journal).contains("<3>httpfs: cannot open list"), "\(text(journal))")
    }

    @Test func `standard error that is not the journal's gets plain lines`() throws {
      let sandbox = try Sandbox()
      let result = try run(
        [try Products.httpfs, "mount", sandbox.path("none"), "/"],
        environment: ["JOURNAL_STREAM": "8:12345"])
      #expect(result.error.hasPrefix("httpfs: "), "\(result.error)")
    }

    @Test(.enabled(if: Host.isRoot, "needs root, for a /dev of its own"))
    func `the log of a daemon without a log file is in the system's log`() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let list = try sandbox.write(
        origin.url("l.bin", length: 1000, seed: 323) + "\n", to: "urls.txt")
      let mountpoint = try sandbox.makeDirectory("mnt")
      let socket = try NotifySocket(name: sandbox.path("log"))
      let devices = try sandbox.makeDirectory("dev")
      // /dev/log is the socket; the other devices that httpfs needs exist, too.
      let script = """
        cd \(quoted(devices)) && mknod -m 666 null c 1 3 && mknod -m 666 fuse c 10 229 &&
        mknod -m 666 urandom c 1 9 && ln -s \(quoted(socket.name)) log &&
        mount --bind \(quoted(devices)) /dev && exec "$@"
        """
      try output(
        of: MountNamespace.launcher(script: script)
          + [try Products.httpfs, "mount", "--daemon", "--cache-dir", sandbox.path("cache")]
          + [list, mountpoint], within: .seconds(20))
      let serving = ProcessTable.processes {
        $0.first?.hasSuffix("/httpfs") == true && $0.last == mountpoint
      }
      let process = try #require(serving.first)
      defer { kill(process, SIGTERM) }
      try sandbox.write("no URL at all\n", to: "urls.txt")
      try #require(kill(process, SIGHUP) == 0)
      // `<PRIORITY>TIME NAME: MESSAGE`; LOG_DAEMON is 3 · 8, LOG_ERR 3.
      let message = try socket.nextText()
      #expect(message.hasPrefix("<27>"), "\(message)")
      #expect(message.contains("httpfs: the list was not reloaded"), "\(message)")
    }
  }
}
