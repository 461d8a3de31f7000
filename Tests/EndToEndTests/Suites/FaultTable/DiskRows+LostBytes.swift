import Foundation
import Glibc
import Testing

/// Row 48: bytes that are stored again after the disk has lost them, as the disk has them.
extension RealMounts.DiskRows {
  @Test(
    "48 what a sync has lost is stored anew by the next mount",
    .timeLimit(.minutes(1)))
  func storedAfterFailedSync() throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let disk = try ThinDisk(in: sandbox)
    defer { disk.unmount() }
    let file = RemoteTestFile(name: "f.bin", seed: 483, byteCount: 24 << 20)
    // Slow enough that not all bytes have arrived when the disk is full.
    try origin.control("*", ["total-rate": "4m"])
    let cache = "\(disk.path)/cache"
    let first = try Self.mount([file], origin, sandbox, cache: cache)
    let held = try HeldFile(first.path(file.name))
    _ = try held.read(at: 0, 1 << 20)
    let record = try #require(FileStatus.files(beginning: "record", below: cache).first)
    let isCommitted = Deadline(after: .seconds(20)).wait {
      ((try? CacheRecord(path: record).committedByteCount) ?? 0) > 0
    }
    #expect(isCommitted)
    try disk.fillBehind()
    _ = try held.read(at: 16 << 20, 1 << 20)
    let hasFailed = try Deadline(after: .seconds(20)).wait {
      try first.status().files.first?.lastError != nil
    }
    #expect(hasFailed)
    held.close()
    try first.unmount()
    try disk.emptyBehind()
    try origin.clearControl()

    let second = try Self.mount([file], origin, sandbox, cache: cache)
    try Self.expectRightFromDisk(file, on: second, cache: cache)
  }

  @Test(
    "48 bytes that are right in a large folio alone are not believed by the next mount",
    .timeLimit(.minutes(1)))
  func lostInLargeFolio() throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let disk = try ThinDisk(in: sandbox)
    defer { disk.unmount() }
    // Fills all places for which space is reserved.
    try Data(count: 14 << 20).write(to: URL(filePath: "\(disk.path)/pad"))
    let file = RemoteTestFile(name: "f.bin", seed: 485, byteCount: 24 << 20)
    let cache = "\(disk.path)/cache"
    let first = try Self.mount([file], origin, sandbox, cache: cache)
    let begin = try HeldFile(first.path(file.name))
    // The end is present, so the kernel reads ahead over the hole.
    _ = try begin.read(at: file.byteCount - (64 << 10), 64 << 10)
    _ = try begin.read(at: 0, 256 << 10)
    begin.close()
    try first.unmount()
    Self.forgetPages(below: cache)
    let record = try #require(FileStatus.files(beginning: "record", below: cache).first)
    let data = try #require(FileStatus.files(beginning: "data-", below: cache).first)
    let kept = try CacheRecord(path: record).committedByteCount
    try #require(kept >= 320 << 10 && kept < 4 << 20, "\(kept)")

    try origin.control("*", ["total-rate": "1m"])
    let second = try Self.mount([file], origin, sandbox, cache: cache)
    let held = try HeldFile(second.path(file.name))
    // Its first write frees blocks, with their pages.
    _ = try held.read(at: 8 << 20, 16 << 10)
    try disk.fillBehind()
    var offset: Int64 = 0
    let end = Deadline(after: .milliseconds(1200))
    while offset < 4 << 20, !end.hasPassed {
      _ = try held.read(at: offset, 16 << 10)
      offset += 16 << 10
    }
    // In this case another program learns of the failure first.
    _ = try run(["sync", "--data", data], within: .seconds(20))
    held.close()
    try second.crash()
    try disk.emptyBehind()
    try origin.clearControl()

    let third = try Self.mount([file], origin, sandbox, cache: cache)
    try Self.expectRightFromDisk(file, on: third, cache: cache)
  }

  @Test(
    "48 a download goes on after a failed sync: what was lost is fetched again",
    .timeLimit(.minutes(1)))
  func downloadAfterFailedSync() throws {
    try Self.downloadLosingBytes(isKilled: false)
  }

  @Test(
    "48 a download is killed, and the disk has lost bytes: they are fetched again",
    .timeLimit(.minutes(1)))
  func killedDownloadAfterFailedSync() throws {
    try Self.downloadLosingBytes(isKilled: true)
  }

  private static func downloadLosingBytes(isKilled: Bool) throws {
    // These are not arguments of the test, because scripts/torture faults would count them as
    // seeds.
    for blockByteCount in [1024, 4096] {
      try downloadLosingBytes(isKilled: isKilled, blockByteCount: blockByteCount)
    }
  }

  private static func downloadLosingBytes(isKilled: Bool, blockByteCount: Int) throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let disk = try ThinDisk(in: sandbox, blockByteCount: blockByteCount)
    defer { disk.unmount() }
    let file = RemoteTestFile(name: "f.bin", seed: 484, byteCount: 40 << 20)
    try origin.control("*", ["total-rate": "2m"])
    let path = "\(disk.path)/\(file.name)"
    let command = [try Products.httpfs, "get", file.url(origin), "-o", path]
    let first = try ChildProcess(command)
    let part = path + ".httpfs-part"
    let hasBegun = Deadline(after: .seconds(10)).wait {
      ((try? CacheRecord(path: part + ".record").byteCount) ?? 0) > 1 << 20
    }
    #expect(hasBegun)
    // A reader makes the kernel create large folios for the bytes that are still to arrive.
    #expect(try run(["cat", part], within: .seconds(10)).succeeded)
    if isKilled {
      // The next sync is due two seconds later: the bytes until then are on no disk.
      func committedByteCount() -> Int64 {
        (try? CacheRecord(path: part + ".record").committedByteCount) ?? 0
      }
      let before = committedByteCount()
      #expect(Deadline(after: .seconds(10)).wait { committedByteCount() != before })
      pause(for: .milliseconds(500))
      // The process must not notice the loss itself.
      first.signal(SIGSTOP)
    }
    try disk.fillBehind()
    if isKilled {
      #expect(try !run(["sync", "--data", part], within: .seconds(20)).succeeded)
      first.kill()
      #expect(first.wait(within: .seconds(10)) == .signalled(SIGKILL))
    } else {
      #expect(first.wait(within: .seconds(30)) == .exited(9))
    }
    try disk.emptyBehind()
    try origin.clearControl()
    let second = try run(command, within: .seconds(40))
    #expect(second.succeeded, "\(second.error)")
    Self.forgetPages(below: disk.path)
    #expect(try Self.digest(ofFile: path) == file.digest, "blocks of \(blockByteCount)")
  }

  @Test(
    "48 the sync of a record fails: a copy takes its place, and it is not synced again",
    .timeLimit(.minutes(1)))
  func failedSyncOfRecord() throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let file = RemoteTestFile(name: "f.bin", seed: 486, byteCount: 1 << 20)
    let (mount, failing, path) = try Self.mountFailingSyncOfRecord(file, origin, sandbox)
    let old = try #require(FileStatus.inode(of: path))
    let isCopied = Deadline(after: .seconds(20)).wait { FileStatus.inode(of: path) != old }
    #expect(isCopied)
    try mount.unmount()
    let calls = try failing.calls()
    let failed = try #require(calls.firstIndex { $0.outcome == .failed(EIO) })
    let next = calls[(failed + 1)...].first {
      $0.name.hasSuffix("sync") && $0.fileName.hasPrefix("record")
    }
    // The sync of the copy, before the copy gets the name.
    #expect(next?.name == "fsync", "\(String(describing: next))")
    let records = try Self.records(failing.directory)
    #expect(records.map(\.committedByteCount) == [file.byteCount])
  }

  @Test(
    "48 a record is lost after its sync has failed: the same mount fetches what it claimed again",
    .timeLimit(.minutes(1)))
  func lostRecord() throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let file = RemoteTestFile(name: "f.bin", seed: 487, byteCount: 1 << 20)
    let (mount, failing, path) = try Self.mountFailingSyncOfRecord(file, origin, sandbox)
    let byteCount = try #require(FileStatus.byteCount(of: path))
    let record = try FileHandle(forUpdating: URL(filePath: path))
    try record.write(contentsOf: Data(count: Int(byteCount)))
    try record.close()
    let isNoticed = try Deadline(after: .seconds(20)).wait {
      try mount.status().files.first?.cachedByteCount == 0
    }
    #expect(isNoticed)
    // Past the kernel's pages, which are right. At first, nothing is stored on a disk that has just
    // failed.
    let isStored = try Deadline(after: .seconds(20)).wait(every: .milliseconds(500)) {
      #expect(try Self.directDigest(file, on: mount) == file.digest)
      return try mount.status().files.first?.cachedByteCount == file.byteCount
    }
    #expect(isStored)
    try Self.expectRightFromDisk(file, on: mount, cache: failing.directory)
    try origin.clearLog()
    let second = try Self.mount([file], origin, sandbox, cache: failing.directory)
    try Self.expectRight(file, on: second)
    try second.unmount()
    #expect(try origin.requests().bodyByteCount == 0)
  }

  // MARK: What they share

  /// Mounts `file` and reads it, and waits until the first sync of its record has failed.
  ///
  /// - Returns: the mount, its calls, and the record's path.
  private static func mountFailingSyncOfRecord(
    _ file: RemoteTestFile, _ origin: OriginServer, _ sandbox: Sandbox
  ) throws -> (Mount, FailingCalls, record: String) {
    let failing = try FailingCalls(below: sandbox.path("cache"), in: sandbox)
    try failing.fail(FailingCalls.Plan(calls: "fdatasync", filePrefix: "record", errno: EIO))
    let mount = try sandbox.mount(urls: [file.url(origin)], options: options, failing: failing)
    try expectRight(file, on: mount)
    let hasFailed = try Deadline(after: .seconds(20)).wait(every: .milliseconds(10)) {
      try failing.calls().contains { $0.outcome == .failed(EIO) }
    }
    #expect(hasFailed)
    let record = FileStatus.files(beginning: "record", below: failing.directory).first
    return (mount, failing, try #require(record))
  }

  /// Reads the mount's only file, then again from the disk, and unmounts.
  ///
  /// The second read begins once all of it is committed and the kernel has dropped its pages.
  static func expectRightFromDisk(
    _ file: RemoteTestFile, on mount: Mount, cache: String
  ) throws {
    try expectRight(file, on: mount)
    let isWhole = Deadline(after: .seconds(20)).wait {
      FileStatus.files(beginning: "record", below: cache).contains {
        (try? CacheRecord(path: $0).committedByteCount) == file.byteCount
      }
    }
    #expect(isWhole)
    forgetPages(below: cache)
    #expect(try directDigest(file, on: mount) == file.digest)
    #expect(try mount.status().files.first?.damagedByteCount == 0)
    try mount.unmount()
  }

  /// The hash of a file in httpfs, regardless of the kernel's pages.
  static func directDigest(_ file: RemoteTestFile, on mount: Mount) throws -> String {
    let words = [
      "bash", "-c", "dd if=\"$1\" bs=1M iflag=direct status=none | sha256sum", "bash",
      mount.path(file.name),
    ]
    return String(try output(of: mount.enter + words).prefix(64))
  }

  /// Makes the kernel drop the pages of all files below `directory`, so later reads come from the
  /// disk.
  static func forgetPages(below directory: String) {
    for path in FileStatus.files(beginning: "", below: directory) {
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      // Twice: dirty pages are written first.
      for _ in 0..<2 {
        _ = fdatasync(descriptor)
        #expect(posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0)
      }
      close(descriptor)
    }
  }
}
