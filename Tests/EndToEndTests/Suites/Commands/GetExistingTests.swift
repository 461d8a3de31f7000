import Foundation
import Glibc
import Testing

/// `httpfs get` if a file of the name already exists.
extension RealMounts {
  @Suite struct GetExisting {
    private static let length: Int64 = 200_000

    @Test func `a file that get has not made ends it with 73 and the three ways out`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("precious", to: "work/a.bin")
      let url = origin.url("a.bin", length: Self.length, seed: 1)
      let refused = try work.get(url)
      #expect(refused.ending == .exited(73))
      #expect(refused.errorLines.count == 1)
      for text in ["'a.bin'", "--overwrite", "--skip-existing", "-o"] {
        #expect(refused.error.contains(text), "\(refused.error)")
      }
      #expect(try origin.requests().isEmpty)
      #expect(try work.text("a.bin") == "precious")

      let skipped = try work.get("--skip-existing", url)
      #expect(skipped.succeeded)
      #expect(skipped.errorLines == ["a.bin: skipped: it is there already"])
      #expect(try origin.requests().isEmpty)
      #expect(try work.text("a.bin") == "precious")

      #expect(try work.get("-o", "b.bin", url).succeeded)
      #expect(try work.get("--overwrite", url).succeeded)
      let digest = Digest.ofContent(seed: 1, byteCount: Self.length)
      #expect(try work.sha256("a.bin") == digest)
      #expect(try work.sha256("b.bin") == digest)
      #expect(work.names == ["a.bin", "b.bin"])
      #expect(try work.get("--overwrite", "--skip-existing", url).ending == .exited(64))
    }

    @Test func `a download that fails at its last sync stays private, and is gone on with`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      // New files get more permissions than a partial file may have.
      let command =
        ["sh", "-c", "umask 002; exec \"$@\"", "sh"] + [
          try Products.httpfs, "get", "-o", work.path("a.bin"),
          origin.url("a.bin", length: 4 << 20, seed: 5),
        ]
      let failing = try FailingCalls(below: work.directory, in: work.sandbox)
      try failing.fail(
        FailingCalls.Plan(calls: "fsync", filePrefix: "a.bin.httpfs-part", errno: EIO))
      let first = try run(try failing.launcher + command, within: .seconds(20))
      #expect(first.ending == .exited(9))
      var status = stat()
      if stat(work.path("a.bin.httpfs-part"), &status) == 0 {
        #expect(status.st_mode & 0o777 == 0o600)
      }
      let second = try run(command, within: .seconds(20))
      #expect(second.succeeded, "\(second.error)")
      #expect(!second.error.contains("starting over"), "\(second.error)")
      #expect(stat(work.path("a.bin"), &status) == 0 && status.st_mode & 0o777 == 0o664)
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 5, byteCount: 4 << 20))
    }

    @Test func `a download ends well though the disk refuses to sync its record`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let failing = try FailingCalls(below: work.directory, in: work.sandbox)
      try failing.fail(
        FailingCalls.Plan(
          calls: "fsync,fdatasync", filePrefix: "a.bin.httpfs-part.record", count: nil, errno: EIO))
      let result = try run(
        try failing.launcher + [
          try Products.httpfs, "get", "--rate-limit", "4M", "-o", work.path("a.bin"),
          origin.url("a.bin", length: 16 << 20, seed: 9),
        ], within: .seconds(60))
      #expect(result.succeeded, "\(result.error)")
      #expect(try failing.calls().contains { $0.outcome == .failed(EIO) })
      #expect(try work.sha256("a.bin") == Digest.ofContent(seed: 9, byteCount: 16 << 20))
    }

    /// Starts a download that waits at its last sync, and calls `action` meanwhile.
    private func downloadHeldAtSync(
      _ url: String, in work: TransferWorkspace, _ action: () throws -> Void
    ) throws -> ChildProcess {
      let failing = try FailingCalls(below: work.directory, in: work.sandbox)
      try failing.fail(
        FailingCalls.Plan(calls: "fsync", filePrefix: "a.bin.httpfs-part", effect: .held))
      let process = try work.sandbox.start(
        try failing.launcher + work.commandLine(["get", "-o", work.path("a.bin"), url]))
      let isHeld = try Deadline(after: .seconds(20)).wait {
        try failing.calls().contains { $0.outcome == .held }
      }
      #expect(isHeld)
      try action()
      failing.pass()
      return process
    }

    @Test func `what a kill leaves of a record that was being written goes with the next download`()
      throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 4 << 20, seed: 8)
      let failing = try FailingCalls(below: work.directory, in: work.sandbox)
      try failing.fail(
        FailingCalls.Plan(
          calls: "renameat", filePrefix: "a.bin.httpfs-part.record", effect: .held))
      for count in 1...2 {
        let process = try work.sandbox.start(
          try failing.launcher + work.commandLine(["get", "-o", work.path("a.bin"), url]))
        let isHeld = Deadline(after: .seconds(20)).wait {
          (try? failing.calls().count { $0.outcome == .held }) == count
        }
        #expect(isHeld)
        process.signal(SIGKILL)
        _ = process.wait(within: .seconds(20))
        // Repeated attempts leave one file that is not yet a record.
        #expect(work.names == ["a.bin.httpfs-part", "a.bin.httpfs-part.record-new"])
      }
      let whole = try work.get(url)
      #expect(whole.succeeded, "\(whole.error)")
      #expect(work.names == ["a.bin"])
    }

    @Test func `a partial file that is replaced during the last sync does not get the name`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: Self.length, seed: 6)
      let process = try downloadHeldAtSync(url, in: work) {
        try work.sandbox.write("evil", to: "work/evil")
        #expect(rename(work.path("evil"), work.path("a.bin.httpfs-part")) == 0)
      }
      #expect(process.wait(within: .seconds(20)) == .exited(9))
      #expect(process.standardError.contains("was removed or replaced while it was written"))
      #expect(FileStatus.byteCount(of: work.path("a.bin")) == nil)
    }

    @Test func `a result that is made private during the last sync stays so`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: Self.length, seed: 7)
      #expect(try work.get("-o", work.path("a.bin"), url).succeeded)
      try origin.control("*/a.bin", ["version": "2"])
      let process = try downloadHeldAtSync(url, in: work) {
        #expect(chmod(work.path("a.bin"), 0o600) == 0)
      }
      #expect(process.wait(within: .seconds(20)) == .exited(0))
      let digest = Digest.ofContent(seed: 7, version: 2, byteCount: Self.length)
      #expect(try work.sha256("a.bin") == digest)
      var status = stat()
      #expect(stat(work.path("a.bin"), &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test func `with another failure beside it the code is 1`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("precious", to: "work/a.bin")
      let result = try work.get(
        origin.url("a.bin", length: Self.length, seed: 1),
        origin.url("b.bin", length: Self.length, seed: 2, query: "status=404"))
      #expect(result.ending == .exited(1))
    }

    @Test func `the same list again asks once for each file, and fetches what has changed`() throws
    {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let names = ["a.bin", "b.bin", "c.bin"]
      let urls = names.map { origin.url($0, length: Self.length, seed: 3) }
      let list = try work.sandbox.write(urls.joined(separator: "\n") + "\n", to: "list.urls")
      #expect(try work.get("-i", list).succeeded)
      try origin.clearLog()
      let second = try work.get("-i", list)
      #expect(second.succeeded, "\(second.error)")
      #expect(try origin.requests().count == 3)
      #expect(try origin.requests().bodyByteCount == 0)
      for name in names {
        #expect(
          second.errorLines.count { $0.hasPrefix("\(name): ") } == 1
            && second.error.contains("\(name): 195.3 KiB, unchanged since it was downloaded"),
          "\(second.error)")
      }

      try origin.control("*/b.bin", ["version": "2"])
      try origin.clearLog()
      let third = try work.get("--json", "-i", list)
      #expect(third.succeeded, "\(third.error)")
      #expect(try origin.requests().bodyByteCount == Self.length)
      #expect(
        try work.sha256("b.bin")
          == Digest.ofContent(seed: 3, version: 2, byteCount: Self.length))
      let ends = try third.jsonLines().filter { $0["state"] as? String == "finished" }
      #expect(ends.count { $0["reason"] as? String == "unchanged" } == 2)

      // Only the missing file is fetched.
      #expect(unlink(work.path("c.bin")) == 0)
      try origin.clearLog()
      #expect(try work.get("-i", list).succeeded)
      #expect(try origin.requests().of(path: "/data/c.bin").bodyByteCount == Self.length)
      #expect(try origin.requests().bodyByteCount == Self.length)
      #expect(work.names == names)
    }

    @Test func `a list or Metalink replaces no dotfile, and writes through no link`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("evil", length: 10, seed: 4)
      _ = try work.sandbox.makeDirectory("work/.ssh")
      _ = try work.sandbox.makeDirectory("outside")
      try work.sandbox.write("mine", to: "work/.ssh/authorized_keys")
      try work.sandbox.write("mine", to: "outside/f")
      #expect(symlink("../outside", work.path("link")) == 0)
      #expect(symlink("../outside/f", work.path("f")) == 0)
      let metalink = try work.sandbox.write(
        """
        <?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">
        <file name=".ssh/authorized_keys"><url>\(url.replacing("&", with: "&amp;"))</url></file>
        </metalink>
        """, to: "m.meta4")
      #expect(try work.get("-i", metalink).ending == .exited(73))
      #expect(try work.text(".ssh/authorized_keys") == "mine")
      for (out, code) in [("link/f", CInt(9)), ("link/new", 9), ("f", 73)] {
        let list = try work.sandbox.write("\(url)\n  out=\(out)\n", to: "l.urls")
        let result = try work.get("-i", list, "--session", "todo")
        #expect(result.ending == .exited(code), "\(out): \(result.error)")
        // Nor does it succeed later, from the session.
        #expect(try work.get("--session", "todo").ending == .exited(code))
        #expect(unlink(work.path("todo")) == 0)
      }
      #expect(
        try String(contentsOfFile: work.sandbox.path("outside/f"), encoding: .utf8) == "mine")
      #expect(FileStatus.byteCount(of: work.sandbox.path("outside/new")) == nil)
    }

    @Test func `a link that leads to nothing is in the way, however the file is named`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("f", length: 10, seed: 4)
      let list = try work.sandbox.write(url + "\n", to: "l.urls")
      // The link leads to a name, to a directory that does not exist or is no directory, to itself,
      // or to another link.
      for target in ["none", "none/f", "../l.urls/f", "f", "other"] {
        #expect(symlink(target, work.path("f")) == 0)
        if target == "other" { #expect(symlink("none", work.path("other")) == 0) }
        for place in [["-o", "f", url], ["-o", work.path("f"), url], [url], ["-i", list]] {
          for option in [[], ["--skip-existing"]] {
            let result = try work.run(["get", "--no-content-disposition"] + option + place)
            #expect(result.ending == .exited(73), "\(target), \(place): \(result.error)")
            #expect(result.errorLines.count == 1)
            for text in ["f' ", "--overwrite", "-o to name another place"] {
              #expect(result.error.contains(text), "\(result.error)")
            }
          }
          #expect(
            try FileManager.default.destinationOfSymbolicLink(atPath: work.path("f")) == target)
        }
        #expect(try origin.requests().isEmpty)
        // The link is replaced, and no file appears at its target.
        #expect(try work.get("--overwrite", "-o", "f", url).succeeded)
        #expect(work.names == (target == "other" ? ["f", "other"] : ["f"]))
        #expect(FileStatus.byteCount(of: work.path("f")) == 10)
        #expect(unlink(work.path("f")) == 0)
        try origin.clearLog()
      }
    }

    @Test func `a link of the kernel's, which names no file, is no such link`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      #expect(symlink("/proc/self/fd/2", work.path("f")) == 0)
      let url = origin.url("f", length: 10, seed: 4)
      let result = try run(
        ["sh", "-c", "\"$@\" 2>&1 | cat", "sh", try Products.httpfs, "get", "--overwrite"]
          + ["-o", work.path("f"), url])
      #expect(result.output.contains("is not a regular file"), "\(result.output)")
      #expect(work.names == ["f"])
      #expect(try origin.requests().isEmpty)
    }

    @Test func `where there are no extended attributes a file beside it does their work`() throws {
      try #require(Host.isRoot, "needs root, to mount a ramfs")
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let directory = try work.sandbox.makeDirectory("work/ram")
      try #require(mount("ramfs", directory, "ramfs", 0, nil) == 0)
      defer { _ = umount2(directory, CInt(MNT_DETACH)) }
      let url = origin.url("a.bin", length: Self.length, seed: 5, query: "token=canary")
      #expect(try work.get("-o", "ram/", url).succeeded)
      let names = try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
      #expect(names == ["a.bin", "a.bin.httpfs-origin"])
      #expect(try !work.text("ram/a.bin.httpfs-origin").contains("canary"))
      try origin.clearLog()
      let again = try work.get("-o", "ram/", url)
      #expect(again.succeeded && again.error.contains("unchanged"), "\(again.error)")
      #expect(try origin.requests().bodyByteCount == 0)
      try shell("printf x >> \(quoted(work.path("ram/a.bin")))")
      #expect(try work.get("-o", "ram/", url).ending == .exited(73))
    }

    @Test func `the attributes of a result hold no secret of its URL`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      let url = origin.url("a.bin", length: 10, seed: 6, query: "token=canary")
        .replacing("://", with: "://user:canary@")
      #expect(try work.get(url).succeeded)
      let attributes = try output(of: ["getfattr", "-d", "--", work.path("a.bin")])
      for name in ["url", "key", "etag", "stamp"] {
        #expect(attributes.contains("user.httpfs.\(name)="), "\(attributes)")
      }
      #expect(!attributes.contains("canary"), "\(attributes)")
    }

    @Test func `put does not replace a file with the server's answer unless told to`() throws {
      let work = try TransferWorkspace()
      let origin = try OriginServer()
      try work.sandbox.write("body", to: "work/a.txt")
      try work.sandbox.write("precious", to: "work/answer")
      let url = origin.url("up.bin", length: 1, seed: 1)
      let refused = try work.put("-o", "answer", "a.txt", url)
      #expect(refused.ending == .exited(73), "\(refused.error)")
      #expect(try origin.requests().isEmpty)
      #expect(try work.text("answer") == "precious")
      #expect(try work.put("--overwrite", "-o", "answer", "a.txt", url).succeeded)
      #expect(try work.text("answer") != "precious")
    }
  }
}
