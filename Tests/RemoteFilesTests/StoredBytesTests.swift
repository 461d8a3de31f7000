import Glibc
import HTTPTransferCore
import RangeCache
import Synchronization
import Testing

@testable import RemoteFiles

/// Bytes that are marked present were stored, and still exist.
@Suite struct StoredBytesTests {
  private static let mebibyte: Int64 = 1 << 20

  /// A version whose bytes the cache does not accept.
  private func spilling(length: Int64) throws -> VersionOnDisk {
    let disk = try VersionOnDisk(length: length)
    disk.version.state.withLock { $0.isUncacheable = true }
    return disk
  }

  @Test("Bytes given up in memory are not marked present by the answer that comes after it")
  func lateAnswerOfMemory() throws {
    let disk = try spilling(length: 100)
    let version = disk.version
    try version.storeBytes(0..<50)
    let file = try #require(version.state.withLock { $0.spill?.file })
    #expect(version.presentExtents == [0..<50])
    #expect(version.giveUpSpilled(0..<50, in: file))
    #expect(version.presentExtents == [])

    // The memory of the version ends; its number is not reused.
    let late = StoreReceipt(range: 50..<60, place: .memory(file))
    version.state.withLock { $0.version.dropSpill() }
    #expect(version.state.withLock { $0.accept(late) } == [])
    try version.storeBytes(60..<70)
    #expect(version.state.withLock { $0.accept(late) } == [])
    #expect(version.presentExtents == [60..<70])
  }

  @Test("When the cache takes bytes again they are read ahead and prefetched as before")
  func cacheIsWellAgain() throws {
    let disk = try VersionOnDisk(length: 1000)
    let (version, health) = (disk.version, disk.environment.health)
    health.recordFailure("test")
    try version.storeBytes(0..<100)
    #expect(version.snapshot().pacing.readAheadLimit != nil)
    #expect(version.isKeptFromCache())
    health.recordSuccess()
    try version.storeBytes(100..<200)
    #expect(version.snapshot().pacing.readAheadLimit == nil)
    #expect(version.presentExtents == [0..<200])
    // Bytes that are only in memory are fetched for the cache.
    #expect(!version.isKeptFromCache())
    #expect(version.presentExtents == [100..<200])
    #expect(version.state.withLock { $0.spill == nil })
  }

  @Test("Bytes of an entry found damaged, cut or unreadable meanwhile are not marked present")
  func lateAnswerOfEntry() throws {
    for loss in 0..<4 {
      let disk = try VersionOnDisk(length: 1000)
      let version = disk.version
      try version.storeBytes(0..<100)
      let (entry, generation) = try #require(try EntryLoader(owner: version).writableEntry())
      let late = StoreReceipt(range: 100..<200, place: .cache(entry, generation: generation))
      switch loss {
      case 0: _ = CacheVerifier(owner: version).refute(ExtentSet([100..<200]))
      case 1: _ = CacheVerifier(owner: version).forget(from: 50, of: entry)
      case 2: version.recordUnreadable(100..<200)
      default:
        version.state.withLock { $0.setCached(ExtentSet([0..<100]), believed: ExtentSet()) }
      }
      #expect(version.state.withLock { $0.accept(late) } == [])
      // A later store counts again.
      let place = try #require(try EntryLoader(owner: version).writableEntry())
      let next = StoreReceipt(
        range: 100..<200, place: .cache(place.0, generation: place.generation))
      #expect(version.state.withLock { $0.accept(next) } == [100..<200])
    }
  }

  @Test(
    "What has come into the cache meanwhile is not looked for in memory, whatever arrives there")
  func lateCopyInMemory() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    try version.storeBytes(0..<100)
    let file = try SpillFile()
    let late = StoreReceipt(range: 50..<150, place: .memory(file))
    let accepted = version.state.withLock { guarded in
      _ = guarded.version.beginSpill(into: file)
      return guarded.accept(late)
    }
    #expect(accepted == [100..<150])
    #expect(version.state.withLock { $0.spill?.extents.extents } == [100..<150])
  }

  @Test("What the disk does not take is left to who writes to memory")
  func refusedByDisk() throws {
    let disk = try spilling(length: 100)
    let version = disk.version
    let bytes = [UInt8](repeating: 7, count: 100)
    let storer = ByteStorer(owner: version)
    let result = bytes.withUnsafeBytes { storer.put($0, as: 0..<100, withDisk: true) }
    #expect(result.isRefused)
    #expect(result.receipts.isEmpty)
    #expect(version.state.withLock { $0.spill == nil })
    #expect(try storer.take(result, of: SegmentID(rawValue: 0)) == false)
    #expect(version.presentExtents == [])
  }

  @Test("What the record says is present is not written over by the store that finds it out")
  func presentIsKept() throws {
    let disk = try VersionOnDisk(length: 2000)
    try disk.version.storeBytes(0..<1000)
    // The entry could not be opened so far, so all bytes count as absent.
    let version = RemoteVersion(
      of: disk.version.home, content: disk.version.content, mayHaveRecord: true)
    #expect(version.presentExtents == [])
    try version.storeBytes(0..<2000, value: 9)
    #expect(version.presentExtents == [0..<2000])
    let entry = try #require(version.state.withLock { $0.entry })
    var bytes = [UInt8](repeating: 0, count: 2000)
    #expect(pread(entry.dataDescriptor, &bytes, 2000, 0) == 2000)
    #expect(bytes == Array(repeating: 7, count: 1000) + Array(repeating: 9, count: 1000))
  }

  @Test("A read that was woken waits again where the file has been cut since")
  func cutAfterWaking() throws {
    let disk = try VersionOnDisk(length: 5000)
    let version = disk.version
    try version.storeBytes(0..<5000)
    let reply = KeptReply()
    let read = UnansweredRead(
      range: 0..<5000, since: .now, deadline: .now + .seconds(60), reply: reply)
    let woken = version.state.withLock { guarded in
      var actions = VersionActions()
      actions.wakes = [guarded.replies.keep(read)]
      return guarded.resolve(actions).woken
    }
    #expect(woken.count == 1)
    let entry = try #require(version.state.withLock { $0.entry })
    #expect(ftruncate(entry.dataDescriptor, 100) == 0)
    EffectRunner(owner: version).answer(try #require(woken.first))
    #expect(reply.take() == nil)
    #expect(version.presentExtents == [0..<100])
    #expect(version.snapshot().parked.reads.count == 1)
    version.abandon()
  }

  @Test("What was there before a store, and is lost during it, is not marked present by it")
  func onlyWhatWasStored() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    try version.storeBytes(0..<100)
    let segment = version.state.withLock {
      $0.version.addSegment(range: 0..<1000, isWhole: true, now: .now)
    }
    // The stream skips present bytes; another thread finds them damaged.
    var actions = VersionActions()
    _ = CacheVerifier(owner: version).refute(ExtentSet([0..<100]))
    version.state.withLock {
      $0.version.stored(
        segment.id, 0..<200, present: [100..<200], idle: 0, now: .now, into: &actions)
    }
    #expect(version.presentExtents == [100..<200])
  }

  @Test("Memory that is given up is older than what is just being stored, and waited for by nobody")
  func oldestIsGivenUp() throws {
    let length = 64 * Self.mebibyte
    let disk = try spilling(length: length)
    let version = disk.version
    let other = VersionOnDisk.makeVersion("b.bin", length: length, in: disk.environment)
    other.state.withLock { $0.isUncacheable = true }
    // A read waits for more bytes than memory may hold.
    other.state.withLock {
      var actions = VersionActions()
      $0.version.park(parkedRead(0..<(50 * Self.mebibyte)), into: &actions)
    }
    for index in 0..<Int64(40) {
      try other.storeBytes(ByteRange(offset: index * Self.mebibyte, byteCount: Self.mebibyte))
    }
    #expect(other.presentExtents == [0..<(40 * Self.mebibyte)])
    for index in 0..<Int64(8) {
      let range = ByteRange(offset: index * Self.mebibyte, byteCount: Self.mebibyte)
      try version.storeBytes(range)
      // Of this file, only the last bytes are kept, and no others are marked present.
      #expect(version.presentExtents == [range])
      #expect(version.state.withLock { $0.spill?.extents.extents } == [range])
    }
    #expect(disk.environment.spills.byteCount == 41 * Self.mebibyte)
  }

  @Test("Memory that has ended takes with it what was counted of it")
  func endedMemory() throws {
    let disk = try spilling(length: 64 * Self.mebibyte)
    let version = disk.version
    for _ in 0..<100 {
      try version.storeBytes(0..<(400 << 10))
      #expect(version.presentExtents == [0..<(400 << 10)])
      // The last handle is closed.
      #expect(version.state.withLock { $0.takeIdleEntry(areDescriptorsShort: false) } == nil)
      #expect(version.presentExtents == [])
    }
    #expect(disk.environment.spills.byteCount == 0)
  }

  @Test("A read is given what it was woken for, whatever memory must give up by then")
  func wokenReads() throws {
    let disk = try spilling(length: 100)
    let version = disk.version
    let reply = KeptReply()
    version.state.withLock {
      var actions = VersionActions()
      let read = UnansweredRead(
        range: 0..<50, since: .now, deadline: .now + .seconds(60), reply: reply)
      $0.version.park($0.replies.keep(read), into: &actions)
    }
    try version.storeBytes(0..<50)
    let file = try #require(version.state.withLock { $0.spill?.file })
    #expect(!version.giveUpSpilled(0..<50, in: file))
    #expect(reply.take()?.byteCount == 50)
    #expect(version.giveUpSpilled(0..<50, in: file))
  }

  @Test("A read that waits a second time keeps its deadline")
  func keepsDeadline() throws {
    let disk = try spilling(length: 100)
    let deadline = ContinuousClock.now + .seconds(3)
    let read = UnansweredRead(
      range: 0..<50, since: deadline - .seconds(60), deadline: deadline, reply: NullReply())
    VersionReads(owner: disk.version).wait(for: read)
    let parked = disk.version.snapshot().parked.reads
    #expect(parked.map(\.deadline) == [deadline])
    #expect(parked.map(\.since) == [read.since])
    disk.version.abandon()
  }

  @Test("Trouble of one file leaves the cache to the others")
  func troubleOfOneFile() throws {
    // ext4 and tmpfs cannot have a file of that length; on a file system that can, this test shows
    // nothing.
    let disk = try VersionOnDisk(length: .max)
    let version = disk.version
    let range = ByteRange(offset: 1 << 62, byteCount: 100)
    try version.storeBytes(range)
    #expect(disk.environment.health.mayStore())
    #expect(disk.environment.health.report.error == nil)
    #expect(version.presentExtents == [range])
  }

  @Test("The kernel may read a file by itself once all is committed and nothing lies beyond it")
  func backing() throws {
    let disk = try VersionOnDisk(length: 5000)
    let version = disk.version
    try version.storeBytes(0..<5000)
    #expect(VersionReads(owner: version).backingFile == nil)
    VersionCheckpoints(owner: version).commitFinally()
    let descriptor = try #require(VersionReads(owner: version).backingFile).descriptor
    #expect(ftruncate(descriptor, 5001) == 0)
    #expect(VersionReads(owner: version).backingFile == nil)
    #expect(ftruncate(descriptor, 5000) == 0)
    #expect(VersionReads(owner: version).backingFile != nil)
  }

  @Test("An entry that was looked at only is asked before it is evicted, and told")
  func lookedAtOnly() throws {
    let disk = try VersionOnDisk(length: 1000)
    try disk.version.storeBytes(0..<1000)
    let file = disk.version.remoteFile
    let looked = RemoteVersion(
      of: file, content: disk.version.content,
      record: try disk.environment.cache.recordedEntry(file.cacheKey))
    disk.environment.recordEntry(file.cacheKey, of: looked)
    #expect(looked.presentExtents == [0..<1000])
    looked.state.withLock { $0.holdCount += 1 }
    #expect(!file.removeEntryIfUnused { Issue.record("it is in use") })
    looked.state.withLock { $0.holdCount -= 1 }
    var isRemoved = false
    #expect(file.removeEntryIfUnused { isRemoved = true })
    #expect(isRemoved)
    #expect(looked.presentExtents == [])
  }

  @Test("A file whose entry could not be written is cached again after its eviction")
  func evictedUncacheable() throws {
    let disk = try spilling(length: 1000)
    let version = disk.version
    disk.environment.recordEntry(version.file.cacheKey, of: version)
    #expect(version.remoteFile.removeEntryIfUnused {})
    try version.storeBytes(0..<1000)
    #expect(version.state.withLock { $0.spill == nil && $0.entry != nil })
    #expect(version.presentExtents == [0..<1000])
  }

  @Test(
    "Only what a server does counts as a request in vain",
    arguments: [(FileError.Code.missing, 1), (.cacheFailed, 0), (.tooManyFiles, 0)])
  func inVain(code: FileError.Code, count: Int) throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    let segment = version.state.withLock {
      $0.version.addSegment(range: 0..<1000, isWhole: true, now: .now)
    }
    RequestEnds(owner: version).failed(segment.id, FileError(code, "a reason"))
    #expect(version.snapshot().segments.isEmpty)
    #expect(version.snapshot().requests.backoff.fruitlessCount == count)
  }

  @Test("Handles that are opened at once, where no more versions may be, leave the count right")
  func refusedHandles() async throws {
    let disk = try VersionOnDisk(length: 1000)
    let open = disk.environment.openVersions
    var others = 0
    while open.begin() { others += 1 }
    // One slot, for which two versions compete with many threads.
    open.end()
    let second = VersionOnDisk.makeVersion("b.bin", length: 1000, in: disk.environment)
    for _ in 0..<200 {
      await withTaskGroup { group in
        for version in [disk.version, second, disk.version, second] {
          group.addTask {
            VersionHandles(owner: version).retain(needsBacking: false) { result in
              if case .success = result { VersionHandles(owner: version).release() }
            }
          }
        }
      }
    }
    #expect(open.begin())
    #expect(!open.begin())
    for _ in 0..<others { open.end() }
  }

  /// Keeps the bytes of a read until they are taken.
  private final class KeptReply: ReadReply {
    private let bytes = Mutex<PresentBytes?>(nil)

    func succeed(_ bytes: PresentBytes) { self.bytes.withLock { $0 = bytes } }
    func fail(_ error: FileError) {}

    func take() -> PresentBytes? {
      bytes.withLock { kept in
        defer { kept = nil }
        return kept
      }
    }
  }
}
