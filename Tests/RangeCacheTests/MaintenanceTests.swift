import ExtentRecord
import Foundation
import HTTPTransferCore
import RangeCache
import SeededRandom
import Testing

/// The holder of a cache can verify, repair and empty it.
@Suite struct MaintenanceTests {
  let root: TemporaryDirectory
  let directory: CacheDirectory
  let inventory: CacheInventory
  let key = CacheKey("http://example.org/a.bin")

  init() throws {
    root = try TemporaryDirectory()
    directory = try CacheDirectory(path: root.path + "/cache")
    inventory = try CacheInventory(path: root.path + "/cache")
  }

  /// Stores blocks of 1,000 bytes, and commits those before `committed`.
  private func store(blockCount: Int64, committed: Int64, key: CacheKey? = nil) throws {
    let entry = try directory.createEntry(
      key ?? self.key,
      version: ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: 100_000),
      source: "http://example.org/a.bin")
    for block in 0..<blockCount {
      try entry.storePattern(block * 1000..<(block + 1) * 1000)
      if block + 1 == committed { try entry.checkpoint(fetchedByteCount: 7000) }
    }
  }

  private func stored() throws -> StoredEntry {
    try #require(try inventory.entries().first { $0.name == key.hex })
  }

  /// Inverts one bit of the data file.
  private func flipBit(at offset: Int64) throws {
    let path = try root.dataPath()
    var bytes = try readFile(path)
    bytes[Int(offset)] ^= 0x10
    try writeFile(path, bytes)
  }

  @Test("Every damaged block is found and struck, and nothing else", arguments: 1...20)
  func randomDamage(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let committed = Int64.random(in: 1...30, using: &random)
    try store(blockCount: 30, committed: committed)
    let fetched = 7000 + (30 - committed) * 1000
    let damaged = Set((0..<5).map { _ in Int64.random(in: 0..<30, using: &random) })
    for block in damaged {
      try flipBit(at: block * 1000 + .random(in: 0..<1000, using: &random))
    }
    let before = try readFile(root.recordPath())
    let lastUse = try stored().lastUse.seconds
    let found = try #require(try directory.check(try stored(), repairing: false))
    #expect(found.claimedByteCount == 30_000)
    #expect(found.damagedByteCount == Int64(damaged.count) * 1000)
    #expect(!found.isRecordDamaged)
    #expect(try readFile(root.recordPath()) == before)
    #expect(try stored().lastUse.seconds == lastUse)

    #expect(try directory.check(try stored(), repairing: true) == found)
    let clean = try #require(try directory.check(try stored(), repairing: false))
    #expect(!clean.isDamaged)
    #expect(clean.claimedByteCount == 30_000 - Int64(damaged.count) * 1000)
    let entry = try #require(try directory.openEntry(key))
    let intact = (0..<Int64(30)).filter { !damaged.contains($0) }.map {
      $0 * 1000..<($0 + 1) * 1000
    }
    #expect(entry.recoveredExtents == ExtentSet(intact))
    #expect(entry.believedExtents == ExtentSet(intact.filter { $0.lowerBound < committed * 1000 }))
    #expect(entry.recoveredVersion.completeLength == 100_000)
    // The count of fetched bytes stays, except for bytes stored since the last commit.
    let lost = Int64(damaged.filter { $0 >= committed }.count) * 1000
    #expect((fetched - lost...fetched).contains(entry.recoveredFetchedByteCount))
    #expect(entry.holdsPattern(entry.recoveredExtents))
  }

  @Test("What is intact is left as it is by a repair, too")
  func intact() throws {
    try store(blockCount: 5, committed: 3)
    let before = try readFile(root.recordPath())
    let check = try #require(try directory.check(try stored(), repairing: true))
    #expect(!check.isDamaged)
    #expect(check.claimedByteCount == 5000)
    #expect(try readFile(root.recordPath()) == before)
  }

  @Test("Bytes that were stored again after damage are intact, whatever the older claim's fate")
  func storedAgain() throws {
    try store(blockCount: 3, committed: 3)
    try flipBit(at: 1500)
    let entry = try #require(try directory.openEntry(key))
    try entry.storePattern(1000..<1400)
    #expect(try directory.check(try stored(), repairing: false)?.damagedByteCount == 600)
    try entry.storePattern(1400..<2000)
    #expect(try directory.check(try stored(), repairing: false)?.isDamaged == false)
  }

  @Test("The end of a cut data file is damaged, and struck")
  func cutData() throws {
    try store(blockCount: 5, committed: 5)
    #expect(truncate(try root.dataPath(), 3500) == 0)
    #expect(try directory.check(try stored(), repairing: true)?.damagedByteCount == 2000)
    #expect(try directory.openEntry(key)?.recoveredExtents.extents == [0..<3000])
  }

  @Test("Garbage in the log is told, and cut off by a repair")
  func garbageInLog() throws {
    try store(blockCount: 5, committed: 5)
    let path = try root.recordPath()
    // The last records are an EXTENT and the COMMIT; 48 bytes each.
    var bytes = try readFile(path)
    bytes[bytes.count - 60] ^= 1
    try writeFile(path, bytes)
    let check = try #require(try directory.check(try stored(), repairing: true))
    #expect(check.isRecordDamaged)
    #expect(check.damagedByteCount == 0)
    #expect(check.claimedByteCount == 4000)
    #expect(try directory.check(try stored(), repairing: false)?.isDamaged == false)
  }

  @Test("An entry whose header or data file is lost is removed by a repair, and not before")
  func useless() throws {
    try store(blockCount: 2, committed: 2)
    let path = try root.recordPath()
    var bytes = try readFile(path)
    bytes[40] ^= 1
    try writeFile(path, bytes)
    #expect(try directory.check(try stored(), repairing: false)?.isRecordDamaged == true)
    #expect(try readFile(path) == bytes)
    #expect(try directory.check(try stored(), repairing: true)?.isRecordDamaged == true)
    #expect(try inventory.entries().isEmpty)

    try store(blockCount: 2, committed: 2)
    try FileManager.default.removeItem(atPath: try root.dataPath())
    #expect(try directory.check(try stored(), repairing: true)?.damagedByteCount == 2000)
    #expect(try inventory.entries().isEmpty)
  }

  @Test("A record of a later version is neither judged nor repaired")
  func laterFormat() throws {
    try store(blockCount: 2, committed: 2)
    let path = try root.recordPath()
    var bytes = try readFile(path)
    bytes[8] = 2
    let (end, salt) = bytes.withUnsafeBytes {
      (
        Int($0.loadUnaligned(fromByteOffset: 12, as: UInt32.self)) - 8,
        $0.loadUnaligned(fromByteOffset: 16, as: UInt64.self)
      )
    }
    let checksum = bytes[..<end].withUnsafeBytes { ContentHash.hash($0, seed: salt) }
    withUnsafeBytes(of: checksum.littleEndian) { bytes.replaceSubrange(end..<(end + 8), with: $0) }
    try writeFile(path, bytes)
    #expect(try inventory.head(of: try stored()) == .laterFormat)
    #expect(try directory.check(try stored(), repairing: true) == nil)
    #expect(try readFile(path) == bytes)
  }

  @Test("A removal frees the entry's bytes and leaves other entries and foreign files")
  func removal() throws {
    try store(blockCount: 20, committed: 20)
    let otherKey = CacheKey("http://example.org/b.bin")
    try store(blockCount: 20, committed: 20, key: otherKey)
    let all = directory.allocatedByteCount
    let entry = try stored()
    #expect(try directory.remove(entry) == entry.allocatedByteCount)
    #expect(directory.allocatedByteCount == all - entry.allocatedByteCount)
    #expect(try directory.openEntry(key) == nil)
    let other = try #require(try directory.openEntry(otherKey))
    #expect(other.recoveredExtents.extents == [0..<20_000])
    // No trace of the removed entry is left, not even the directory that grouped it.
    #expect(root.files { $0 == String(key.hex.prefix(2)) }.isEmpty)

    try store(blockCount: 1, committed: 1)
    let notes = root.files { $0 == "record" }.map {
      ($0 as NSString).deletingLastPathComponent + "/notes.txt"
    }
    for path in notes { try writeFile(path, [1]) }
    for entry in try inventory.entries() { try directory.remove(entry) }
    #expect(notes.count == 2)
    #expect(root.files { $0 == "notes.txt" } == notes.sorted())
    #expect(root.files { $0 == "record" || $0.hasPrefix("data-") }.isEmpty)
  }

  @Test("A removal that fails says so")
  func failedRemoval() throws {
    try store(blockCount: 1, committed: 1)
    let path = try root.recordPath()
    try FileManager.default.removeItem(atPath: path)
    // An object that unlink(2) cannot remove for any user.
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    let entry = try stored()
    let error = #expect(throws: CacheError.self) { try directory.remove(entry) }
    #expect(error?.path.hasSuffix(String(key.hex.dropFirst(2))) == true)
  }
}
