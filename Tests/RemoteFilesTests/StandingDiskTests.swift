import Foundation
import HTTPTransfer
import HTTPTransferCore
import MountStatus
import RangeCache
import Synchronization
import Testing

@testable import RemoteFiles

/// The behaviour of a version while the disk under the cache stalls or accepts no bytes, and later.
@Suite struct StandingDiskTests {
  private static let mebibyte: Int64 = 1 << 20

  /// Waits for a result of another thread; false after 20 s.
  private func waitUntil(_ condition: () -> Bool) -> Bool {
    let deadline = ContinuousClock.now + .seconds(20)
    while !condition() {
      guard ContinuousClock.now < deadline else { return false }
      usleep(2000)
    }
    return true
  }

  /// The hashes of `count` pieces of the bytes that `storeBytes(_:of:)` stores.
  private func hashes(of count: Int, pieceByteCount: Int64) throws -> PieceHashes {
    let digest = RunningDigest(.sha256)
    let piece = [UInt8](repeating: 7, count: Int(pieceByteCount))
    piece.withUnsafeBytes { digest.update($0) }
    return try #require(
      PieceHashes(
        algorithm: .sha256, pieceByteCount: pieceByteCount,
        digests: Array(repeating: digest.finish().digest, count: count)))
  }

  private func attempt(_ range: ByteRange, of version: RemoteVersion) -> ReadAttempt {
    version.state.withLock { $0.version.attempt(range, now: .now) }
  }

  @Test(
    "Of a piece that a read waits for nothing is given up, however long it is, nor while it is read"
  )
  func longPiece() throws {
    let piece = 40 * Self.mebibyte
    let disk = try VersionOnDisk(length: 1)
    let version = VersionOnDisk.makeVersion(
      "p.bin", length: 2 * piece,
      details: SourceDetails(pieces: try hashes(of: 2, pieceByteCount: piece)), in: disk.environment
    )
    version.state.withLock {
      $0.isUncacheable = true
      // No request is sent.
      $0.version.awaitLocation(SegmentID(rawValue: 0))
      var actions = VersionActions()
      $0.version.park(parkedRead(0..<4096), into: &actions)
    }
    func store(_ mebibytes: Range<Int64>) throws {
      for index in mebibytes {
        try version.storeBytes(ByteRange(offset: index * Self.mebibyte, byteCount: Self.mebibyte))
      }
    }
    func spilled() -> [ByteRange]? { version.state.withLock { $0.spill?.extents.extents } }
    try store(0..<39)
    #expect(spilled() == [0..<(39 * Self.mebibyte)])

    // The version is being read: bytes behind the reader may be dropped.
    version.state.withLock {
      var actions = VersionActions()
      $0.version.dropParked(into: &actions)
      $0.version.note((3 * Self.mebibyte)..<(4 * Self.mebibyte), now: .now)
    }
    try store(60..<61)
    #expect(
      spilled()
        == [
          (4 * Self.mebibyte)..<(39 * Self.mebibyte), (60 * Self.mebibyte)..<(61 * Self.mebibyte),
        ])
  }

  @Test("A stream that has passed a piece of which something was given up begins again")
  func passedPiece() throws {
    let piece = Self.mebibyte
    var state = VersionState(length: 4 * piece, extents: ExtentSet(), connections: nil)
    state.check(try hashes(of: 4, pieceByteCount: piece))
    state.limitReadAhead(to: piece / 2)
    let transfer = try transferIDs(1)[0]
    var actions = VersionActions()
    let segment = state.addSegment(range: 0..<(4 * piece), isWhole: true, now: .now)
    state.setExchange(transfer, of: segment.id)
    _ = state.advance(segment.id, to: 3 * piece / 2, now: .now)
    state.stored(segment.id, 0..<(3 * piece / 2), now: .now, into: &actions)
    #expect(state.awaitsReader(segment.id, now: .now, into: &actions))
    // The head of the second piece is lost; a read needs bytes of its rest.
    state.forgetUnverified(piece..<(piece + 4096))
    actions = VersionActions()
    state.park(parkedRead((piece + 8192)..<(piece + 16384)), into: &actions)
    state.plan(now: .now, into: &actions)
    #expect(actions.cancels == [transfer])
  }

  @Test(
    "What lies in memory stays while the disk stands still, and is fetched for the cache after that"
  )
  func nothingIsDropped() throws {
    let disk = try VersionOnDisk(length: 1000)
    let (version, health) = (disk.version, disk.environment.health)
    health.recordFailure("test")
    try version.storeBytes(0..<1000)
    health.recordSuccess()
    #expect(version.isComplete)
    #expect(!version.isCompleteInCache)
    let still = StandingDisk(disk.environment)
    #expect(disk.environment.storage.isStuck)
    #expect(!version.isKeptFromCache())
    #expect(version.presentExtents == [0..<1000])
    still.move()
    #expect(!disk.environment.storage.isStuck)
    #expect(!version.isKeptFromCache())
    #expect(version.presentExtents == [])
  }

  @Test(
    "A piece found right while the disk stands still is recorded when it moves, and not complete before"
  )
  func recordedLater() throws {
    let piece = 64 << 10 as Int64
    let disk = try VersionOnDisk(length: 1)
    let environment = disk.environment
    let version = VersionOnDisk.makeVersion(
      "p.bin", length: 3 * piece,
      details: SourceDetails(pieces: try hashes(of: 3, pieceByteCount: piece)), in: environment)
    // A regular store.
    try version.storeBytes(0..<piece)
    #expect(waitUntil { version.presentExtents == [0..<piece] })
    let still = StandingDisk(environment)
    try version.storeBytes(piece..<(3 * piece))
    #expect(waitUntil { version.isComplete })
    #expect(!version.isCompleteInCache)
    #expect(version.isInUse)
    var status = FileStatus(name: "", url: "", state: .unknown)
    version.describe(now: .now, in: &status)
    #expect(status.state != .complete)
    still.move()
    #expect(waitUntil { version.isCompleteInCache })
    #expect(waitUntil { !version.isInUse })
    let found = try #require(try environment.cache.openEntry(version.file.cacheKey))
    #expect(found.recoveredExtents.extents == [0..<(3 * piece)])
  }

  @Test("A piece that is no longer there when the disk moves is not recorded")
  func lostMeanwhile() throws {
    let piece = 64 << 10 as Int64
    let disk = try VersionOnDisk(length: 1)
    let environment = disk.environment
    let version = VersionOnDisk.makeVersion(
      "p.bin", length: 2 * piece,
      details: SourceDetails(pieces: try hashes(of: 2, pieceByteCount: piece)), in: environment)
    let still = StandingDisk(environment)
    try version.storeBytes(0..<(2 * piece))
    #expect(waitUntil { version.isComplete })
    let entry = try #require(version.state.withLock { $0.entry })
    #expect(CacheVerifier(owner: version).forget(from: piece + 1, of: entry))
    still.move()
    #expect(waitUntil { !version.isInUse })
    let found = try #require(try environment.cache.openEntry(version.file.cacheKey))
    #expect(found.recoveredExtents.extents == [0..<piece])
  }

  @Test("Reads that wait get what the cache has when its entry can be opened after all")
  func looksAgain() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    try version.storeBytes(0..<1000)
    VersionCheckpoints(owner: version).commitFinally()
    _ = version.releaseIdleEntry()
    let reply = KeptReply()
    // As after a failed look-up: the handle exists, its entry does not.
    #expect(disk.environment.openVersions.begin())
    version.state.withLock {
      $0.openCount += 1
      $0.lookedAt = .now
    }
    #expect(version.hasCachedBytes)
    VersionReads(owner: version).wait(for: 0..<100, reply: reply)
    #expect(version.presentExtents == [])
    // The record still exists: an open without the server succeeds.
    #expect(version.hasCachedBytes)
    version.lookAgainIfDue(now: .now)
    #expect(version.state.withLock { !$0.isLookQueued && $0.entry == nil })
    version.lookAgainIfDue(now: .now + CacheHealth.timeout)
    #expect(waitUntil { reply.byteCount != nil })
    #expect(reply.byteCount == 100)
    #expect(version.presentExtents == [0..<1000])
    // No further look-ups: the entry is found.
    version.lookAgainIfDue(now: .now + .seconds(60))
    #expect(version.state.withLock { !$0.isLookQueued && !$0.isRecordUnread })
    VersionHandles(owner: version).release()
    version.abandon()
  }

  @Test("A whole known to be wrong is seen by nobody, also while the disk stands still")
  func wrongChecksum() throws {
    let disk = try VersionOnDisk(length: 1)
    let environment = disk.environment
    let wanted = Checksum(algorithm: .sha256, digest: [UInt8](repeating: 0, count: 32))
    let version = VersionOnDisk.makeVersion(
      "w.bin", length: 1000, details: SourceDetails(checksum: wanted), in: environment)
    let segment = version.state.withLock {
      $0.version.addSegment(range: 0..<1000, isWhole: true, now: .now)
    }
    try version.storeBytes(0..<500, of: segment.id)
    let still = StandingDisk(environment)
    try version.storeBytes(500..<1000, of: segment.id)
    version.state.withLock { $0.version.removeSegment(segment.id) }
    let isFailed = waitUntil {
      if case .failed(let error) = attempt(0..<100, of: version) {
        error.code == .corrupt
      } else {
        false
      }
    }
    #expect(isFailed)
    #expect(version.presentExtents == [])
    #expect(environment.storage.isStuck)
    still.move()
    #expect(waitUntil { !version.isInUse })
    #expect(try environment.cache.openEntry(version.file.cacheKey) == nil)
  }

  @Test("Whatever opens the entry answers the reads that wait for what its record has")
  func wokenByRecord() throws {
    for opening in 0..<2 {
      let disk = try VersionOnDisk(length: 1000)
      let version = disk.version
      // No request is sent.
      version.state.withLock { $0.version.awaitLocation(SegmentID(rawValue: 0)) }
      try version.storeBytes(0..<500)
      VersionCheckpoints(owner: version).commitFinally()
      let reply = KeptReply()
      if opening == 0 {
        // As after a failed look-up.
        #expect(version.releaseIdleEntry())
        VersionReads(owner: version).wait(for: 0..<100, reply: reply)
        try version.storeBytes(500..<600)
      } else {
        try version.storeBytes(500..<600)
        let entry = try #require(version.state.withLock { $0.entry })
        _ = version.state.withLock { $0.loseCached(0..<1000) }
        VersionReads(owner: version).wait(for: 0..<100, reply: reply)
        VersionCheckpoints(owner: version).discardUncommitted(of: entry)
      }
      #expect(waitUntil { reply.byteCount == 100 })
      version.abandon()
    }
  }

  @Test("Bytes that a sync has lost are not believed by whoever opens the record next")
  func lostSync() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    let checkpoints = VersionCheckpoints(owner: version)
    try version.storeBytes(0..<500)
    checkpoints.commitFinally()
    try version.storeBytes(500..<1000)
    // A pipe cannot be synced.
    var ends: [CInt] = [0, 0]
    #expect(pipe(&ends) == 0)
    let data = try #require(version.state.withLock { $0.entry?.dataDescriptor })
    #expect(dup2(ends[0], data) == data)
    for end in ends { close(end) }
    let still = StandingDisk(disk.environment)
    let ticket = try #require(checkpoints.beginCheckpoint(now: .now, interval: .zero))
    #expect(checkpoints.syncData(ticket) == nil)
    checkpoints.endCheckpoint()
    // The entry is released before the storage queue reaches it.
    #expect(version.releaseIdleEntry())
    still.move()
    try EntryLoader(owner: version).bring(create: false)
    #expect(version.presentExtents == [0..<500])
    #expect(version.state.withLock { !$0.hasLostSync })
  }

  @Test("An entry that was given up stays open for its readers, and is closed after them")
  func givenUpEntry() throws {
    let disk = try VersionOnDisk(length: 1000)
    let version = disk.version
    try version.storeBytes(0..<100)
    weak let weakEntry = version.state.withLock { $0.entry }
    guard case .present(let bytes) = VersionReads(owner: version).attempt(0..<100) else {
      Issue.record("the bytes are not there")
      return
    }
    _ = version.state.withLock { $0.giveUpEntry() }
    try version.storeBytes(100..<200)
    #expect(version.presentExtents == [100..<200])
    try withExtendedLifetime(bytes) {
      let descriptor = try #require(bytes.pieces.first?.descriptor)
      #expect(weakEntry?.dataDescriptor == descriptor)
    }
    _ = consume bytes
    #expect(weakEntry == nil)
  }

  @Test(
    "The kernel is told to forget wrong bytes though what was asked for before waits for the disk")
  func droppedAtOnce() throws {
    let disk = try VersionOnDisk(length: 1000)
    let gate = DispatchSemaphore(value: 0)
    let dropped = DispatchSemaphore(value: 0)
    disk.files.onContentDropped { _ in dropped.signal() }
    disk.environment.background { gate.wait() }
    disk.environment.recordDropped(disk.version.id)
    #expect(dropped.wait(timeout: .now() + .seconds(10)) == .success)
    gate.signal()
  }

  /// Records how many bytes a read has received.
  private final class KeptReply: ReadReply {
    private let count = Mutex<Int?>(nil)
    var byteCount: Int? { count.withLock { $0 } }

    func succeed(_ bytes: PresentBytes) { count.withLock { $0 = bytes.byteCount } }
    func fail(_ error: FileError) {}
  }
}
