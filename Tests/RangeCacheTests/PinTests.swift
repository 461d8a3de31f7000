import ExtentRecord
import Foundation
import HTTPTransferCore
import RangeCache
import Testing

/// A pinned entry is never evicted, now or later.
@Suite struct PinTests {
  let root: TemporaryDirectory
  let path: String
  let pinned = CacheKey("http://example.org/pinned.bin")
  let other = CacheKey("http://example.org/other.bin")

  init() throws {
    root = try TemporaryDirectory()
    path = root.path + "/cache"
  }

  private func store(_ key: CacheKey, in directory: CacheDirectory) throws {
    let entry = try directory.createEntry(
      key, version: ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: 10_000),
      source: "http://example.org/")
    try entry.storePattern(0..<10_000)
    try entry.checkpoint(fetchedByteCount: 10_000)
  }

  /// Inverts one bit of the only data file.
  private func flipBit(at offset: Int64) throws {
    let path = try root.dataPath()
    var bytes = try readFile(path)
    bytes[Int(offset)] ^= 0x10
    try writeFile(path, bytes)
  }

  private func keys(_ directory: CacheDirectory) throws -> Set<String> {
    Set(try CacheInventory(path: path).entries().map(\.name))
  }

  @Test("An eviction leaves what is pinned, also that of a later process")
  func eviction() throws {
    do {
      let directory = try CacheDirectory(path: path)
      directory.setPinned(true, pinned)
      try directory.storePin(true, of: pinned)
      #expect(directory.isPinned(pinned))
      #expect(!directory.isPinned(other))
    }
    let directory = try CacheDirectory(path: path)
    #expect(directory.pinnedKeys == [pinned])
    // The pin precedes the entry, and stays when the entry is replaced.
    try store(pinned, in: directory)
    try store(pinned, in: directory)
    try store(other, in: directory)
    directory.evict(downTo: 0) { _, remove in remove() }
    #expect(try keys(directory) == [pinned.hex])
    #expect(try CacheInventory(path: path).pinnedNames == [pinned.hex])
    directory.setPinned(false, pinned)
    try directory.storePin(false, of: pinned)
    directory.evict(downTo: 0) { _, remove in remove() }
    #expect(try keys(directory).isEmpty)
    #expect(try CacheInventory(path: path).pinnedNames.isEmpty)
  }

  @Test("A pin that was not stored is gone in a later process; unpinning twice is no error")
  func unstored() throws {
    do {
      let directory = try CacheDirectory(path: path)
      directory.setPinned(true, pinned)
      try directory.storePin(false, of: other)
    }
    #expect(try CacheDirectory(path: path).pinnedKeys.isEmpty)
  }

  @Test("Names that are no keys are ignored, and an explicit removal takes the pin along")
  func foreignNames() throws {
    let directory = try CacheDirectory(path: path)
    directory.setPinned(true, pinned)
    try directory.storePin(true, of: pinned)
    let pins = path + "/v1/pins"
    for name in ["README", "00", String(repeating: "z", count: 64), pinned.hex + "0"] {
      try Data().write(to: URL(fileURLWithPath: pins + "/" + name))
    }
    #expect(try CacheInventory(path: path).pinnedNames == [pinned.hex])
    try store(pinned, in: directory)
    let entry = try #require(try CacheInventory(path: path).entries().first)
    try directory.remove(entry)
    #expect(!directory.isPinned(pinned))
    #expect(try CacheInventory(path: path).pinnedNames.isEmpty)
  }

  @Test("An audit finds damaged bytes beside an entry that goes on recording, and changes nothing")
  func audit() throws {
    let directory = try CacheDirectory(path: path)
    let entry = try directory.createEntry(
      other, version: ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: 10_000),
      source: "http://example.org/")
    try entry.storePattern(0..<1000)
    try entry.storePattern(1000..<2000)
    try entry.checkpoint(fetchedByteCount: 2000)
    try entry.storePattern(5000..<6000)
    #expect(try #require(try directory.audit(other)).damaged.isEmpty)
    try flipBit(at: 1500)
    try flipBit(at: 5999)
    let audit = try #require(try directory.audit(other))
    #expect(audit.damaged.extents == [1000..<2000, 5000..<6000])
    #expect(audit.version.hasSameIdentity(as: entry.recoveredVersion))
    // The entry still records new bytes.
    try entry.storePattern(5000..<6000)
    #expect(try #require(try directory.audit(other)).damaged.extents == [1000..<2000])
    #expect(try directory.audit(pinned) == nil)
  }
}
