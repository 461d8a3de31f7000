import ExtentRecord
import Foundation
import Glibc
import HTTPTransferCore
import LinuxSystem
import Testing

@testable import RangeCache

/// The bytes that an entry keeps after closing, crashes and replacement.
@Suite struct CacheEntryTests {
  let root: TemporaryDirectory
  let cachePath: String
  let key = CacheKey("http://example.org/a.bin")
  let version = ContentVersion(
    entityTag: EntityTag(opaque: "v1"), lastModified: "Fri, 20 Nov 2026 10:00:00 GMT",
    completeLength: 10_000)

  init() throws {
    root = try TemporaryDirectory()
    cachePath = root.path + "/cache"
  }

  @Test("What is stored is there when the entry is opened again, without any commit")
  func survivesWithoutCommit() throws {
    let directory = try CacheDirectory(path: cachePath)
    // Nothing is closed in order, as in a killed process.
    try {
      let entry = try directory.createEntry(key, version: version, source: "http://example.org/a")
      try entry.storePattern(0..<100)
      try entry.storePattern(5000..<7000)
      try entry.storePattern(100..<300)
      #expect(entry.uncommittedByteCount == 2300)
    }()
    let entry = try #require(try directory.openEntry(key))
    #expect(entry.recoveredVersion == version)
    #expect(entry.recoveredExtents.extents == [0..<300, 5000..<7000])
    #expect(entry.recoveredFetchedByteCount == 2300)
    #expect(entry.uncommittedByteCount == 2300)
    #expect(entry.holdsPattern(entry.recoveredExtents))
  }

  @Test("A data file that was closed before a sync is not believed to be on the disk")
  func closedBeforeSync() throws {
    let directory = try CacheDirectory(path: cachePath)
    func isSettled(after body: (CacheEntry) throws -> Void) throws -> Bool {
      let dataID: UInt64
      do {
        let entry = try #require(try directory.openEntry(key))
        dataID = entry.data.id
        try body(entry)
      }
      return directory.context.blocks.isSettled(dataID)
    }
    _ = try directory.createEntry(key, version: version, source: "http://example.org/a")
    #expect(try isSettled { _ in })
    #expect(try !isSettled { try $0.storePattern(0..<100) })
    // Bytes that an entry left uncommitted at its close are read from the disk.
    #expect(
      try isSettled {
        try $0.storePattern(100..<200)
        try $0.appendCommit($0.syncData(), fetchedByteCount: 200)
        try $0.syncRecord()
      })
    #expect(try isSettled { _ in })
  }

  @Test(
    "Versions of every kind come back as they were recorded",
    arguments: [
      ContentVersion(),
      ContentVersion(completeLength: 0),
      ContentVersion(completeLength: 1 << 60),
      ContentVersion(entityTag: EntityTag(opaque: "wé\u{301}ird", isWeak: true)),
      ContentVersion(entityTag: EntityTag(bytes: [0x76, 0x80, 0xFF], isWeak: false)),
      ContentVersion(lastModified: "", contentCoding: "gzip"),
    ])
  func versions(version: ContentVersion) throws {
    do {
      let directory = try CacheDirectory(path: cachePath)
      _ = try directory.createEntry(key, version: version, source: "")
    }
    let entry = try #require(try CacheDirectory(path: cachePath).openEntry(key))
    #expect(entry.recoveredVersion == version)
    #expect(entry.recoveredExtents.isEmpty)
  }

  @Test("A version too long to record is refused and nothing is left behind")
  func oversizedVersion() throws {
    let directory = try CacheDirectory(path: cachePath)
    let tag = EntityTag(opaque: String(repeating: "x", count: 600_000))
    #expect(throws: CacheError.self) {
      try directory.createEntry(key, version: ContentVersion(entityTag: tag), source: "")
    }
    #expect(root.files { $0.hasPrefix("data-") || $0.hasPrefix("record") }.isEmpty)
  }

  @Test("An entry is committed when a COMMIT covers every write, recorded or not")
  func committed() throws {
    let directory = try CacheDirectory(path: cachePath)
    let entry = try directory.createEntry(key, version: version, source: "")
    #expect(entry.isCommitted)
    try entry.storePattern(0..<1000)
    #expect(!entry.isCommitted)
    let checkpoint = try entry.syncData()
    #expect(!entry.isCommitted)
    try entry.storePattern(1000..<1500)
    try entry.appendCommit(checkpoint, fetchedByteCount: 1500)
    #expect(!entry.isCommitted)
    try entry.checkpoint(fetchedByteCount: 1500)
    #expect(entry.isCommitted)
    // Written but not claimed: no COMMIT will cover these bytes.
    try Pattern.bytes(2000..<2100).withUnsafeBytes { try entry.write($0, at: 2000) }
    #expect(entry.uncommittedByteCount == 0)
    #expect(!entry.isCommitted)
    try entry.checkpoint(fetchedByteCount: 1500)
    // A removed entry records no more bytes.
    try entry.storePattern(3000..<3100)
    try directory.removeEntry(key)
    #expect(entry.uncommittedByteCount == 0)
    #expect(!entry.isCommitted)
  }

  @Test("A look reads the record alone, unless a crash has left much to confirm")
  func recordedEntry() throws {
    let directory = try CacheDirectory(path: cachePath)
    #expect(try directory.recordedEntry(key) == nil)
    do {
      let entry = try directory.createEntry(key, version: version, source: "")
      try entry.storePattern(0..<1000)
      try entry.checkpoint(fetchedByteCount: 1000)
      try entry.storePattern(1000..<1001)
    }
    let record = try readFile(root.recordPath())
    var found = try #require(try directory.recordedEntry(key))
    #expect(found.version == version)
    #expect(found.extents == ExtentSet([0..<1000]))
    #expect(found.believed == found.extents)
    #expect(found.hasUnconfirmed)
    #expect(found.fetchedByteCount == 1001)
    #expect(try readFile(root.recordPath()) == record)
    do {
      let entry = try #require(try directory.openEntry(key))
      #expect(entry.recoveredExtents.extents == [0..<1001])
      try entry.storePattern(2000..<8000)
    }
    found = try #require(try directory.recordedEntry(key))
    #expect(found.extents == ExtentSet([0..<1001, 2000..<8000]))
    #expect(!found.hasUnconfirmed)
    // The end of the log is not clean: the entry is opened, which repairs it.
    try writeFile(root.recordPath(), try readFile(root.recordPath()) + [1, 2, 3])
    found = try #require(try directory.recordedEntry(key))
    #expect(found.extents == ExtentSet([0..<1001, 2000..<8000]))
    // A small file may be complete.
    let small = CacheKey("http://example.org/small")
    for (byteCount, committedByteCount) in [(1, 0), (2000, 0), (2000, 1999)] as [(Int64, Int64)] {
      do {
        let entry = try directory.createEntry(
          small, version: ContentVersion(completeLength: byteCount), source: "")
        if committedByteCount > 0 {
          try entry.storePattern(0..<committedByteCount)
          try entry.checkpoint(fetchedByteCount: committedByteCount)
        }
        try entry.storePattern(committedByteCount..<byteCount)
      }
      found = try #require(try directory.recordedEntry(small))
      #expect(found.extents == ExtentSet([0..<byteCount]))
      _ = try directory.removeEntry(small)
    }
    // So does one whose data file is short.
    #expect(truncate(try root.dataPath(), 500) == 0)
    found = try #require(try directory.recordedEntry(key))
    #expect(found.extents.isEmpty)
  }

  @Test("A look believes no checksum that was recorded before the bytes were committed")
  func recordedChecksum() throws {
    let directory = try CacheDirectory(path: cachePath)
    let checksum = try Checksum("md5=" + String(repeating: "0", count: 32))
    for isCommitted in [true, false] {
      do {
        let entry = try directory.createEntry(
          key, version: ContentVersion(completeLength: 1000), source: "")
        try entry.storePattern(0..<1000)
        try entry.checkpoint(fetchedByteCount: 1000)
        // One byte was wrong and is stored again.
        try entry.storePattern(5..<6)
        if isCommitted { try entry.checkpoint(fetchedByteCount: 1001) }
        try entry.recordChecksum(checksum, length: 1000)
      }
      let found = try #require(try directory.recordedEntry(key))
      #expect(found.isRecorded(checksum) == isCommitted)
      #expect(found.hasUnconfirmed != isCommitted)
    }
  }

  @Test("What a crash has left uncommitted is read past the pages that stay in memory")
  func mappedUncommitted() throws {
    let directory = try CacheDirectory(path: cachePath)
    do {
      let entry = try directory.createEntry(key, version: version, source: "")
      for start in stride(from: Int64(0), to: 10_000, by: 1000) {
        try entry.storePattern(start..<(start + 1000))
      }
    }
    let data = open(try root.dataPath(), O_RDWR)
    defer { close(data) }
    // Someone's mapping keeps all pages.
    let mapping = try #require(mmap(nil, 10_000, PROT_READ, MAP_SHARED, data, 0))
    defer { munmap(mapping, 10_000) }
    for place in stride(from: 0, to: 10_000, by: 1000) {
      #expect(
        mapping.load(fromByteOffset: place, as: UInt8.self)
          == Pattern.bytes(Int64(place)..<Int64(place + 1))[0])
    }
    let entry = try #require(try directory.openEntry(key))
    #expect(entry.recoveredExtents.extents == [0..<10_000])
    #expect(entry.holdsPattern(entry.recoveredExtents))
  }

  @Test("What a crash has left uncommitted is not committed by being opened")
  func recoveredUncommitted() throws {
    let directory = try CacheDirectory(path: cachePath)
    do {
      let entry = try directory.createEntry(key, version: version, source: "")
      try entry.storePattern(0..<1000)
    }
    // The first look drops the entry; the second one must not find it committed.
    for _ in 0..<2 {
      let entry = try #require(try directory.openEntry(key))
      #expect(!entry.isCommitted)
      #expect(entry.uncommittedByteCount == 1000)
    }
    let entry = try #require(try directory.openEntry(key))
    try entry.checkpoint(fetchedByteCount: 1000)
    #expect(entry.isCommitted)
  }

  @Test("A checkpoint covers what was stored before its sync, not what came during it")
  func checkpointCoverage() throws {
    let directory = try CacheDirectory(path: cachePath)
    var entry: CacheEntry? = try directory.createEntry(key, version: version, source: "")
    try entry?.storePattern(0..<1000)
    let checkpoint = try #require(try entry?.syncData())
    try entry?.storePattern(1000..<1500)
    try entry?.appendCommit(checkpoint, fetchedByteCount: 1700)
    try entry?.syncRecord()
    #expect(entry?.uncommittedByteCount == 500)
    entry = nil
    let reopened = try #require(try directory.openEntry(key, uncommitted: .discard))
    #expect(reopened.recoveredExtents.extents == [0..<1000])
    #expect(reopened.recoveredFetchedByteCount == 1700)
  }

  @Test("A checkpoint of another entry object is refused")
  func foreignCheckpoint() throws {
    let directory = try CacheDirectory(path: cachePath)
    let first = try directory.createEntry(key, version: version, source: "")
    let second = try directory.createEntry(CacheKey("b"), version: version, source: "")
    let checkpoint = try first.syncData()
    #expect(throws: CacheError.self) {
      try second.appendCommit(checkpoint, fetchedByteCount: 0)
    }
  }

  @Test("Who has described the version is recorded, and a URL that is too long is nobody's")
  func reference() throws {
    let directory = try CacheDirectory(path: cachePath)
    let long = "http://h/" + String(repeating: "x", count: 3000)
    for (reference, expected) in [("http://h/a?…", "http://h/a?…"), (nil, nil), (long, nil)] {
      _ = try directory.createEntry(key, version: version, source: "", reference: reference)
      #expect(try directory.openEntry(key)?.reference == expected)
    }
  }

  @Test("A complete length that is learned late is recorded")
  func lateLength() throws {
    let directory = try CacheDirectory(path: cachePath)
    var entry: CacheEntry? = try directory.createEntry(
      key, version: ContentVersion(), source: "")
    try entry?.storePattern(0..<500)
    try entry?.recordCompleteLength(500)
    entry = nil
    let reopened = try #require(try directory.openEntry(key))
    #expect(reopened.recoveredVersion == ContentVersion(completeLength: 500))
    #expect(reopened.recoveredExtents.extents == [0..<500])
  }

  @Test("Extents beyond the complete length do not count, and do not come back")
  func beyondLength() throws {
    let directory = try CacheDirectory(path: cachePath)
    var entry: CacheEntry? = try directory.createEntry(
      key, version: ContentVersion(), source: "")
    try entry?.storePattern(0..<500)
    try entry?.storePattern(500..<900)
    try entry?.recordCompleteLength(600)
    entry = nil
    entry = try directory.openEntry(key)
    #expect(entry?.recoveredExtents.extents == [0..<500])
    try entry?.recordCompleteLength(900)
    entry = nil
    #expect(try directory.openEntry(key)?.recoveredExtents.extents == [0..<500])
  }

  @Test("Arguments out of bounds throw and never trap")
  func invalidArguments() throws {
    let entry = try CacheDirectory(path: cachePath).createEntry(key, version: version, source: "")
    for length in [-1, (1 << 60) + 1] as [Int64] {
      #expect(throws: CacheError.self) { try entry.recordCompleteLength(length) }
    }
    let bytes: [UInt8] = [1, 2]
    for offset in [-1, .min, (1 << 60) - 1, .max] as [Int64] {
      #expect(throws: CacheError.self) {
        try bytes.withUnsafeBytes { try entry.store($0, at: offset) }
      }
    }
    #expect(throws: CacheError.self) {
      try entry.appendCommit(try entry.syncData(), fetchedByteCount: -1)
    }
    #expect(entry.uncommittedByteCount == 0)
  }

  @Test("An idle entry holds one descriptor, and records again when it is written")
  func releasedRecord() throws {
    let directory = try CacheDirectory(path: cachePath)
    var entry: CacheEntry? = try directory.createEntry(key, version: version, source: "")
    try entry?.storePattern(0..<10)
    #expect(openDescriptorCount(under: cachePath + "/v1/files/") == 2)
    entry?.releaseRecord()
    #expect(openDescriptorCount(under: cachePath + "/v1/files/") == 1)
    try entry?.storePattern(10..<20)
    try entry?.checkpoint(fetchedByteCount: 20)
    entry = nil
    #expect(openDescriptorCount(under: cachePath + "/v1/files/") == 0)
    #expect(try directory.openEntry(key)?.recoveredExtents.extents == [0..<20])
  }

  @Test("A replaced entry stays readable through its descriptor and records no more")
  func replacement() throws {
    let directory = try CacheDirectory(path: cachePath)
    let old = try directory.createEntry(key, version: version, source: "")
    try old.storePattern(0..<1000)
    old.releaseRecord()
    var newVersion = version
    newVersion.entityTag = EntityTag(opaque: "v2")
    var new: CacheEntry? = try directory.createEntry(key, version: newVersion, source: "")
    try new?.storePattern(50..<60)
    #expect(old.holdsPattern(ExtentSet([0..<1000])))
    try old.storePattern(2000..<3000)
    try old.checkpoint(fetchedByteCount: 1)
    #expect(old.holdsPattern(ExtentSet([0..<1000, 2000..<3000])))
    new = nil
    let reopened = try #require(try directory.openEntry(key))
    #expect(reopened.recoveredVersion == newVersion)
    #expect(reopened.recoveredExtents.extents == [50..<60])
    _ = try root.dataPath()
  }

  @Test("An entry that is opened again records through the newer object only")
  func openedTwice() throws {
    let directory = try CacheDirectory(path: cachePath)
    let first = try directory.createEntry(key, version: version, source: "")
    try first.storePattern(0..<100)
    var second = try directory.openEntry(key)
    try first.storePattern(1000..<1100)
    try second?.storePattern(2000..<2100)
    try first.checkpoint(fetchedByteCount: 9)
    second = nil
    let third = try #require(try directory.openEntry(key))
    #expect(third.recoveredExtents.extents == [0..<100, 2000..<2100])
    #expect(third.uncommittedByteCount == 200)
  }

  @Test("A record that was put in place from outside is not appended to")
  func foreignRecord() throws {
    let directory = try CacheDirectory(path: cachePath)
    let path = directory.path(of: key)
    try directory.createEntry(key, version: version, source: "").storePattern(0..<10)
    try FileManager.default.copyItem(atPath: path, toPath: root.path + "/old")
    let entry = try directory.createEntry(key, version: version, source: "")
    entry.releaseRecord()
    try FileManager.default.removeItem(atPath: path)
    try FileManager.default.moveItem(atPath: root.path + "/old", toPath: path)
    try entry.storePattern(50..<60)
    #expect(try directory.openEntry(key)?.recoveredExtents.extents == [0..<10])
  }

  @Test(
    "A full disk makes the store fail and leaves the entry in use",
    .enabled(if: geteuid() == 0))
  func fullDisk() throws {
    let disk = root.path + "/disk"
    try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
    guard mount("none", disk, "tmpfs", 0, "size=128k,mode=700") == 0 else { return }
    defer { umount2(disk, CInt(MNT_DETACH)) }
    let directory = try CacheDirectory(path: disk + "/cache")
    let entry = try directory.createEntry(key, version: ContentVersion(), source: "")
    try entry.storePattern(0..<4096)
    let tooMany = #expect(throws: CacheError.self) { try entry.storePattern(4096..<500_000) }
    #expect(tooMany?.code == .noSpace)
    // There is room again: the failed bytes are absent, and newly stored ones are present.
    #expect(ftruncate(entry.dataDescriptor, 4096) == 0)
    try entry.storePattern(4096..<8192)
    try entry.checkpoint(fetchedByteCount: 8192)
    let reopened = try #require(try directory.openEntry(key))
    #expect(reopened.recoveredExtents.extents == [0..<8192])
    #expect(reopened.holdsPattern(reopened.recoveredExtents))
  }

  @Test("Where a disk has no room for a new record, the committed bytes stay in use")
  func fullDiskAtOpening() throws {
    let disk = root.path + "/disk"
    try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: false)
    guard mount("none", disk, "tmpfs", 0, "size=128k,mode=700") == 0 else { return }
    defer { umount2(disk, CInt(MNT_DETACH)) }
    let directory = try CacheDirectory(path: disk + "/cache")
    var entry: CacheEntry? = try directory.createEntry(key, version: version, source: "")
    try entry?.storePattern(0..<4096)
    try entry?.checkpoint(fetchedByteCount: 4096)
    try entry?.storePattern(4096..<8192)
    let data = try #require(entry?.dataDescriptor)
    #expect(pwrite(data, [0], 1, 5000) == 1)
    entry = nil
    let ballast = open(disk + "/ballast", O_WRONLY | O_CREAT, 0o600)
    defer { close(ballast) }
    let page = [UInt8](repeating: 1, count: 4096)
    while write(ballast, page, page.count) == page.count {}
    entry = try directory.openEntry(key)
    #expect(entry?.recoveredExtents.extents == [0..<4096])
    #expect(ftruncate(ballast, 0) == 0)
    try entry?.storePattern(4096..<8192)
    entry = nil
    #expect(try directory.openEntry(key)?.recoveredExtents.extents == [0..<8192])
  }

  @Test("An entry whose files vanish keeps serving and storing")
  func vanishedFiles() throws {
    let directory = try CacheDirectory(path: cachePath)
    let entry = try directory.createEntry(key, version: version, source: "")
    entry.releaseRecord()
    try FileManager.default.removeItem(atPath: directory.path(of: key))
    try entry.storePattern(0..<100)
    try entry.checkpoint(fetchedByteCount: 100)
    #expect(entry.holdsPattern(ExtentSet([0..<100])))
    #expect(try directory.openEntry(key) == nil)
  }

  @Test("A log longer than recovery reads at once is read whole", arguments: [4095, 4096, 9000])
  func longLog(extentCount: Int) throws {
    let directory = try CacheDirectory(path: cachePath)
    var entry: CacheEntry? = try directory.createEntry(key, version: version, source: "")
    // Every other byte, from the end: no two extents merge.
    for index in (0..<Int64(extentCount)).reversed() {
      try entry?.storePattern((2 * index)..<(2 * index + 1))
    }
    try entry?.recordCompleteLength(20_000)
    entry = nil
    let reopened = try #require(try directory.openEntry(key))
    #expect(reopened.recoveredExtents.extents.count == extentCount)
    #expect(reopened.holdsPattern(reopened.recoveredExtents))
  }

  @Test("A writer, a syncing thread and a reader of counters do not disturb one another")
  func concurrency() async throws {
    let directory = try CacheDirectory(path: cachePath)
    let entry = try directory.createEntry(
      key, version: ContentVersion(completeLength: 400_000), source: "")
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for index in 0..<4000 {
          let start = Int64(index) * 100
          try entry.storePattern(start..<(start + 100))
          if index % 50 == 0 {
            try entry.appendCommit(try entry.syncData(), fetchedByteCount: start)
          }
          if index % 70 == 0 { entry.releaseRecord() }
        }
      }
      group.addTask {
        for _ in 0..<500 {
          _ = try entry.syncData()
          try entry.syncRecord()
          _ = entry.uncommittedByteCount
        }
      }
      try await group.waitForAll()
    }
    let reopened = try #require(try directory.openEntry(key))
    #expect(reopened.recoveredExtents.extents == [0..<400_000])
    #expect(reopened.holdsPattern(reopened.recoveredExtents))
  }

  @Test("What lies where nothing is present is gone before anything is written there")
  func unknownBlocks() throws {
    let version = ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: 1 << 20)
    try {
      let directory = try CacheDirectory(path: cachePath)
      let entry = try directory.createEntry(key, version: version, source: "http://example.org/a")
      try entry.storePattern(0..<5000)
      try entry.storePattern(90_000..<100_000)
      try entry.checkpoint(fetchedByteCount: 15_000)
      // Like bytes of a failed sync, which the record no longer claims.
      let lost = Pattern.bytes(0..<200_000)
      for range in [5000..<90_000, 100_000..<200_000] {
        let count = lost[range].withUnsafeBytes {
          pwrite(entry.dataDescriptor, $0.baseAddress, $0.count, off_t(range.lowerBound))
        }
        #expect(count == range.count)
      }
    }()
    let directory = try CacheDirectory(path: cachePath)
    let entry = try #require(try directory.openEntry(key))
    #expect(entry.holdsPattern(ExtentSet([0..<200_000])))
    try entry.storePattern(300_000..<301_000)
    #expect(entry.holdsPattern(ExtentSet([0..<5000, 90_000..<100_000, 300_000..<301_000])))
    // Whole blocks of 4 KiB.
    for range in [8192..<86_016, 102_400..<200_000] {
      var bytes = [UInt8](repeating: 1, count: range.count)
      #expect(
        pread(entry.dataDescriptor, &bytes, bytes.count, off_t(range.lowerBound)) == bytes.count)
      #expect(bytes.allSatisfy { $0 == 0 })
    }
    // Once is enough: bytes that another object has stored meanwhile stay.
    try entry.storePattern(10_000..<11_000)
    let again = try #require(try directory.openEntry(key))
    try entry.storePattern(20_000..<21_000)
    try again.storePattern(30_000..<31_000)
    #expect(entry.holdsPattern(ExtentSet([10_000..<11_000, 20_000..<21_000, 30_000..<31_000])))
  }

  @Test("After a failed sync nothing is written while what it has lost may be read")
  func writableAfterLoss() throws {
    let directory = try CacheDirectory(path: cachePath)
    var failed: CacheEntry? = try directory.createEntry(
      key, version: version, source: "http://example.org/a")
    try failed?.storePattern(0..<5000)
    try failed?.checkpoint(fetchedByteCount: 5000)
    try failed?.storePattern(5000..<9000)
    #expect(failed?.isWritable == true)
    let fresh = try #require(try directory.openEntry(key, uncommitted: .discard))
    #expect(!fresh.isWritable)
    #expect(throws: CacheError.self) { try fresh.storePattern(6000..<7000) }
    #expect(failed?.holdsPattern(ExtentSet([0..<9000])) == true)
    failed = nil
    #expect(fresh.isWritable)
    try fresh.storePattern(6000..<7000)
    #expect(fresh.holdsPattern(ExtentSet([0..<5000, 6000..<7000])))
  }

  @Test("A failed sync is known to whoever opens the data file next, however it is opened")
  func lossIsNoted() throws {
    let directory = try CacheDirectory(path: cachePath)
    var failed: CacheEntry? = try directory.createEntry(
      key, version: version, source: "http://example.org/a")
    try failed?.storePattern(0..<5000)
    // A pipe cannot be synced.
    var ends: [CInt] = [0, 0]
    #expect(pipe(&ends) == 0)
    let data = try #require(failed?.dataDescriptor)
    #expect(dup2(ends[0], data) == data)
    for end in ends { close(end) }
    #expect(throws: CacheError.self) { try failed?.syncData() }
    let next = try #require(try directory.openEntry(key))
    #expect(!next.isWritable)
    failed = nil
    #expect(next.isWritable)
  }

  private func openDescriptorCount(under path: String) -> Int {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
    return names.count {
      let target = try? FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/self/fd/" + $0)
      return target?.hasPrefix(path) == true
    }
  }
}
