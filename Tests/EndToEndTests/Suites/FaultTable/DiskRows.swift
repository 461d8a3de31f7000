import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 45 to 48: the disk of the cache is full, broken, or read-only.
extension RealMounts {
  @Suite struct DiskRows {
    /// The deadline of every read here, in seconds; a reader gets 5 s more.
    static let readTimeout = 10
    static let options = ["--read-timeout", "\(readTimeout)"]
    static let readLimit = Duration.seconds(readTimeout + 5)
    /// The bytes that may be fetched although they were present: a first range, the last block.
    static let slack: Int64 = 64 << 10

    // MARK: 45

    @Test(
      "45 no space in the cache: what nobody reads is evicted, and the rest cached",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func noSpaceEvicts(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 45)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try sandbox.tinyDisk(byteCount: 20 << 20)
      let files = RemoteTestFile.random(
        4, lengths: (6 << 20)...(8 << 20), using: &random)
      let mount = try Self.mount(files, origin, sandbox, cache: "\(disk.path)/cache")
      for file in files { try Self.expectRight(file, on: mount) }
      let last = files[files.count - 1]
      let cached = try mount.status().files.map(\.cachedByteCount)
      #expect(cached.last == last.byteCount, "\(files.map(\.byteCount)) of which \(cached)")
      #expect(cached.contains(0), "\(cached)")
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "45 no space in the cache: a file larger than the disk is read without caching",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func noSpaceServes(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 45)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try sandbox.tinyDisk(byteCount: 8 << 20)
      let small = RemoteTestFile(
        name: "small.bin", seed: seed, byteCount: Int64.random(in: 1...(1 << 20), using: &random))
      let large = RemoteTestFile(
        name: "large.bin", seed: seed + 1,
        byteCount: Int64.random(in: (16 << 20)...(24 << 20), using: &random))
      let mount = try Self.mount([small, large], origin, sandbox, cache: "\(disk.path)/cache")
      try Self.expectRight(small, on: mount)
      // The file is open, so it must not be evicted.
      let held = try HeldFile(mount.path(small.name))
      try Self.expectRight(large, on: mount)
      // Once more: bytes that do not fit are fetched again, and must be right, too.
      try Self.expectRight(large, on: mount)
      #expect(try mount.cacheFailure()?.isEmpty == false)
      #expect(try mount.status(of: small.name).cachedByteCount == small.byteCount)
      let reading = try held.read(at: 0, Int(small.byteCount), within: Self.readLimit)
      #expect(reading == .bytes(count: Int(small.byteCount), sha256: small.digest))
      #expect(try origin.bodyByteCount(of: small) == small.byteCount)
      held.close()
      #expect(try mount.unmount() == .exited(0))
    }

    @Test(
      "45 no space in the cache: a download ends in words, and goes on when there is space",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func noSpaceForDownload(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 45)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try sandbox.tinyDisk(byteCount: 16 << 20)
      let file = RemoteTestFile.random(1, lengths: (11 << 20)...(12 << 20), using: &random)[0]
      let path = "\(disk.path)/\(file.name)"
      let command = [try Products.httpfs, "get", file.url(origin), "-o", path]
      try origin.control("*", ["total-rate": "12m"])
      let first = try sandbox.start(command)
      let part = path + ".httpfs-part"
      let begun = Deadline(after: .seconds(10)).wait { FileStatus.byteCount(of: part) ?? 0 > 0 }
      #expect(begun)
      // Another program takes the space that was free at the beginning.
      let filler = "\(disk.path)/filler"
      _ = try run(["head", "-c", "20M", "/dev/zero"].filling(filler))
      #expect(first.wait(within: .seconds(20)) == .exited(9))
      #expect(first.standardError.contains("No space left on device"), "\(first.standardError)")
      #expect(FileStatus.byteCount(of: path) == nil)
      let kept = (try? CacheRecord(path: part + ".record"))?.byteCount ?? 0
      unlink(filler)
      try origin.clearControl()
      try origin.clearLog()
      let second = try run(command, within: .seconds(20))
      #expect(second.succeeded, "\(second.error)")
      #expect(try Self.digest(ofFile: path) == file.digest)
      #expect(try origin.requests().bodyByteCount <= file.byteCount - kept + Self.slack)
    }

    // MARK: 46

    @Test(
      "46 quota or file size exceeded: the mount reads on without caching, and says so",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func quota(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 46)
      for number in [EDQUOT, EFBIG] {
        let sandbox = try Sandbox()
        let origin = try OriginServer()
        let files = RemoteTestFile.random(2, lengths: (2 << 20)...(5 << 20), using: &random)
        let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
        let mount = try sandbox.mount(
          urls: files.map { $0.url(origin) }, options: Self.options, failing: failing)
        try Self.expectRight(files[0], on: mount)
        #expect(try mount.cacheFailure() == nil)
        // The file is open, so it must not be evicted.
        let held = try HeldFile(mount.path(files[0].name))
        try failing.fail(
          FailingCalls.Plan(
            calls: "pwrite", filePrefix: "data-", first: Int.random(in: 1...4, using: &random),
            count: nil, errno: number))
        try Self.expectRight(files[1], on: mount)
        if number == EFBIG {
          // The failure concerns only that file.
          #expect(try mount.cacheFailure() == nil)
          #expect(try mount.status(of: files[1].name).lastError?.contains("too large") == true)
        } else {
          #expect(try mount.cacheFailure()?.isEmpty == false)
        }
        #expect(try mount.status(of: files[0].name).cachedByteCount == files[0].byteCount)
        held.close()
        #expect(try mount.unmount() == .exited(0))
        try origin.clearLog()
        let second = try Self.mount(files, origin, sandbox, cache: failing.directory)
        for file in files { try Self.expectRight(file, on: second) }
        #expect(try second.cacheFailure() == nil)
        #expect(try origin.bodyByteCount(of: files[0]) <= Self.slack)
        #expect(try second.status(of: files[1].name).cachedByteCount == files[1].byteCount)
        #expect(try second.unmount() == .exited(0))
      }
    }

    @Test(
      "46 quota or file size exceeded: a download ends in words, and goes on later",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func quotaOfDownload(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 46)
      for number in [EDQUOT, EFBIG] {
        try Self.interruptDownload(
          .init(
            calls: "pwrite", first: Int.random(in: 3...8, using: &random), count: nil,
            errno: number), seed: seed)
      }
    }

    /// Makes `get` fail as `plan` specifies, then resumes without failures.
    private static func interruptDownload(_ plan: FailingCalls.Plan, seed: UInt64) throws {
      var random = SeededGenerator(seed: seed)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile.random(1, lengths: (6 << 20)...(9 << 20), using: &random)[0]
      let directory = try sandbox.makeDirectory("get")
      let path = "\(directory)/\(file.name)"
      let command = [try Products.httpfs, "get", file.url(origin), "-o", path]
      let failing = try FailingCalls(below: directory, in: sandbox)
      try failing.fail(plan)
      let first = try run(try failing.launcher + command, within: .seconds(20))
      #expect(first.ending == .exited(9))
      #expect(first.error.contains(String(cString: strerror(plan.errno))), "\(first.error)")
      #expect(FileStatus.byteCount(of: path) == nil)
      let kept = (try? CacheRecord(path: path + ".httpfs-part.record"))?.byteCount ?? 0
      try origin.clearLog()
      let second = try run(command, within: .seconds(20))
      #expect(second.succeeded, "\(second.error)")
      #expect(try digest(ofFile: path) == file.digest)
      #expect(try origin.requests().bodyByteCount <= file.byteCount - kept + slack)
    }

    // MARK: 47

    @Test(
      "47 cache read-only from the start: cached bytes are read, others without caching",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func readOnly(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 47)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try Self.loopDisk(sandbox)
      defer { disk.unmount() }
      let files = RemoteTestFile.random(2, lengths: 1...(4 << 20), using: &random)
      let cache = "\(disk.path)/cache"
      let first = try Self.mount(files, origin, sandbox, cache: cache)
      try Self.expectRight(files[0], on: first)
      #expect(try first.unmount() == .exited(0))
      try disk.remountReadOnly()
      try origin.clearLog()
      let second = try Self.mount(files, origin, sandbox, cache: cache)
      for file in files { try Self.expectRight(file, on: second) }
      #expect(try second.cacheFailure()?.isEmpty == false)
      #expect(try origin.bodyByteCount(of: files[0]) <= Self.slack)
      #expect(try second.unmount() == .exited(0))
    }

    /// A failure of a disk in use.
    enum Break: String, CaseIterable {
      /// ext4 detects damage: writes fail with `EROFS`, reads do not.
      case turnsReadOnly
      /// The disk is gone: every call fails with `EIO`.
      case breaks
    }

    @Test(
      "47 cache turns read-only or breaks in use: every byte can be read, and the status says so",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func breaksInUse(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 47)
      for way in Break.allCases {
        let sandbox = try Sandbox()
        let origin = try OriginServer()
        let disk = try Self.loopDisk(sandbox)
        defer { disk.unmount() }
        let files = RemoteTestFile.random(3, lengths: (1 << 20)...(5 << 20), using: &random)
        let mount = try Self.mount(files, origin, sandbox, cache: "\(disk.path)/cache")
        try Self.expectRight(files[0], on: mount)
        let held = try HeldFile(mount.path(files[1].name))
        _ = try held.read(at: 0, Int.random(in: 1...500_000, using: &random))
        switch way {
        case .turnsReadOnly: try disk.abort()
        case .breaks: try disk.cutPower()
        }
        for file in files { try Self.expectRight(file, on: mount, "\(way)") }
        #expect(try mount.cacheFailure()?.isEmpty == false, "\(way)")
        held.close()
        #expect(try mount.unmount() == .exited(0), "\(way)")
        try disk.reboot()
        let again = try Self.mount(files, origin, sandbox, cache: "\(disk.path)/cache")
        for file in files { try Self.expectRight(file, on: again, "\(way), later") }
        #expect(try again.cacheFailure() == nil)
        #expect(try again.unmount() == .exited(0))
      }
    }

    @Test(
      "47 cache cannot be read: cached bytes are fetched again, and the status says so",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func unreadable(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 47)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let files = RemoteTestFile.random(2, lengths: (1 << 20)...(5 << 20), using: &random)
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let first = try Self.mount(files, origin, sandbox, cache: failing.directory)
      for file in files { try Self.expectRight(file, on: first) }
      try first.unmount()
      // Otherwise the files are known to be unchanged, and the kernel reads them directly.
      try shell("find \(quoted(failing.directory)) -name 'data-*' -exec touch {} +")
      try failing.fail(
        FailingCalls.Plan(
          calls: "pread,splice", filePrefix: "data-", first: Int.random(in: 1...3, using: &random),
          count: nil, errno: EIO))
      let second = try sandbox.mount(
        urls: files.map { $0.url(origin) }, options: Self.options, failing: failing)
      for file in files { try Self.expectRight(file, on: second) }
      #expect(try second.cacheFailure()?.isEmpty == false)
      #expect(try second.unmount() == .exited(0))
      failing.pass()
      let third = try Self.mount(files, origin, sandbox, cache: failing.directory)
      for file in files { try Self.expectRight(file, on: third) }
      try third.unmount()
    }

    @Test(
      "47 destination read-only: a download is refused before anything is fetched",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func readOnlyDestination(seed: UInt64) throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try Self.loopDisk(sandbox)
      defer { disk.unmount() }
      try disk.remountReadOnly()
      let result = try run(
        [
          try Products.httpfs, "get", origin.url("a.bin", length: 1 << 20, seed: seed), "-o",
          "\(disk.path)/a.bin",
        ], within: .seconds(10))
      #expect(result.ending == .exited(9))
      #expect(result.error.contains("Read-only file system"), "\(result.error)")
      #expect(try origin.requests().isEmpty)
    }

    @Test(
      "45 ENOSPC for the lock file: the mount begins, since the lock holds without what it says",
      .timeLimit(.minutes(1)))
    func fullLockFile() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "f.bin", seed: 451, byteCount: 1 << 20)
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      try failing.fail(
        FailingCalls.Plan(calls: "pwrite,ftruncate", filePrefix: "lock", count: nil, errno: ENOSPC))
      let mount = try sandbox.mount(
        urls: [file.url(origin)], options: Self.options, failing: failing)
      try Self.expectRight(file, on: mount)
      #expect(try mount.unmount() == .exited(0))
    }

    // MARK: 48

    @Test(
      "48 fsync fails: what was uncommitted is dropped, and the same file never synced again",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func failedSync(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 48)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // A checkpoint is due after 64 MiB, which take less than 2 s.
      let file = RemoteTestFile.random(1, lengths: (70 << 20)...(90 << 20), using: &random)[0]
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      let first = try Self.mount([file], origin, sandbox, cache: failing.directory)
      let held = try HeldFile(first.path(file.name))
      _ = try held.read(at: 0, Int.random(in: (1 << 20)...(4 << 20), using: &random))
      held.close()
      try first.unmount()
      let committed = try Self.records(failing.directory).reduce(0) { $0 + $1.committedByteCount }
      #expect(committed > 0)

      try failing.fail(
        FailingCalls.Plan(calls: "fsync,fdatasync", filePrefix: "data-", errno: EIO, effect: .torn))
      let second = try sandbox.mount(
        urls: [file.url(origin)], options: Self.options, failing: failing)
      try Self.expectRight(file, on: second)
      #expect(try second.unmount() == .exited(0))
      let calls = try failing.calls()
      let failed = try #require(
        calls.firstIndex { $0.name == "fdatasync" && $0.outcome == .failed(EIO) })
      #expect(
        !calls[(failed + 1)...].contains {
          $0.name.hasSuffix("sync") && $0.path == calls[failed].path
        })
      let kept = try Self.records(failing.directory).reduce(0) { $0 + $1.committedByteCount }
      // The record of the failed file must not claim bytes without a COMMIT.
      let failedName = calls[failed].fileName
      for path in FileStatus.files(named: "record", below: failing.directory) {
        let directory = (path as NSString).deletingLastPathComponent
        guard FileStatus.byteCount(of: "\(directory)/\(failedName)") != nil else { continue }
        let record = try CacheRecord(path: path)
        #expect(record.byteCount == record.committedByteCount, "uncommitted extents are claimed")
      }

      let third = try Self.mount([file], origin, sandbox, cache: failing.directory)
      try Self.expectRight(file, on: third)
      // Do not use the server's count: it includes the bytes that a cut-off request has left in
      // sockets.
      let fetched = try third.status().files.reduce(0) { $0 + $1.fetchedByteCount }
      #expect(try third.unmount() == .exited(0))
      #expect(kept >= committed)
      #expect(fetched <= file.byteCount - kept + Self.slack)
    }

    @Test(
      "48 fsync fails, of the record too: what was uncommitted is claimed by nothing",
      .timeLimit(.minutes(1)))
    func failedSyncOfAll() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile(name: "f.bin", seed: 481, byteCount: 32 << 20)
      let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
      // Slow enough that the read-ahead leaves bytes for the second mount.
      try origin.control("*", ["total-rate": "4m"])
      let first = try Self.mount([file], origin, sandbox, cache: failing.directory)
      let held = try HeldFile(first.path(file.name))
      _ = try held.read(at: 0, 1 << 20)
      held.close()
      try first.unmount()
      let committed = try Self.records(failing.directory).reduce(0) { $0 + $1.committedByteCount }
      try #require(committed > 0 && committed < file.byteCount / 2)
      try origin.clearControl()

      try failing.fail(FailingCalls.Plan(calls: "fsync,fdatasync", count: nil, errno: EIO))
      let second = try sandbox.mount(
        urls: [file.url(origin)], options: Self.options, failing: failing)
      try Self.expectRight(file, on: second)
      // The sync of the data, and then that of the record without the lost bytes.
      let hasFailed = try Deadline(after: .seconds(30)).wait {
        try failing.calls().contains { $0.name == "fsync" && $0.fileName.hasPrefix("record-") }
      }
      #expect(hasFailed)
      try second.unmount()
      for record in try Self.records(failing.directory) {
        #expect(record.byteCount == record.committedByteCount, "uncommitted extents are claimed")
      }
      let kept = try Self.records(failing.directory).reduce(0) { $0 + $1.committedByteCount }
      #expect(kept >= committed)
    }

    @Test(
      "48 the kernel drops pages that it could not write, before any fsync: no zeros are read",
      .timeLimit(.minutes(1)))
    func lostPages() throws {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let disk = try ThinDisk(in: sandbox)
      defer { disk.unmount() }
      let file = RemoteTestFile(name: "f.bin", seed: 482, byteCount: 96 << 20)
      // A complete file is synced at once.
      try origin.control("*", ["total-rate": "40m"])
      let cache = "\(disk.path)/cache"
      let mount = try Self.mount([file], origin, sandbox, cache: cache)
      func digest(_ how: String) throws -> String {
        try output(
          of: mount.enter + [
            "bash", "-c", "dd if=\"$1\" bs=1M count=16 \(how) status=none | sha256sum", "bash",
            mount.path(file.name),
          ])
      }
      let held = try HeldFile(mount.path(file.name))
      try disk.fillBehind()
      let right = try digest("")
      // Twice: the dirty pages are first written, which fails, and then dropped. A sync would
      // report the failure to the mount.
      let data = FileStatus.files(beginning: "data-", below: cache)
      #expect(!data.isEmpty)
      for _ in 0..<2 {
        for path in data {
          let descriptor = open(path, O_RDONLY | O_CLOEXEC)
          #expect(posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0)
          close(descriptor)
        }
        pause(for: .milliseconds(100))
      }
      // Before the next checkpoint is due, and without the pages of the first read.
      #expect(try digest("iflag=direct") == right)
      try disk.emptyBehind()
      try origin.clearControl()
      held.close()
      try Self.expectRight(file, on: mount)
      try mount.unmount()
    }

    @Test(
      "48 fsync fails: a download says so and does not believe what was not committed",
      .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
    func failedSyncOfDownload(seed: UInt64) throws {
      var random = SeededGenerator(seed: seed &* 100 &+ 48)
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      // A COMMIT is due after 16 MiB.
      let file = RemoteTestFile.random(1, lengths: (40 << 20)...(60 << 20), using: &random)[0]
      let directory = try sandbox.makeDirectory("get")
      let path = "\(directory)/\(file.name)"
      let command = [try Products.httpfs, "get", file.url(origin), "-o", path]
      // Slow enough that the second COMMIT precedes the last byte.
      try origin.control("*", ["total-rate": "40m"])
      let failing = try FailingCalls(below: directory, in: sandbox)
      // The syncs of the data: the second sync is of the record, and may fail. The directory is
      // synced when the file is complete and has its name, so that sync is not counted.
      try failing.fail(
        FailingCalls.Plan(
          calls: "fsync,fdatasync", filePrefix: file.name + ".httpfs-part",
          first: Bool.random(using: &random) ? 1 : 3, errno: EIO, effect: .torn))
      let first = try run(try failing.launcher + command, within: .seconds(20))
      #expect(first.ending == .exited(9))
      #expect(first.error.contains("Input/output error"), "\(first.error)")
      #expect(FileStatus.byteCount(of: path) == nil)
      let record = try? CacheRecord(path: path + ".httpfs-part.record")
      #expect(
        record?.byteCount ?? 0 == record?.committedByteCount ?? 0,
        "the next run would believe bytes that may never have reached the disk")
      try origin.clearControl()
      let second = try run(command, within: .seconds(20))
      #expect(second.succeeded, "\(second.error)")
      #expect(try Self.digest(ofFile: path) == file.digest)
    }

    // MARK: What the rows share

    static func mount(
      _ files: [RemoteTestFile], _ origin: OriginServer, _ sandbox: Sandbox, cache: String,
      options: [String] = options
    ) throws -> Mount {
      let name = "mnt-\(UUID().uuidString)"
      let lines = files.map { $0.url(origin) }.joined(separator: "\n")
      let list = try sandbox.write(lines + "\n", to: "\(name).txt")
      return sandbox.adopt(
        try Mount(
          source: list, mountpoint: try sandbox.makeDirectory(name), cacheDirectory: cache,
          options: options))
    }

    /// Reads a whole file, which must be right and in time, with a living daemon.
    static func expectRight(
      _ file: RemoteTestFile, on mount: Mount, _ comment: String = "",
      sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      let result = try run(
        mount.enter + DigestCommand.words(mount.path(file.name)), within: readLimit)
      let comment = Comment(rawValue: "\(file.name) \(comment): \(result.error)")
      #expect(result.succeeded, comment, sourceLocation: sourceLocation)
      if result.succeeded {
        #expect(result.output.prefix(64) == file.digest, comment, sourceLocation: sourceLocation)
      }
      try #require(mount.process.isRunning, "httpfs has died", sourceLocation: sourceLocation)
    }

    static func records(_ cache: String) throws -> [CacheRecord] {
      try FileStatus.files(named: "record", below: cache).map { try CacheRecord(path: $0) }
    }

    static func digest(ofFile path: String) throws -> String {
      try String(output(of: DigestCommand.words(path)).prefix(64))
    }

    static func loopDisk(_ sandbox: Sandbox) throws -> LoopDisk {
      let name = "disk-\(UUID().uuidString)"
      return try LoopDisk(
        at: try sandbox.makeDirectory(name), image: sandbox.path("\(name).img"),
        byteCount: 256 << 20)
    }
  }
}

extension [String] {
  /// The command with its output to a file; any result is accepted.
  fileprivate func filling(_ path: String) -> [String] {
    ["bash", "-c", "\(map(quoted).joined(separator: " ")) > \(quoted(path)); true"]
  }
}
