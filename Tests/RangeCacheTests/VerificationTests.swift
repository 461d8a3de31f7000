import ExtentRecord
import Foundation
import HTTPTransferCore
import SeededRandom
import Testing

@testable import RangeCache

/// Bytes that an earlier process has committed are verified before their use.
@Suite struct VerificationTests {
  let root: TemporaryDirectory
  let directory: CacheDirectory
  let key = CacheKey("http://example.org/a.bin")

  init() throws {
    root = try TemporaryDirectory()
    directory = try CacheDirectory(path: root.path + "/cache")
  }

  /// Creates an entry of committed blocks of 1,000 bytes, and opens it like a later process.
  private func reopened(blockCount: Int64) throws -> CacheEntry {
    try {
      let entry = try directory.createEntry(
        key, version: ContentVersion(entityTag: EntityTag(opaque: "v1")), source: "")
      for block in 0..<blockCount { try entry.storePattern(block * 1000..<(block + 1) * 1000) }
      try entry.checkpoint(fetchedByteCount: blockCount * 1000)
    }()
    return try #require(try directory.openEntry(key))
  }

  /// Inverts one bit of the data file.
  private func flipBit(at offset: Int) throws {
    let path = try root.dataPath()
    var bytes = try readFile(path)
    bytes[offset] ^= 0x10
    try writeFile(path, bytes)
  }

  @Test("What is committed is believed, what this process stored is not in question")
  func believed() throws {
    let entry = try reopened(blockCount: 3)
    #expect(entry.believedExtents.extents == [0..<3000])
    try entry.storePattern(3000..<4000)
    let again = try #require(try directory.openEntry(key))
    // No COMMIT covers the last block: the opening checked its hash.
    #expect(again.recoveredExtents.extents == [0..<4000])
    #expect(again.believedExtents.extents == [0..<3000])
  }

  @Test("A look at some bytes verifies the blocks that hold them")
  func wholeBlocks() throws {
    let entry = try reopened(blockCount: 5)
    let result = try entry.verify(1500..<2500)
    #expect(result.intact.extents == [1000..<3000])
    #expect(result.damaged.isEmpty)
  }

  @Test("A flipped bit is found in its block alone", arguments: [0, 1999, 2000, 2500, 2999, 4999])
  func flippedBit(offset: Int) throws {
    let entry = try reopened(blockCount: 5)
    try flipBit(at: offset)
    // The entry's descriptor refers to the file from before the flip, which replaced it.
    let fresh = try #require(try directory.openEntry(key))
    let result = try fresh.verify(0..<5000)
    let block = Int64(offset / 1000) * 1000
    #expect(result.damaged.extents == [block..<(block + 1000)])
    #expect(result.intact.byteCount == 4000)
    withExtendedLifetime(entry) {}
  }

  @Test("A block that was stored again is right again, whatever the older claim's fate")
  func storedAgain() throws {
    _ = try reopened(blockCount: 5)
    try flipBit(at: 2500)
    let entry = try #require(try directory.openEntry(key))
    #expect(try entry.verify(2000..<3000).damaged.extents == [2000..<3000])
    // Only half of it: the older claim stays false.
    try entry.storePattern(2000..<2400)
    try entry.checkpoint(fetchedByteCount: 5400)
    let half = try #require(try directory.openEntry(key))
    let result = try half.verify(2000..<3000)
    #expect(result.intact.extents == [2000..<2400])
    #expect(result.damaged.extents == [2400..<3000])
    try half.storePattern(2400..<3000)
    try half.checkpoint(fetchedByteCount: 6000)
    let whole = try #require(try directory.openEntry(key))
    #expect(try whole.verify(0..<5000).damaged.isEmpty)
  }

  @Test("Bytes past the end of a cut data file, and those that nobody recorded, are damaged")
  func cutFile() throws {
    let entry = try reopened(blockCount: 5)
    #expect(entry.dataByteCount == 5000)
    #expect(ftruncate(entry.dataDescriptor, 3500) == 0)
    #expect(entry.dataByteCount == 3500)
    let result = try entry.verify(2500..<7000)
    #expect(result.intact.extents == [2000..<3000])
    #expect(result.damaged.extents == [3000..<7000])
  }

  @Test("Every random look finds exactly the damaged blocks", arguments: 1...20)
  func randomDamage(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    _ = try reopened(blockCount: 40)
    let damaged = Set((0..<5).map { _ in Int64.random(in: 0..<40, using: &random) })
    for block in damaged {
      try flipBit(at: Int(block) * 1000 + .random(in: 0..<1000, using: &random))
    }
    let entry = try #require(try directory.openEntry(key))
    for _ in 0..<50 {
      let start = Int64.random(in: 0..<40_000, using: &random)
      let range = start..<Int64.random(in: (start + 1)...40_000, using: &random)
      let blocks = (range.lowerBound / 1000)...((range.upperBound - 1) / 1000)
      let expected = ExtentSet(
        damaged.filter { blocks.contains($0) }.map { $0 * 1000..<($0 + 1) * 1000 })
      #expect(try entry.verify(range).damaged == expected)
    }
  }

  @Test("A record of a later format is left untouched; a damaged one is replaced")
  func laterFormat() throws {
    _ = try reopened(blockCount: 1)
    let path = try root.recordPath()
    var bytes = try readFile(path)
    bytes[8] = 2
    try writeFile(path, bytes)
    // Its checksum is wrong: damage, not another format.
    #expect(try directory.openEntry(key) == nil)
    let headerByteCount = bytes.withUnsafeBytes {
      Int($0.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
    }
    let salt = bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: 16, as: UInt64.self) }
    let checksum = bytes[..<(headerByteCount - 8)].withUnsafeBytes {
      ContentHash.hash($0, seed: salt)
    }
    withUnsafeBytes(of: checksum.littleEndian) {
      bytes.replaceSubrange((headerByteCount - 8)..<headerByteCount, with: $0)
    }
    try writeFile(path, bytes)
    let error = #expect(throws: CacheError.self) { try directory.openEntry(key) }
    #expect(error?.code == .laterFormat)
    #expect(try readFile(path) == bytes)
  }
}
