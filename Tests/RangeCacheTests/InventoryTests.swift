import ExtentRecord
import Foundation
import HTTPTransferCore
import RangeCache
import Testing

/// The inventory neither locks nor changes a cache directory.
@Suite struct InventoryTests {
  let root: TemporaryDirectory
  let path: String

  init() throws {
    root = try TemporaryDirectory()
    path = root.path + "/cache"
  }

  /// Creates an entry of the pattern's bytes in `ranges`, all of them committed.
  private func store(
    _ url: String, _ ranges: [ByteRange], length: Int64?, in directory: CacheDirectory
  ) throws {
    let entry = try directory.createEntry(
      CacheKey(url),
      version: ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: length),
      source: url)
    for range in ranges { try entry.storePattern(range) }
    try entry.checkpoint(fetchedByteCount: 0)
  }

  private func code(_ path: String) -> CacheError.Code? {
    do throws(CacheError) {
      _ = try CacheInventory(path: path)
      return nil
    } catch {
      return error.code
    }
  }

  @Test("Entries are listed with what they hold, those first that were used last")
  func entries() throws {
    let directory = try CacheDirectory(path: path)
    let urls = ["http://example.org/a", "http://example.org/b", "http://example.org/c"]
    let lengths: [Int64?] = [5000, nil, 9000]
    for (url, length) in zip(urls, lengths) {
      try store(url, [0..<2000, 1000..<3000, 4000..<5000], length: length, in: directory)
    }
    // The clock of the file system may have steps of several milliseconds.
    Thread.sleep(forTimeInterval: 0.05)
    directory.touch(CacheKey(urls[1]))
    let inventory = try CacheInventory(path: path)
    let found = try inventory.entries()
    #expect(Set(found.map(\.name)) == Set(urls.map { CacheKey($0).hex }))
    #expect(found.first?.name == CacheKey(urls[1]).hex)
    for (url, length) in zip(urls, lengths) {
      let entry = try #require(found.first { $0.isFiled(under: url) })
      #expect(
        try inventory.head(of: entry)
          == .readable(
            source: url,
            version: ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: length)))
      let presence = try #require(try inventory.presence(of: entry))
      #expect(presence.byteCount == 4000)
      #expect(presence.completeLength == length)
      #expect(entry.allocatedByteCount >= 4000)
    }
  }

  @Test("A complete length that became known later, and a cut data file, are minded")
  func lengthAndCut() throws {
    let directory = try CacheDirectory(path: path)
    let url = "http://example.org/a"
    let entry = try directory.createEntry(CacheKey(url), version: ContentVersion(), source: url)
    for block in 0..<Int64(4) { try entry.storePattern(block * 1000..<(block + 1) * 1000) }
    try entry.recordCompleteLength(4000)
    let inventory = try CacheInventory(path: path)
    let stored = try #require(try inventory.entries().first)
    #expect(try inventory.presence(of: stored)?.completeLength == 4000)
    #expect(try inventory.presence(of: stored)?.byteCount == 4000)
    #expect(ftruncate(entry.dataDescriptor, 2500) == 0)
    #expect(try inventory.presence(of: stored)?.byteCount == 2000)
    try FileManager.default.removeItem(atPath: try root.dataPath())
    #expect(try inventory.presence(of: stored)?.byteCount == 0)
  }

  @Test("A look changes no file, no time and no mode")
  func changesNothing() throws {
    try {
      let directory = try CacheDirectory(path: path)
      try store("http://example.org/a", [0..<3000], length: 3000, in: directory)
    }()
    // A file that opening the entry would remove, and a mode that it would tighten.
    try writeFile(root.recordPath() + "-0123456789abcdef", [1, 2, 3])
    #expect(chmod(try root.recordPath(), 0o644) == 0)
    func facts() throws -> [String] {
      let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
      return try names.sorted().map { name in
        var status = stat()
        guard stat("\(path)/\(name)", &status) == 0 else { throw CocoaError(.fileNoSuchFile) }
        return "\(name) \(status.st_mode) \(status.st_size) \(status.st_ino)"
          + " \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)"
      }
    }
    let before = try facts()
    #expect(before.count >= 6)
    let inventory = try CacheInventory(path: path)
    for entry in try inventory.entries() {
      _ = try inventory.head(of: entry)
      _ = try inventory.presence(of: entry)
    }
    #expect(try facts() == before)
  }

  @Test("Who holds the directory is told, as long as that process does")
  func holder() throws {
    var directory: CacheDirectory? = try CacheDirectory(path: path)
    let inventory = try CacheInventory(path: path)
    #expect(inventory.holder == getpid())
    withExtendedLifetime(directory) {}
    directory = nil
    #expect(inventory.holder == nil)
    // Like a lock of a killed process, whose number a living process has now.
    try writeFile(path + "/lock", Array("\(getpid())\n".utf8))
    #expect(inventory.holder == nil)
  }

  @Test("What is no cache is refused, and stays what it was")
  func noCache() throws {
    #expect(code(path) == .notACache)
    #expect(!FileManager.default.fileExists(atPath: path))
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    #expect(code(path) == .notACache)
    #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
    try writeFile(root.path + "/file", [])
    #expect(code(root.path + "/file") == .unsafeDirectory(.notADirectory))
    try FileManager.default.createSymbolicLink(
      atPath: root.path + "/link", withDestinationPath: path)
    #expect(code(root.path + "/link") == .unsafeDirectory(.symbolicLink))
    #expect(code(root.path + "/link/") == .unsafeDirectory(.symbolicLink))
  }

  @Test("A damaged record, another entry's, and none at all are told apart")
  func heads() throws {
    let directory = try CacheDirectory(path: path)
    try store("http://example.org/a", [0..<1000], length: 1000, in: directory)
    let inventory = try CacheInventory(path: path)
    let entry = try #require(try inventory.entries().first)
    let record = try root.recordPath()
    var bytes = try readFile(record)
    bytes[70] ^= 1
    try writeFile(record, bytes)
    #expect(try inventory.head(of: entry) == .damaged)
    #expect(try inventory.presence(of: entry) == nil)
    bytes[70] ^= 1
    try writeFile(record, bytes)
    #expect(try inventory.presence(of: entry)?.byteCount == 1000)
    // At the place of another key.
    let other = (record as NSString).deletingLastPathComponent.replacingOccurrences(
      of: CacheKey("http://example.org/a").hex.dropFirst(2),
      with: String(repeating: "0", count: 62))
    try FileManager.default.copyItem(
      atPath: (record as NSString).deletingLastPathComponent, toPath: other)
    let misfiled = try #require(try inventory.entries().first { $0.name.hasSuffix("000000") })
    #expect(try inventory.head(of: misfiled) == .damaged)
    try FileManager.default.removeItem(atPath: record)
    #expect(try inventory.head(of: entry) == .missing)
    try FileManager.default.createDirectory(atPath: record, withIntermediateDirectories: false)
    #expect(try inventory.head(of: entry) == .damaged)
  }
}
