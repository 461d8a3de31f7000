import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 85 and 86 of the fault table: files that `get` did not create.
extension RealMounts.SecurityRows {
  // MARK: 85

  @Test(
    "85 get onto an existing file: replaced only when asked, or when it is an earlier result",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func existingFile(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    var random = SeededGenerator(seed: seed &* 85)
    let length = Int64.random(in: 1...3_000_000, using: &random)
    let url = origin.url("a.bin", length: length, seed: seed)
    let list = try work.sandbox.write("\(url)\n", to: "list.urls")
    let command = Bool.random(using: &random) ? ["get", url] : ["get", "-i", list]
    let digests = [UInt64(1), 2].map {
      Digest.ofContent(seed: seed, version: $0, byteCount: length)
    }

    try work.sandbox.write("precious", to: "work/a.bin")
    #expect(try work.run(command).ending == .exited(73))
    #expect(try work.text("a.bin") == "precious")
    #expect(try work.run(command + ["--overwrite"]).succeeded)
    #expect(try work.sha256("a.bin") == digests[0])

    try origin.clearLog()
    #expect(try work.run(command).succeeded)
    #expect(try origin.requests().count == 1)
    #expect(try origin.requests().bodyByteCount == 0)
    try origin.control("*", ["version": "2"])
    #expect(try work.run(command).succeeded)
    #expect(try work.sha256("a.bin") == digests[1])

    // An edit in place, which preserves the length.
    let offset = Int64.random(in: 0..<length, using: &random)
    try shell(
      "printf x | dd of=\(quoted(work.path("a.bin"))) bs=1 seek=\(offset) conv=notrunc status=none")
    let edited = try work.sha256("a.bin")
    try origin.control("*", ["version": "3"])
    #expect(try work.run(command).ending == .exited(73))
    #expect(try work.sha256("a.bin") == edited)
    #expect(work.names == ["a.bin"])
  }

  @Test(
    "85 a file that appears while it is downloaded: it stays, and so does what has come",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func appearingFile(seed: UInt64) throws {
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    let length: Int64 = 3 << 20
    let url = origin.url("a.bin", length: length, seed: seed)
    try origin.control("*", ["total-rate": "2m"])
    let process = try work.start("get", url)
    #expect(work.waitForPart(of: "a.bin"))
    try work.sandbox.write("precious", to: "work/a.bin")
    #expect(process.wait(within: .seconds(30)) == .exited(73))
    #expect(try work.text("a.bin") == "precious")
    try origin.clearControl()
    try origin.clearLog()
    #expect(try work.get("--overwrite", url).succeeded)
    #expect(try origin.requests().bodyByteCount <= 1)
    #expect(try work.sha256("a.bin") == Digest.ofContent(seed: seed, byteCount: length))
    #expect(work.names == ["a.bin"])
  }

  // MARK: 86

  @Test(
    "86 partial file or record of another user: begun again, and the result is one's own",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all, ["partial file", "record", "both"])
  func foreignPartialFile(seed: UInt64, what: String) throws {
    try #require(Host.isRoot, "needs root, to give files to another user")
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    var random = SeededGenerator(seed: seed &* 86)
    let download = try PartialDownload(origin, sandbox, using: &random)
    for path in [download.part, download.record] {
      if what == "record", path == download.part { continue }
      if what == "partial file", path == download.record { continue }
      #expect(chown(path, 65534, 65534) == 0)
    }
    try download.expectCompletion(keeping: 0)
    #expect(try origin.requests().bodyByteCount >= download.file.byteCount)
    #expect(try output(of: ["stat", "-c", "%u %h", download.path]) == "\(geteuid()) 1\n")
  }

  @Test(
    "86 session of another user, or one that others may write: refused",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func foreignSession(seed: UInt64) throws {
    try #require(Host.isRoot, "needs root, to give a file to another user")
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    let url = origin.url("a.bin", length: 1000, seed: seed)
    let session = try work.sandbox.write(
      "# A session of httpfs get\n\(url)\n  out=a.bin\n", to: "work/todo")
    #expect(chmod(session, 0o666) == 0)
    let writable = try work.get("--session", "todo")
    #expect(writable.ending == .exited(1))
    #expect(writable.error.contains("may be changed by other users"), "\(writable.error)")
    #expect(chmod(session, 0o600) == 0 && chown(session, 65534, 65534) == 0)
    let foreign = try work.get("--session", "todo")
    #expect(foreign.ending == .exited(1))
    #expect(foreign.error.contains("belongs to another user"), "\(foreign.error)")
    #expect(try origin.requests().isEmpty)
    // A file that only looks like an unfinished one is not removed.
    try work.sandbox.write("precious", to: "work/todo.tmp")
    #expect(chown(session, geteuid(), getegid()) == 0)
    #expect(try work.get("--session", "todo").succeeded)
    #expect(try work.text("todo.tmp") == "precious")
    #expect(work.names == ["a.bin", "todo.tmp"])
  }

  @Test(
    "86 link of another user in a directory that all may write: not followed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func foreignLink(seed: UInt64) throws {
    try #require(Host.isRoot, "needs root, to become another user")
    let work = try TransferWorkspace()
    let origin = try OriginServer()
    let url = origin.url("a.bin", length: 1000, seed: seed)
    let shared = try work.sandbox.makeDirectory("work/shared")
    #expect(chmod(shared, 0o1777) == 0)
    try work.sandbox.write("precious", to: "work/target")
    for (owner, code) in [(uid_t(65534), CInt(9)), (geteuid(), 0)] {
      let link = "\(shared)/link"
      #expect(symlink("../target", link) == 0)
      #expect(lchown(link, owner, owner) == 0)
      let result = try work.get("--overwrite", "-o", "shared/link", url)
      #expect(result.ending == .exited(code), "\(result.error)")
      if code == 9 { #expect(try work.text("target") == "precious") }
      #expect(unlink(link) == 0)
    }
    #expect(FileStatus.byteCount(of: work.path("target")) == 1000)
  }
}
