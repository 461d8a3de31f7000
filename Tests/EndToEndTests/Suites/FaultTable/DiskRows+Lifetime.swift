import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 54 to 58: who may use a cache, and what a daemon leaves at its end.
extension RealMounts.DiskRows {
  // MARK: 54

  @Test(
    "54 two mounts of one cache: the second refuses and names the first one's process",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func twoMounts(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 54)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let file = RemoteTestFile.random(1, lengths: 1...(4 << 20), using: &random)[0]
    let cache = sandbox.path("cache")
    let first = try Self.mount([file], origin, sandbox, cache: cache)
    let held = try HeldFile(first.path(file.name))
    #expect {
      _ = try Self.mount([file], origin, sandbox, cache: cache)
    } throws: { error in
      "\(error)".contains("not mounted (exited(1))")
        && "\(error)".contains("in use by process \(first.process.processID)")
    }
    try Self.expectRight(file, on: first)
    held.close()
    try first.crash()
    // A process that died leaves no lock.
    let third = try Self.mount([file], origin, sandbox, cache: cache)
    try Self.expectRight(file, on: third)
    #expect(try third.unmount() == .exited(0))
  }

  @Test(
    "54 two downloads to one file: the second fails in words, the first is whole",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func twoDownloads(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 54)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let file = RemoteTestFile.random(1, lengths: (6 << 20)...(8 << 20), using: &random)[0]
    let path = "\(try sandbox.makeDirectory("get"))/\(file.name)"
    let command = [
      try Products.httpfs, "get", file.url(origin, query: "total-rate=12m"), "-o", path,
    ]
    let first = try sandbox.start(command)
    let begun = Deadline(after: .seconds(10)).wait {
      FileStatus.byteCount(of: path + ".httpfs-part") ?? 0 > 0
    }
    #expect(begun)
    let second = try run(command, within: .seconds(10))
    #expect(second.ending == .exited(9))
    #expect(second.error.contains("is being written by another transfer"), "\(second.error)")
    #expect(first.wait(within: .seconds(20)) == .exited(0), "\(first.standardError)")
    #expect(try Self.digest(ofFile: path) == file.digest)
  }

  // MARK: 55

  @Test(
    "55 kill -9 of a mount: its successor fetches at most 16 MiB again, and no byte is wrong",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func killedMount(seed: UInt64) throws {
    let round = try KillRound(
      seed: seed &* 100 &+ 55, .muchToLose, in: try Sandbox(), try OriginServer())
    #expect(round.violations.isEmpty)
    #expect(round.readCount > 0)
    #expect(
      round.repeatedByteCount <= 16 << 20, "of \(mebibytes(round.cachedByteCount)) MiB")
  }

  @Test(
    "55 kill -9 of a download: the next one fetches at most 16 MiB again, and no byte is wrong",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func killedDownload(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 55)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let file = RemoteTestFile.random(1, lengths: (88 << 20)...(96 << 20), using: &random)[0]
    let path = "\(try sandbox.makeDirectory("get"))/\(file.name)"
    try origin.control("*", ["total-rate": "64m"])
    let command = [try Products.httpfs, "get", file.url(origin), "-o", path]
    let first = try sandbox.start(command)
    // Enough is present that its loss would break the bound three times.
    let isFull = Deadline(after: .seconds(10)).wait(every: .milliseconds(10)) {
      (FileStatus.allocatedByteCount(of: path + ".httpfs-part") ?? 0) >= 48 << 20
    }
    #expect(isFull)
    pause(for: .milliseconds(Int.random(in: 0...150, using: &random)))
    #expect(first.isRunning)
    first.kill()
    // The rest needs no rate limit.
    try origin.clearControl()
    let second = try run(command, within: .seconds(20))
    #expect(second.succeeded, "\(second.error)")
    #expect(try Self.digest(ofFile: path) == file.digest)
    #expect(try origin.bodyByteCount(of: file) - file.byteCount <= 16 << 20)
  }

  // MARK: 56

  @Test(
    "56 power loss under a mount: only what was not committed is lost, and no byte is wrong",
    .timeLimit(.minutes(2)), arguments: FaultSeeds.all)
  func powerLoss(seed: UInt64) throws {
    let sandbox = try Sandbox()
    let disk = try LoopDisk(
      at: try sandbox.makeDirectory("disk"), image: sandbox.path("disk.img"), byteCount: 1 << 30)
    defer { disk.unmount() }
    let rounds = try PowerCutRound.whenDue(
      seed: seed &* 100 &+ 56, on: disk, in: sandbox, try OriginServer())
    for round in rounds {
      #expect(round.violations.isEmpty)
      #expect(round.readCount > 0)
      #expect(
        round.overdueByteCount == 0, "lost although recorded \(round.dueAge) before the cut")
      #expect(round.repeatedByteCount <= round.maximumLoss)
    }
    // Otherwise no bytes had to survive.
    #expect(rounds.contains { $0.oldByteCount > 0 })
  }

  @Test(
    "56 power loss under a download: only what was not committed is lost, and no byte is wrong",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func powerLossOfDownload(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 56)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let disk = try Self.loopDisk(sandbox)
    defer { disk.unmount() }
    let file = RemoteTestFile.random(1, lengths: (144 << 20)...(152 << 20), using: &random)[0]
    let path = "\(disk.path)/\(file.name)"
    try origin.control("*", ["total-rate": "\(Self.rateOfPowerLoss)"])
    let command = [try Products.httpfs, "get", file.url(origin), "-o", path]
    let first = try sandbox.start(command)
    // Enough is present that its loss would break the bound, however late the disk is.
    let isFull = Deadline(after: .seconds(20)).wait(every: .milliseconds(10)) {
      (FileStatus.allocatedByteCount(of: path + ".httpfs-part") ?? 0) >= 112 << 20
    }
    #expect(isFull)
    pause(for: .milliseconds(Int.random(in: 0...400, using: &random)))
    #expect(first.isRunning)
    try disk.cutPower()
    first.kill()
    let before = try origin.requests().bodyByteCount
    try disk.reboot()
    try origin.clearControl()
    let second = try run(command, within: .seconds(20))
    #expect(second.succeeded, "\(second.error)")
    #expect(try Self.digest(ofFile: path) == file.digest)
    let lost = try origin.bodyByteCount(of: file) - file.byteCount
    #expect(lost <= 64 << 20, "\(lost) of \(before) bytes")
  }

  @Test(
    "56 a slow disk under a download: a loss of power costs 64 MiB at most",
    .timeLimit(.minutes(1)))
  func slowSyncsOfDownload() throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let directory = try sandbox.makeDirectory("get")
    let file = RemoteTestFile(name: "f.bin", seed: 561, byteCount: 192 << 20)
    let part = "\(directory)/\(file.name).httpfs-part"
    let slow = try FailingCalls(below: directory, in: sandbox)
    // Milliseconds for each sync.
    try slow.fail(
      FailingCalls.Plan(
        calls: "fsync,fdatasync", filePrefix: file.name, count: nil, errno: 800, effect: .slow))
    let download = try sandbox.start(
      try slow.launcher + [
        try Products.httpfs, "get", file.url(origin), "-o", "\(directory)/\(file.name)",
      ])
    var greatest: Int64 = 0
    var looks = 0
    let ended = Deadline(after: .seconds(40)).wait(every: .milliseconds(5)) {
      // Read the record last, so no commit in between makes the difference too large.
      if let stored = FileStatus.allocatedByteCount(of: part) {
        let committed = (try? CacheRecord(path: part + ".record"))?.committedByteCount ?? 0
        greatest = max(greatest, stored - committed)
        looks += 1
      }
      return !download.isRunning
    }
    #expect(ended)
    #expect(download.wait(within: .seconds(1)) == .exited(0), "\(download.standardError)")
    #expect(try Self.digest(ofFile: "\(directory)/\(file.name)") == file.digest)
    // Otherwise nothing had to wait for the disk.
    #expect(greatest > 28 << 20 && looks > 100, "\(greatest) bytes, \(looks) looks")
    #expect(greatest <= 64 << 20, "\(greatest) bytes")
  }

  /// Bytes per second: the download is in flight when the power goes.
  private static let rateOfPowerLoss: Int64 = 32 << 20

  // MARK: 57

  @Test(
    "57 cache directory that is a link, another's or in other use: refused, and left as it is",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func unsafeCache(seed: UInt64) throws {
    guard Host.isRoot else { throw HarnessError("a directory of another user: this needs root") }
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let file = RemoteTestFile(name: "a.bin", seed: seed, byteCount: 1000)
    let target = try sandbox.makeDirectory("target")
    try shell(
      """
      cd \(quoted(sandbox.directory))
      ln -s target link
      mkdir -m 700 foreign shared && chown 65534 foreign
      chmod 755 shared && echo mine > shared/file
      ln -s target link-below && mkdir -m 700 linked && ln -s ../target linked/v1
      : > a-file
      """)
    let cases = [
      ("link", "symbolic link"), ("link/", "symbolic link"), ("foreign", "owned by user 65534"),
      ("shared", "in use for other files"), ("linked", "symbolic link"),
      ("a-file", "not a directory"),
    ]
    for (name, reason) in cases {
      #expect("\(name)") {
        _ = try Self.mount([file], origin, sandbox, cache: sandbox.path(name))
      } throws: { error in
        "\(error)".contains("not mounted (exited(1))") && "\(error)".contains(reason)
      }
    }
    #expect(try FileManager.default.contentsOfDirectory(atPath: target).isEmpty)
    #expect(try output(of: ["stat", "-c", "%a", sandbox.path("shared")]) == "755\n")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: sandbox.path("foreign")).isEmpty)
    #expect(try origin.requests().isEmpty)
  }

  @Test(
    "57 a partial file or a record that is a link: not followed",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func linkedPartialFile(seed: UInt64) throws {
    let origin = try OriginServer()
    for suffix in [".httpfs-part", ".httpfs-part.record"] {
      let sandbox = try Sandbox()
      let victim = try sandbox.write("precious", to: "victim")
      let file = RemoteTestFile(
        name: "a.bin", seed: seed, byteCount: 100_000 + Int64(seed % 1000))
      let path = "\(try sandbox.makeDirectory("get"))/\(file.name)"
      try FileManager.default.createSymbolicLink(
        atPath: path + suffix, withDestinationPath: victim)
      let result = try run(
        [try Products.httpfs, "get", file.url(origin), "-o", path], within: .seconds(20))
      #expect(try String(contentsOfFile: victim, encoding: .utf8) == "precious", "\(suffix)")
      if result.succeeded {
        #expect(try Self.digest(ofFile: path) == file.digest, "\(suffix)")
      } else {
        #expect(result.ending == .exited(1))
        #expect(result.error.contains("httpfs-part"), "\(result.error)")
      }
    }
  }

  // MARK: 58

  @Test(
    "58 world-readable cache: made private, with all that is in it, whatever the umask",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func worldReadable(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 58)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let files = RemoteTestFile.random(2, lengths: 1...(2 << 20), using: &random)
    let cache = sandbox.path("cache")
    let list = try sandbox.write(
      files.map { $0.url(origin) }.joined(separator: "\n") + "\n", to: "list.txt")
    let start = { (name: String) throws -> Mount in
      sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory(name), cacheDirectory: cache,
          options: Self.options,
          // bash becomes the command, so the process is the same.
          launcher: ["bash", "-c", "umask 0; exec \"$@\"", "bash"]))
    }
    let first = try start("mnt1")
    try Self.expectRight(files[0], on: first)
    #expect(try openPaths(below: cache) == "")
    try first.unmount()
    try shell("chmod -R a+rwX \(quoted(cache))")
    #expect(try openPaths(below: cache) != "")
    try origin.clearLog()
    let second = try start("mnt2")
    for file in files { try Self.expectRight(file, on: second) }
    let open = try openPaths(below: cache)
    #expect(open == "")
    #expect(try origin.bodyByteCount(of: files[0]) <= Self.slack)
    #expect(try second.unmount() == .exited(0))
  }

  /// The paths to which users other than the owner have any access.
  private func openPaths(below directory: String) throws -> String {
    try output(of: ["find", directory, "-perm", "/077"])
  }
}
