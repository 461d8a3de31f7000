import Foundation
import Glibc
import SeededRandom
import Testing

/// Rows 49 to 53: cache files and partial files that were changed.
extension RealMounts.DiskRows {
  /// A cache with whole files and without a mount.
  private struct Stored {
    let files: [RemoteTestFile]
    let cache: String
    /// The record of each file, in their order.
    let records: [String]

    init(
      _ files: [RemoteTestFile], _ origin: OriginServer, _ sandbox: Sandbox
    ) throws {
      self.files = files
      cache = sandbox.path("cache")
      let (cache, dummy) = (cache, sandbox)
      // Sequentially, so the owner of each record is known.
      var found: [String] = []
      for file in files {
        let mount = try RealMounts.DiskRows.mount([file], origin, dummy, cache: cache)
        try RealMounts.DiskRows.expectRight(file, on: mount)
        try mount.unmount()
        found += FileStatus.files(named: "record", below: cache).filter { !found.contains($0) }
      }
      records = found
      guard records.count == files.count else { throw HarnessError("records: \(records)") }
      try origin.clearLog()
    }

    /// The data file beside a record.
    func dataFile(_ index: Int) throws -> String {
      let directory = (records[index] as NSString).deletingLastPathComponent
      let names = try FileManager.default.contentsOfDirectory(atPath: directory)
      guard let name = names.first(where: { $0.hasPrefix("data-") }) else {
        throw HarnessError("no data file in \(directory)")
      }
      return "\(directory)/\(name)"
    }
  }

  // MARK: 49

  @Test(
    "49 cached bits flip: the damage is found, fetched again and counted, and nothing else",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func flippedBits(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 49)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let files = RemoteTestFile.random(2, lengths: (6 << 20)...(9 << 20), using: &random)
    let stored = try Stored(files, origin, sandbox)
    let flips = Int.random(in: 1...3, using: &random)
    for _ in 0..<flips {
      try flipBit(
        of: stored.dataFile(0), at: Int64.random(in: 0..<files[0].byteCount, using: &random))
    }
    let mount = try Self.mount(files, origin, sandbox, cache: stored.cache)
    // Not from the start: the first bytes to be read must also have been verified.
    let offset = Int64.random(in: 0..<files[0].byteCount, using: &random)
    let held = try HeldFile(mount.path(files[0].name))
    let count = min(100_000, files[0].byteCount - offset)
    #expect(
      try held.read(at: offset, Int(count), within: Self.readLimit)
        == .bytes(
          count: Int(count),
          sha256: Digest.ofContent(seed: files[0].seed, offset: offset, byteCount: count)))
    held.close()
    for file in files { try Self.expectRight(file, on: mount) }
    let fetched = try origin.bodyByteCount(of: files[0])
    #expect(fetched > 0)
    // An extent is at most 512 KiB.
    #expect(fetched <= Int64(flips) * (1 << 20) + Self.slack)
    #expect(try origin.bodyByteCount(of: files[1]) <= Self.slack)
    #expect(try damagedByteCount(of: files[0].name, on: mount) > 0)
    #expect(try damagedByteCount(of: files[1].name, on: mount) == 0)
    #expect(try mount.unmount() == .exited(0))
    // The bytes that were fetched again are also right in the cache.
    try origin.clearLog()
    let again = try Self.mount(files, origin, sandbox, cache: stored.cache)
    for file in files { try Self.expectRight(file, on: again) }
    try again.unmount()
    #expect(try origin.requests().bodyByteCount <= 2 * Self.slack)
  }

  @Test(
    "49 bits of a partial file flip: the download finds the damage and fetches it again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func flippedBitsOfDownload(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 49)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let partial = try PartialDownload(origin, sandbox, using: &random)
    let record = try CacheRecord(path: partial.record)
    let covered = record.commits.max() ?? 0
    // One of the extents that a COMMIT covers, and one of the others, if there is one.
    let groups = [
      record.extents.filter { $0.sequence <= covered },
      record.extents.filter { $0.sequence > covered },
    ]
    for extents in groups where !extents.isEmpty {
      let extent = extents[Int.random(in: extents.indices, using: &random)]
      try flipBit(
        of: partial.part,
        at: Int64.random(in: extent.offset..<extent.offset + extent.byteCount, using: &random))
    }
    try partial.expectCompletion(keeping: max(0, record.byteCount - (2 << 20)))
  }

  // MARK: 50

  @Test(
    "50 record cut: what was recorded before the cut is kept",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func cutRecord(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 50)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let files = RemoteTestFile.random(2, lengths: (4 << 20)...(9 << 20), using: &random)
    let stored = try Stored(files, origin, sandbox)
    let byteCount = try #require(FileStatus.byteCount(of: stored.records[0]))
    try shell(
      "truncate -s \(Int64.random(in: 0..<byteCount, using: &random)) \(quoted(stored.records[0]))")
    let kept = (try? CacheRecord(path: stored.records[0]))?.byteCount ?? 0
    try expectRecovery(stored, keeping: kept, origin, sandbox)
  }

  @Test(
    "50 record with garbage in it: what was recorded before the garbage is kept",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func garbageInRecord(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 50)
    for isHeader in [true, false] {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let files = RemoteTestFile.random(2, lengths: (4 << 20)...(9 << 20), using: &random)
      let stored = try Stored(files, origin, sandbox)
      let byteCount = try #require(FileStatus.byteCount(of: stored.records[0]))
      let header = Int64(try CacheRecord(path: stored.records[0]).headerByteCount)
      let place = Int64.random(in: isHeader ? 0..<header : header..<byteCount, using: &random)
      let garbage = (0..<60).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      try overwrite(stored.records[0], at: place, with: garbage)
      let recordsBefore = isHeader ? 0 : UInt64((place - header) / 48)
      // The damaged record and all later ones do not count.
      let kept =
        isHeader ? 0 : try claimedByteCount(stored.records[0], upTo: recordsBefore)
      try expectRecovery(stored, keeping: kept, origin, sandbox)
    }
  }

  @Test(
    "50 record of a partial file damaged: the download is right in the end",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func damagedRecordOfDownload(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 50)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let partial = try PartialDownload(origin, sandbox, using: &random)
    let byteCount = try #require(FileStatus.byteCount(of: partial.record))
    try overwrite(
      partial.record, at: Int64.random(in: 0..<byteCount, using: &random),
      with: (0..<60).map { _ in UInt8.random(in: .min ... .max, using: &random) })
    try partial.expectCompletion(keeping: 0)
  }

  // MARK: 51

  @Test(
    "51 a later version's cache and records are left as they are",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func laterVersion(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 51)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let files = RemoteTestFile.random(2, lengths: 1...(3 << 20), using: &random)
    let stored = try Stored(files, origin, sandbox)
    let later = UInt32.random(in: 100...1000, using: &random)
    try CacheRecord.setFormatVersion(later, ofRecordAt: stored.records[0])
    try shell(
      "mkdir -p -m 700 \(quoted(stored.cache))/v\(later)/files && "
        + "echo theirs > \(quoted(stored.cache))/v\(later)/files/record")
    let theirs = """
      cd \(quoted(stored.cache)); find v\(later) -type f | sort | xargs sha256sum
      sha256sum \(quoted(stored.records[0])) \(quoted(try stored.dataFile(0)))
      """
    let before = try shell(theirs)
    let mount = try Self.mount(files, origin, sandbox, cache: stored.cache)
    for file in files { try Self.expectRight(file, on: mount) }
    #expect(try origin.bodyByteCount(of: files[1]) <= Self.slack)
    #expect(try mount.unmount() == .exited(0))
    #expect(try shell(theirs) == before)
  }

  @Test(
    "51 a later version's partial file is left as it is, and the download refused in words",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func laterVersionOfDownload(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 51)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let partial = try PartialDownload(origin, sandbox, using: &random)
    try CacheRecord.setFormatVersion(
      UInt32.random(in: 2...1000, using: &random), ofRecordAt: partial.record)
    let files = "sha256sum \(quoted(partial.record)) \(quoted(partial.part))"
    let before = try shell(files)
    let result = try run(partial.command, within: .seconds(20))
    #expect(result.ending == .exited(9))
    #expect(result.error.contains("later version"), "\(result.error)")
    #expect(try shell(files) == before)
  }

  // MARK: 52

  @Test(
    "52 record of a foreign URL: ignored",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func foreignRecord(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 52)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let length = Int64.random(in: 1...(3 << 20), using: &random)
    // The files have equal lengths, so only the key distinguishes them.
    let files = (0..<2).map {
      RemoteTestFile(name: "f\($0).bin", seed: seed &+ UInt64($0), byteCount: length)
    }
    let stored = try Stored(files, origin, sandbox)
    let directories = stored.records.map { ($0 as NSString).deletingLastPathComponent }
    try shell(
      "rm \(quoted(directories[0]))/*; cp \(quoted(directories[1]))/* \(quoted(directories[0]))/")
    try expectRecovery(stored, keeping: 0, origin, sandbox)
  }

  @Test(
    "52 partial file of a foreign URL: begun anew, and the user told",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func foreignPartialFile(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 52)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let partial = try PartialDownload(origin, sandbox, using: &random)
    let other = RemoteTestFile(
      name: "other.bin", seed: seed &+ 7, byteCount: partial.file.byteCount)
    let result = try run(
      [try Products.httpfs, "get", other.url(origin), "-o", partial.path], within: .seconds(20))
    #expect(result.succeeded, "\(result.error)")
    #expect(result.error.contains("another URL"), "\(result.error)")
    #expect(try Self.digest(ofFile: partial.path) == other.digest)
  }

  // MARK: 53

  @Test(
    "53 data file shortened: what is gone is fetched again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func shortenedData(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 53)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let files = RemoteTestFile.random(2, lengths: (4 << 20)...(9 << 20), using: &random)
    let stored = try Stored(files, origin, sandbox)
    let rest = Int64.random(in: 0..<files[0].byteCount, using: &random)
    try shell("truncate -s \(rest) \(quoted(try stored.dataFile(0)))")
    // The cut extent does not count.
    try expectRecovery(stored, keeping: max(0, rest - (1 << 20)), origin, sandbox)
  }

  @Test(
    "53 data file shortened while more arrives: what is gone is fetched again, not read as zeros",
    .timeLimit(.minutes(1)))
  func shortenedWhileStoring() throws {
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let file = RemoteTestFile(name: "f.bin", seed: 531, byteCount: 24 << 20)
    try origin.control("*", ["total-rate": "8m"])
    let mount = try Self.mount([file], origin, sandbox, cache: sandbox.path("cache"))
    let reader = try sandbox.start(["cat", mount.path(file.name)])
    func data() -> String? {
      FileStatus.files(beginning: "data-", below: mount.cacheDirectory).first
    }
    func reaches(_ byteCount: Int64) -> Bool {
      Deadline(after: .seconds(20)).wait {
        data().flatMap(FileStatus.byteCount(of:)) ?? 0 >= byteCount
      }
    }
    #expect(reaches(2 << 20))
    #expect(truncate(try #require(data()), 0) == 0)
    // Bytes that arrive later make it long again.
    #expect(reaches(3 << 20))
    let head = try output(
      of: mount.enter + [
        "bash", "-c", "dd if=\"$1\" iflag=direct bs=64K count=16 status=none | sha256sum", "bash",
        mount.path(file.name),
      ])
    #expect(
      head.prefix(64) == Digest.ofContent(seed: file.seed, offset: 0, byteCount: 1 << 20))
    try origin.clearControl()
    #expect(reader.wait(within: .seconds(30)) == .exited(0))
    try Self.expectRight(file, on: mount)
    try mount.unmount()
  }

  @Test(
    "53 data file shortened under a mount: the daemon lives, and what is gone is fetched again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func shortenedUnderMount(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 53)
    for isWhole in [true, false] {
      let sandbox = try Sandbox()
      let origin = try OriginServer()
      let file = RemoteTestFile.random(1, lengths: (4 << 20)...(9 << 20), using: &random)[0]
      let mount = try Self.mount([file], origin, sandbox, cache: sandbox.path("cache"))
      var held: HeldFile?
      if isWhole {
        try Self.expectRight(file, on: mount)
      } else {
        let reader = try HeldFile(mount.path(file.name))
        _ = try reader.read(at: 0, Int.random(in: (1 << 20)...(2 << 20), using: &random))
        held = reader
      }
      let record = try #require(
        FileStatus.files(named: "record", below: mount.cacheDirectory).first)
      let directory = (record as NSString).deletingLastPathComponent
      let rest = Int64.random(in: 0..<(1 << 20), using: &random)
      try shell("truncate -s \(rest) \(quoted(directory))/data-*")
      // The kernel's own copies of the pages would be right, and hide the damage.
      try? "1".write(toFile: "/proc/sys/vm/drop_caches", atomically: false, encoding: .utf8)
      if let held {
        let offset = Int64.random(in: 0..<(1 << 20), using: &random)
        #expect(
          try held.read(at: offset, 65_536, within: Self.readLimit)
            == .bytes(
              count: 65_536,
              sha256: Digest.ofContent(seed: file.seed, offset: offset, byteCount: 65_536)))
        held.close()
      }
      try Self.expectRight(file, on: mount, isWhole ? "whole" : "in part")
      #expect(try mount.unmount() == .exited(0))
      let again = try Self.mount([file], origin, sandbox, cache: mount.cacheDirectory)
      try Self.expectRight(file, on: again, "later")
      try again.unmount()
    }
  }

  @Test(
    "53 partial file shortened: what is gone is fetched again",
    .timeLimit(.minutes(1)), arguments: FaultSeeds.all)
  func shortenedPartialFile(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed &* 100 &+ 53)
    let sandbox = try Sandbox()
    let origin = try OriginServer()
    let partial = try PartialDownload(origin, sandbox, using: &random)
    let byteCount = try #require(FileStatus.byteCount(of: partial.part))
    try shell(
      "truncate -s \(Int64.random(in: 0..<byteCount, using: &random)) \(quoted(partial.part))")
    try partial.expectCompletion(keeping: 0)
  }

  // MARK: What they share

  /// Mounts a damaged cache: all bytes are right, and the intact second file is not fetched again.
  private func expectRecovery(
    _ stored: Stored, keeping kept: Int64, _ origin: OriginServer, _ sandbox: Sandbox
  ) throws {
    let mount = try Self.mount(stored.files, origin, sandbox, cache: stored.cache)
    for file in stored.files { try Self.expectRight(file, on: mount) }
    #expect(
      try origin.bodyByteCount(of: stored.files[0])
        <= stored.files[0].byteCount - kept + Self.slack)
    #expect(try origin.bodyByteCount(of: stored.files[1]) <= Self.slack)
    #expect(try mount.unmount() == .exited(0))
    try origin.clearLog()
    let again = try Self.mount(stored.files, origin, sandbox, cache: stored.cache)
    for file in stored.files { try Self.expectRight(file, on: again) }
    try again.unmount()
    #expect(try origin.requests().bodyByteCount <= 2 * Self.slack)
  }

  /// The bytes that the first records of a log claim, before the damage.
  private func claimedByteCount(_ path: String, upTo sequence: UInt64) throws -> Int64 {
    let extents = try CacheRecord(path: path).extents.filter { $0.sequence <= sequence }
    return extents.reduce(0) { $0 + $1.byteCount }
  }

  /// The number of damaged bytes in the cache that `.status.json` reports.
  private func damagedByteCount(of name: String, on mount: Mount) throws -> Int64 {
    let text = try output(of: ["cat", mount.path(".status.json")], within: .seconds(5))
    let report = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
    let files = report?["files"] as? [[String: Any]] ?? []
    let file = files.first { $0["name"] as? String == name }
    return try #require(
      file?["damaged_bytes"] as? Int64, ".status.json does not count what is damaged")
  }

  private func flipBit(of path: String, at offset: Int64) throws {
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? handle.close() }
    try handle.seek(toOffset: UInt64(offset))
    guard let byte = try handle.read(upToCount: 1)?.first else {
      throw HarnessError("no byte at \(offset) of \(path)")
    }
    try handle.seek(toOffset: UInt64(offset))
    try handle.write(contentsOf: [byte ^ 0x10])
    try handle.synchronize()
  }

  private func overwrite(_ path: String, at offset: Int64, with bytes: [UInt8]) throws {
    let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? handle.close() }
    try handle.seek(toOffset: UInt64(offset))
    try handle.write(contentsOf: bytes)
  }
}
