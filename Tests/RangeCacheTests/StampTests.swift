import ExtentRecord
import Foundation
import Glibc
import HTTPTransferCore
import LinuxSystem
import Testing

@testable import RangeCache

/// A stamp saves a later process the verification of all bytes.
///
/// It is valid as long as the data file is unchanged under the same kernel.
@Suite struct StampTests {
  let root: TemporaryDirectory
  let directory: CacheDirectory
  let key = CacheKey("http://example.org/a.bin")

  private static let byteCount: Int64 = 5000
  private static let boot = "c0ffee00-0000-4000-8000-000000000001"
  /// A time by which a file that is written now has settled.
  private static var later: Duration { ProcessCalls.timeOfDay + .seconds(10) }

  init() throws {
    root = try TemporaryDirectory()
    directory = try CacheDirectory(path: root.path + "/cache", bootID: Self.boot)
    // If this fails, the temporary directory is on a file system that is not trusted.
    try #require(directory.context.stamps.bootID == Self.boot)
  }

  // MARK: What it is good for

  @Test("After a stamp nothing is left to be verified; without one all is")
  func believed() throws {
    try commit()
    #expect(try opened().believedExtents.extents == [0..<Self.byteCount])
    #expect(
      try opened().appendFingerprint(fetchedByteCount: Self.byteCount, now: Self.later) == .stamped)
    let entry = try opened()
    #expect(entry.believedExtents.isEmpty)
    #expect(entry.recoveredExtents.extents == [0..<Self.byteCount])
    #expect(entry.recoveredFetchedByteCount == Self.byteCount)
    #expect(!entry.awaitsFingerprint)
  }

  @Test("The writer of the bytes can stamp them at once")
  func byWriter() throws {
    let entry = try commit()
    #expect(entry.awaitsFingerprint)
    #expect(try entry.appendFingerprint(fetchedByteCount: 0, now: Self.later) == .stamped)
    #expect(!entry.awaitsFingerprint)
    #expect(try isBelieved())
  }

  @Test("Reading, syncing and being opened again keep it, as does another use of the directory")
  func kept() throws {
    try stamped()
    _ = try readFile(root.dataPath())
    #expect(try opened().verify(0..<Self.byteCount).damaged.isEmpty)
    try opened().checkpointNothing()
    directory.touch(key)
    #expect(try directory.audit(key)?.damaged.isEmpty == true)
    #expect(try isBelieved())
  }

  // MARK: Why it is not believed: the data file

  /// The possible changes of the data file, each in its smallest visible form.
  enum Change: String, CaseIterable {
    case flippedBit, sameByteWritten, mappedWrite, cut, cutAndGrown, grown, holePunched
    case exchangedForCopy, renamedAwayAndBack, modeSet, timesSetBack, linked
  }

  @Test("Whatever is done to the data file ends it", arguments: Change.allCases)
  func changed(_ change: Change) throws {
    try stamped()
    #expect(try isBelieved())
    try apply(change, to: root.dataPath())
    #expect(try !isBelieved(), "\(change)")
    // The file can be stamped again after its verification.
    let entry = try opened()
    if try entry.verify(0..<Self.byteCount).damaged.isEmpty {
      #expect(try entry.appendFingerprint(fetchedByteCount: 0, now: Self.later) == .stamped)
      #expect(try isBelieved())
    }
  }

  private func apply(_ change: Change, to path: String) throws {
    let descriptor = Glibc.open(path, O_RDWR)
    try #require(descriptor >= 0)
    defer { Glibc.close(descriptor) }
    var byte = Pattern.byte(at: 2500)
    switch change {
    case .flippedBit:
      byte ^= 0x10
      try #require(pwrite(descriptor, &byte, 1, 2500) == 1)
      // As an attacker would hide a change.
      var times = [timespec(tv_sec: 1, tv_nsec: 0), timespec(tv_sec: 1, tv_nsec: 0)]
      try #require(futimens(descriptor, &times) == 0)
    case .sameByteWritten: try #require(pwrite(descriptor, &byte, 1, 2500) == 1)
    case .mappedWrite:
      let pages = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
      try #require(pages != MAP_FAILED)
      pages?.storeBytes(of: byte ^ 0x10, toByteOffset: 2500, as: UInt8.self)
      try #require(msync(pages, 4096, MS_SYNC) == 0)
      munmap(pages, 4096)
    case .cut: try #require(ftruncate(descriptor, 4999) == 0)
    case .cutAndGrown:
      try #require(ftruncate(descriptor, 100) == 0 && ftruncate(descriptor, 5000) == 0)
    case .grown: try #require(ftruncate(descriptor, 5001) == 0)
    case .holePunched: try FileSystemCalls.punchHole(descriptor, 0, byteCount: 4096)
    case .exchangedForCopy:
      try #require(rename(path, path + ".old") == 0)
      let copy = try ProcessOutput.of("/bin/cp", ["--preserve=all", path + ".old", path])
      try #require(copy == 0)
    case .renamedAwayAndBack:
      try #require(rename(path, path + ".old") == 0 && rename(path + ".old", path) == 0)
    case .modeSet: try #require(fchmod(descriptor, 0o600) == 0)
    case .timesSetBack:
      var status = stat()
      try #require(fstat(descriptor, &status) == 0)
      var times = [status.st_atim, status.st_mtim]
      try #require(futimens(descriptor, &times) == 0)
    case .linked: try #require(link(path, root.path + "/link") == 0)
    }
  }

  // MARK: Why it is not believed: the kernel

  @Test("Another kernel, or one that does not say which, does not believe it")
  func otherBoot() throws {
    try stamped()
    let path = directory.path
    for boot in ["c0ffee00-0000-4000-8000-000000000002", nil] {
      let copy = root.path + "/cache-" + (boot ?? "none")
      // The first directory's lock is held: use the same files under another name.
      try FileManager.default.createDirectory(
        atPath: copy, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
      try #require(rename(path + "/v1", copy + "/v1") == 0)
      let later = try CacheDirectory(path: copy, bootID: boot)
      let entry = try #require(try later.openEntry(key))
      #expect(entry.believedExtents.extents == [0..<Self.byteCount])
      #expect(entry.awaitsFingerprint == (boot != nil))
      try #require(rename(copy + "/v1", path + "/v1") == 0)
    }
    #expect(try isBelieved())
  }

  @Test("The system's own boot has a name")
  func bootID() {
    #expect(ProcessCalls.bootID()?.utf8.count == 36)
  }

  @Test("Every part of a stamp, the boot and the record count")
  func parts() {
    let stamp = FileFingerprint(
      mount: 1, device: 2, inode: 3, byteCount: 4, modified: .seconds(5), changed: .seconds(6))
    let digest = stamp.digest(bootID: "a", salt: 7)
    #expect(stamp.digest(bootID: "a", salt: 7) == digest)
    #expect(stamp.digest(bootID: "b", salt: 7) != digest)
    #expect(stamp.digest(bootID: "a", salt: 8) != digest)
    let others: [(inout FileFingerprint) -> Void] = [
      { $0.mount += 1 }, { $0.device += 1 }, { $0.inode += 1 }, { $0.byteCount += 1 },
      { $0.modified += .nanoseconds(1) }, { $0.changed += .nanoseconds(1) },
      { $0.changed += .seconds(1) },
    ]
    for change in others {
      var other = stamp
      change(&other)
      #expect(other.digest(bootID: "a", salt: 7) != digest)
      #expect(other != stamp)
    }
  }

  // MARK: Why it is not believed: the record

  @Test("It ends with the next record, whichever that is")
  func nextRecord() throws {
    let steps: [(CacheEntry) throws -> Void] = [
      { try $0.checkpoint(fetchedByteCount: 1) },
      { try $0.recordCompleteLength(Self.byteCount) },
      {
        try $0.storePattern(0..<10)
        try $0.checkpoint(fetchedByteCount: 1)
      },
    ]
    for step in steps {
      let entry = try stamped()
      try step(entry)
      #expect(entry.awaitsFingerprint)
      #expect(try !isBelieved())
    }
  }

  @Test("It ends where the log does not end with it, and in a record that is written anew")
  func damagedLog() throws {
    try stamped()
    let path = try root.recordPath()
    let record = try readFile(path)
    try writeFile(path, record + [UInt8](repeating: 7, count: 20))
    #expect(try !isBelieved())
    // The effect of that opening.
    #expect(try !isBelieved())
  }

  @Test("A record without its last one, or with a damaged last one, has no stamp")
  func cutLog() throws {
    try stamped()
    let path = try root.recordPath()
    let record = try readFile(path)
    try writeFile(path, Array(record.dropLast(LogRecord.byteCount)))
    #expect(try !isBelieved())
    var damaged = record
    damaged[damaged.count - 1] ^= 1
    try writeFile(path, damaged)
    #expect(try !isBelieved())
  }

  @Test("After a failed sync nothing is believed for its stamp")
  func discard() throws {
    try stamped()
    let entry = try #require(try directory.openEntry(key, uncommitted: .discard))
    #expect(entry.believedExtents.extents == [0..<Self.byteCount])
  }

  // MARK: When none is written

  @Test("Nothing is stamped that is not committed, nor once another object records")
  func uncommitted() throws {
    let entry = try commit()
    try entry.storePattern(0..<10)
    #expect(!entry.awaitsFingerprint)
    #expect(try entry.appendFingerprint(fetchedByteCount: 0, now: Self.later) == .impossible)
    try entry.checkpoint(fetchedByteCount: 0)
    let second = try opened()
    #expect(!entry.awaitsFingerprint)
    #expect(try entry.appendFingerprint(fetchedByteCount: 0, now: Self.later) == .impossible)
    #expect(second.awaitsFingerprint)
  }

  @Test("A file that somebody else has changed since it was opened is not stamped")
  func foreignChange() throws {
    try commit()
    let entry = try opened()
    try apply(.sameByteWritten, to: root.dataPath())
    #expect(try entry.appendFingerprint(fetchedByteCount: 0, now: Self.later) == .impossible)
    #expect(entry.dataStamp == nil)
    #expect(!entry.awaitsFingerprint)
  }

  @Test("A change by somebody else between two of the writer's own is noticed")
  func foreignChangeBetween() throws {
    let entry = try commit()
    // Changes within one tick of the file system's clock cannot be distinguished.
    usleep(20_000)
    try apply(.flippedBit, to: root.dataPath())
    usleep(20_000)
    try entry.storePattern(4000..<5000)
    try entry.checkpoint(fetchedByteCount: 0)
    #expect(try entry.appendFingerprint(fetchedByteCount: 0, now: Self.later) == .impossible)
    #expect(try !isBelieved())
  }

  @Test("A file that was written just now is stamped later, one of the future never")
  func settling() throws {
    let entry = try commit()
    let changed = try #require(entry.dataStamp?.changed)
    #expect(
      try entry.appendFingerprint(fetchedByteCount: 0, now: changed + .milliseconds(10))
        == .tooEarly(.milliseconds(40)))
    #expect(entry.awaitsFingerprint)
    #expect(
      try entry.appendFingerprint(fetchedByteCount: 0, now: changed + .milliseconds(50)) == .stamped
    )
    let other = try commit()
    let written = try #require(other.dataStamp?.changed)
    #expect(
      try other.appendFingerprint(fetchedByteCount: 0, now: written - .seconds(60)) == .impossible)
    #expect(!other.awaitsFingerprint)
  }

  @Test("Where times are of whole seconds, a file settles for longer")
  func coarseTimes() {
    let stamp = FileFingerprint(
      mount: 1, device: 2, inode: 3, byteCount: 4, modified: .seconds(5), changed: .seconds(6))
    #expect(stamp.settling(at: .seconds(8)) == .after(.seconds(1)))
    #expect(stamp.settling(at: .seconds(9)) == .settled)
    #expect(stamp.settling(at: .milliseconds(5900)) == .never)
  }

  // MARK: Looks at all bytes

  @Test(
    "A look at all bytes finds what a stamp does not show, and ends it", arguments: [true, false])
  func damageWithoutChange(byAudit: Bool) throws {
    try stamped()
    // As if the disk had changed a bit: the hash differs, the file's times do not.
    let path = try root.recordPath()
    var record = try readFile(path)
    let start = try #require(
      record.withUnsafeBytes { RecordHeader.byteCount(ofHeaderStartingWith: $0) })
    let salt = record.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: UInt64.self) }
    let forged = LogRecord.extent(offset: 0, byteCount: Self.byteCount, contentHash: 1)
    withUnsafeBytes(of: forged.encoded(sequence: 1, salt: salt)) {
      record.replaceSubrange(start..<(start + LogRecord.byteCount), with: $0)
    }
    try writeFile(path, record)
    #expect(try isBelieved())
    if byAudit {
      #expect(try directory.audit(key)?.damaged.extents == [0..<Self.byteCount])
    } else {
      let inventory = try CacheInventory(path: directory.path)
      let stored = try #require(try inventory.entries().first)
      #expect(try directory.check(stored, repairing: false)?.damagedByteCount == Self.byteCount)
    }
    #expect(try !isBelieved())
    #expect(try opened().verify(0..<Self.byteCount).damaged.extents == [0..<Self.byteCount])
  }

  // MARK: What they share

  /// A new entry of one committed extent.
  @discardableResult
  private func commit() throws -> CacheEntry {
    let entry = try directory.createEntry(
      key,
      version: ContentVersion(
        entityTag: EntityTag(opaque: "v1"), completeLength: Self.byteCount),
      source: "")
    try entry.storePattern(0..<Self.byteCount)
    try entry.checkpoint(fetchedByteCount: Self.byteCount)
    return entry
  }

  /// A new entry with a stamp.
  @discardableResult
  private func stamped() throws -> CacheEntry {
    let entry = try commit()
    try #require(
      try entry.appendFingerprint(fetchedByteCount: Self.byteCount, now: Self.later) == .stamped)
    // A change must not fall into the clock tick in which the bytes were written.
    usleep(20_000)
    return entry
  }

  private func opened() throws -> CacheEntry { try #require(try directory.openEntry(key)) }

  /// Whether an opening finds all bytes, and none left to verify.
  private func isBelieved() throws -> Bool {
    let entry = try opened()
    return entry.recoveredExtents.extents == [0..<Self.byteCount] && entry.believedExtents.isEmpty
  }
}

extension CacheEntry {
  /// Syncs the stored bytes without a record.
  fileprivate func checkpointNothing() throws {
    _ = try syncData()
    try syncRecord()
  }
}

/// Runs a program to its end.
private enum ProcessOutput {
  static func of(_ path: String, _ arguments: [String]) throws -> Int32 {
    let process = Process()
    process.executableURL = URL(filePath: path)
    process.arguments = arguments
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
