import Dispatch
import Glibc
import HTTPTransfer
import HTTPTransferCore
import RangeCache
import Synchronization
import Testing

@testable import RemoteFiles

/// A hash proves only the bytes that were read for it, and only while they are present.
@Suite struct HashedBytesTests {
  private static let mebibyte: Int64 = 1 << 20

  private func digest(byteCount: Int64) -> Checksum {
    let running = RunningDigest(.sha256)
    let bytes = [UInt8](repeating: 7, count: Int(byteCount))
    bytes.withUnsafeBytes { running.update($0) }
    return running.finish()
  }

  /// A version of two pieces of 1 MiB.
  private func pieces() throws -> VersionOnDisk {
    let hashes = try #require(
      PieceHashes(
        algorithm: .sha256, pieceByteCount: Self.mebibyte,
        digests: Array(repeating: digest(byteCount: Self.mebibyte).digest, count: 2)))
    let disk = try VersionOnDisk(
      length: 2 * Self.mebibyte, details: SourceDetails(pieces: hashes))
    // Like a handle: the entry is not released.
    disk.version.state.withLock { $0.holdCount += 1 }
    return disk
  }

  /// Waits until all due bytes are hashed and the results are applied.
  private func finishHashing(_ disk: VersionOnDisk) {
    let done = DispatchSemaphore(value: 0)
    disk.environment.hashPiece { done.signal() }
    done.wait()
    disk.environment.hashFile { done.signal() }
    done.wait()
    disk.environment.storage.finish()
  }

  private func dataDescriptor(_ version: RemoteVersion) throws -> CInt {
    try #require(version.state.withLock { $0.entry?.dataDescriptor })
  }

  @Test("A piece whose bytes are all there is present when it was hashed")
  func right() throws {
    let disk = try pieces()
    try disk.version.storeBytes(0..<Self.mebibyte)
    finishHashing(disk)
    #expect(disk.version.presentExtents == [0..<Self.mebibyte])
  }

  @Test("What somebody has cut before it was hashed says nothing of a server, and is absent")
  func cutBeforeHash() throws {
    let disk = try pieces()
    let version = disk.version
    let gate = DispatchSemaphore(value: 0)
    disk.environment.hashPiece { gate.wait() }
    try version.storeBytes(0..<Self.mebibyte)
    #expect(ftruncate(try dataDescriptor(version), 4096) == 0)
    gate.signal()
    finishHashing(disk)
    let state = version.snapshot()
    #expect(state.extents.isEmpty)
    #expect(state.pieces?.failureCount(ofPiece: 0) == 0)
    // A truncated file does not mean a disk that returns no data.
    #expect(!version.state.withLock { $0.isUncacheable })
    try version.storeBytes(0..<Self.mebibyte)
    finishHashing(disk)
    #expect(version.presentExtents == [0..<Self.mebibyte])
  }

  @Test("What somebody has cut of a piece that is still arriving is absent, not zeros")
  func cutWhileArriving() throws {
    let disk = try pieces()
    let version = disk.version
    let half = Self.mebibyte / 2
    try version.storeBytes(0..<half)
    #expect(ftruncate(try dataDescriptor(version), 4096) == 0)
    // This extends the file again.
    try version.storeBytes(half..<Self.mebibyte)
    finishHashing(disk)
    let pieces = try #require(version.snapshot().pieces)
    #expect(pieces.arrived.extents == [0..<4096, half..<Self.mebibyte])
    #expect(pieces.failureCount(ofPiece: 0) == 0)
    try version.storeBytes(4096..<half)
    finishHashing(disk)
    #expect(version.presentExtents == [0..<Self.mebibyte])
  }

  @Test("A right piece in memory is read there")
  func rightInMemory() throws {
    let disk = try pieces()
    let version = disk.version
    disk.environment.health.recordFailure("test")
    try version.storeBytes(0..<Self.mebibyte)
    finishHashing(disk)
    #expect(version.presentExtents == [0..<Self.mebibyte])
    #expect(version.state.withLock { $0.spill?.extents.extents } == [0..<Self.mebibyte])
    #expect(version.snapshot().content.spilledByteCount == Self.mebibyte)
  }

  @Test("A wrong piece in memory is read in the cache when the right one is there")
  func wrongInMemory() throws {
    let disk = try pieces()
    let version = disk.version
    // After any failure, the cache accepts no bytes for a while.
    disk.environment.health.recordFailure("test")
    try version.storeBytes(0..<Self.mebibyte, value: 9)
    finishHashing(disk)
    #expect(version.presentExtents == [])
    #expect(version.state.withLock { $0.spill?.extents.isEmpty } == true)
    disk.environment.health.recordSuccess()
    // Of a piece that was wrong, only a stream or the request for the piece alone counts.
    try version.storeBytes(0..<Self.mebibyte)
    finishHashing(disk)
    #expect(version.presentExtents == [])
    let stream = version.state.withLock {
      $0.version.addSegment(PlannedRequest(range: 0..<Self.mebibyte, isWhole: true), now: .now).id
    }
    try version.storeBytes(0..<Self.mebibyte, of: stream)
    finishHashing(disk)
    #expect(version.presentExtents == [0..<Self.mebibyte])
    let located = version.state.withLock { $0.locate(0..<Self.mebibyte) }
    #expect(located.pieces.map(\.descriptor) == [try dataDescriptor(version)])
    #expect(located.lease == nil)
  }

  @Test("A checksum says nothing of bytes that have come since they were hashed")
  func replacedAfterHash() throws {
    let disk = try VersionOnDisk(
      length: 1000, details: SourceDetails(checksum: digest(byteCount: 1000)))
    let version = disk.version
    version.state.withLock { $0.holdCount += 1 }
    let gate = DispatchSemaphore(value: 0)
    disk.environment.storage.perform { gate.wait() }
    try version.storeBytes(0..<1000)
    let hashed = DispatchSemaphore(value: 0)
    disk.environment.hashFile { hashed.signal() }
    hashed.wait()
    let entry = try #require(version.state.withLock { $0.entry })
    #expect(CacheVerifier(owner: version).forget(from: 0, of: entry))
    try version.storeBytes(0..<1000, value: 9)
    gate.signal()
    disk.environment.storage.finish()
    #expect(!version.state.withLock { $0.fileChecksum.isRight })
    // They are hashed without a reader, and are wrong.
    finishHashing(disk)
    #expect(version.presentExtents == [])
  }

  /// A version of 1000 bytes with a checksum, all of which are in memory and hashed.
  ///
  /// The result of the hash is applied when `gate` is signalled.
  private func hashedInMemory(until gate: DispatchSemaphore) throws -> VersionOnDisk {
    let disk = try VersionOnDisk(
      length: 1000, details: SourceDetails(checksum: digest(byteCount: 1000)))
    disk.environment.storage.perform { gate.wait() }
    disk.environment.health.recordFailure("test")
    try disk.version.storeBytes(0..<1000)
    let hashed = DispatchSemaphore(value: 0)
    disk.environment.hashFile { hashed.signal() }
    hashed.wait()
    return disk
  }

  @Test("A checksum says nothing of bytes in memory that have come since they were hashed")
  func replacedInMemoryAfterHash() throws {
    let gate = DispatchSemaphore(value: 0)
    let disk = try hashedInMemory(until: gate)
    let version = disk.version
    let file = try #require(version.state.withLock { $0.spill?.file })
    #expect(version.giveUpSpilled(0..<1000, in: file))
    try version.storeBytes(0..<1000, value: 9)
    gate.signal()
    disk.environment.storage.finish()
    #expect(!version.state.withLock { $0.fileChecksum.isRight })
    // They are hashed without a reader, and are wrong.
    finishHashing(disk)
    #expect(version.presentExtents == [])
  }

  @Test("What lies in memory is not fetched for the cache before its hash is taken up")
  func keptUntilHashed() throws {
    let gate = DispatchSemaphore(value: 0)
    let disk = try hashedInMemory(until: gate)
    let version = disk.version
    disk.environment.health.recordSuccess()
    #expect(!version.isKeptFromCache())
    #expect(version.presentExtents == [0..<1000])
    gate.signal()
    disk.environment.storage.finish()
    #expect(version.state.withLock { $0.fileChecksum.isRight })
    #expect(!version.isKeptFromCache())
    #expect(version.presentExtents == [])
  }

  @Test("After a wrong whole in memory the file is read ahead and prefetched as before")
  func wrongWholeInMemory() throws {
    let disk = try VersionOnDisk(
      length: 1000, details: SourceDetails(checksum: digest(byteCount: 1000)))
    let version = disk.version
    version.state.withLock { $0.holdCount += 1 }
    disk.environment.health.recordFailure("test")
    try version.storeBytes(0..<1000, value: 9)
    finishHashing(disk)
    #expect(version.presentExtents == [])
    #expect(version.state.withLock { $0.spill == nil })
    #expect(version.snapshot().pacing.readAheadLimit == nil)
  }

  @Test("A checkpoint of a whole that is found wrong meanwhile is no failure of the cache")
  func wrongDuringCheckpoint() throws {
    let disk = try VersionOnDisk(
      length: 1000, details: SourceDetails(checksum: digest(byteCount: 1000)))
    let version = disk.version
    version.state.withLock { $0.holdCount += 1 }
    try version.storeBytes(0..<500, value: 9)
    let checkpoints = VersionCheckpoints(owner: version)
    let ticket = try #require(checkpoints.beginCheckpoint(now: .now, interval: .zero))
    try version.storeBytes(500..<1000, value: 9)
    finishHashing(disk)
    #expect(version.presentExtents == [])
    if let checkpoint = checkpoints.syncData(ticket) {
      checkpoints.commit(ticket, checkpoint)
    }
    checkpoints.finishCheckpoint(ticket)
    disk.environment.storage.finish()
    #expect(disk.environment.health.mayStore())
  }

  /// The descriptor of this process for a file whose path contains `directory` and ends with
  /// `name`.
  private func descriptor(of name: String, below directory: String) -> CInt? {
    (3..<4096).first { number in
      var path = [CChar](repeating: 0, count: 1024)
      let count = readlink("/proc/self/fd/\(number)", &path, 1024)
      guard count > 0 else { return false }
      let text = String(decoding: path[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
      return text.contains(directory) && text.hasSuffix(name)
    }
  }

  @Test("A piece that its record has refused is not complete, and is fetched for the cache again")
  func refusedByRecord() throws {
    let disk = try pieces()
    let version = disk.version
    // Prevent a checkpoint: its commit would be refused, too.
    #expect(version.state.withLock { $0.checkpoint.beginStamp() })
    try version.storeBytes(0..<Self.mebibyte)
    finishHashing(disk)
    let directory = try #require(disk.path.split(separator: "/").last)
    let record = try #require(descriptor(of: "/record", below: String(directory)))
    let unwritable = open("/dev/null", O_RDONLY)
    #expect(dup2(unwritable, record) == record)
    close(unwritable)
    try version.storeBytes(Self.mebibyte..<(2 * Self.mebibyte))
    finishHashing(disk)
    #expect(version.isComplete)
    #expect(!version.isCompleteInCache)
    // The cache accepts bytes again, and no reader needs these just now.
    disk.environment.health.recordSuccess()
    version.state.withLock { $0.holdCount -= 1 }
    #expect(!version.isKeptFromCache())
    #expect(version.presentExtents == [0..<Self.mebibyte])
    #expect(version.state.withLock { !$0.isPartlyUncached })
  }
}
