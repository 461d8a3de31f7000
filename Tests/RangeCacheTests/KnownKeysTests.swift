import ExtentRecord
import HTTPTransferCore
import RangeCache
import Testing

/// Which keys have no entry is known without a look at the disk.
@Suite struct KnownKeysTests {
  let root: TemporaryDirectory
  /// Three keys with the same first byte, which are grouped in one directory.
  let keys: [CacheKey]
  let version = ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: 1000)

  init() throws {
    root = try TemporaryDirectory()
    let all = (0..<4000).lazy.map { CacheKey("http://example.org/\($0)") }
    keys = Array(all.filter { $0.bytes[0] == 7 }.prefix(3))
    #expect(keys.count == 3)
  }

  private func create(_ key: CacheKey, in directory: CacheDirectory) throws {
    let entry = try directory.createEntry(key, version: version, source: "http://example.org/")
    try entry.storePattern(0..<1000)
    try entry.checkpoint(fetchedByteCount: 1000)
  }

  @Test("Nothing is known before the first look, and then all of the group")
  func look() throws {
    let path = root.path + "/cache"
    try create(keys[0], in: CacheDirectory(path: path))
    let directory = try CacheDirectory(path: path)
    #expect(keys.allSatisfy { !directory.lacksEntry($0) })
    directory.lookForEntries(near: keys[1])
    #expect(keys.map { directory.lacksEntry($0) } == [false, true, true])
    let other = CacheKey("http://example.org/elsewhere")
    #expect(other.bytes[0] != 7 && !directory.lacksEntry(other))
    #expect(try directory.openEntry(keys[0]) != nil)
  }

  @Test("An entry that is created before or after the look is known to be there")
  func creation() throws {
    let directory = try CacheDirectory(path: root.path + "/cache")
    try create(keys[0], in: directory)
    directory.lookForEntries(near: keys[0])
    #expect(directory.lacksEntry(keys[1]))
    try create(keys[1], in: directory)
    #expect(keys.map { directory.lacksEntry($0) } == [false, false, true])
  }

  @Test("A group without a directory has no entries")
  func emptyGroup() throws {
    let directory = try CacheDirectory(path: root.path + "/cache")
    directory.lookForEntries(near: keys[2])
    #expect(directory.lacksEntry(keys[2]))
  }
}
