import ExtentRecord
import Foundation
import HTTPTransferCore
import LinuxSystem
import Testing

@testable import RangeCache

/// The users of a cache directory, and its content.
@Suite struct CacheDirectoryTests {
  let root: TemporaryDirectory
  let cachePath: String

  init() throws {
    root = try TemporaryDirectory()
    cachePath = root.path + "/some/where/cache"
  }

  private func code(_ path: String) -> CacheError.Code? {
    do {
      _ = try CacheDirectory(path: path)
      return nil
    } catch {
      #expect(!error.description.contains("\n"))
      return error.code
    }
  }

  @Test("The second opener is refused and told the process; the first one's end frees the lock")
  func lock() throws {
    do {
      let first = try CacheDirectory(path: cachePath)
      #expect(code(cachePath) == .inUse(pid: getpid(), mountpoint: nil))
      _ = first
    }
    #expect(code(cachePath) == nil)
  }

  @Test("The lock lasts as long as an entry of the directory")
  func lockHeldByEntry() throws {
    var entry: CacheEntry? = try CacheDirectory(path: cachePath).createEntry(
      CacheKey("a"), version: ContentVersion(), source: "")
    #expect(code(cachePath) == .inUse(pid: getpid(), mountpoint: nil))
    _ = entry?.key
    entry = nil
    #expect(code(cachePath) == nil)
  }

  @Test("A lock held by another process names that process")
  func lockOfAnotherProcess() throws {
    do { _ = try CacheDirectory(path: cachePath) }
    let child = Process()
    child.executableURL = URL(filePath: "/usr/bin/flock")
    child.arguments = [
      cachePath + "/lock", "sh", "-c", "echo 4242 > \(cachePath)/lock; echo; exec cat",
    ]
    let input = Pipe()
    let output = Pipe()
    child.standardInput = input
    child.standardOutput = output
    try child.run()
    // The line shows that the lock is taken.
    _ = try output.fileHandleForReading.read(upToCount: 1)
    #expect(code(cachePath) == .inUse(pid: 4242, mountpoint: nil))
    try input.fileHandleForWriting.close()
    child.waitUntilExit()
    #expect(code(cachePath) == nil)
  }

  @Test("Directories are made 0700 and files 0600, whatever the umask; loosened ones tightened")
  func modes() throws {
    let key = CacheKey("a")
    do {
      let directory = try CacheDirectory(path: cachePath)
      _ = try directory.createEntry(key, version: ContentVersion(), source: "")
    }
    let files = [cachePath + "/lock", try root.recordPath(), try root.dataPath()]
    #expect(try permissions(of: root.path + "/some") == 0o700)
    for path in files { #expect(try permissions(of: path) == 0o600) }
    for path in files { chmod(path, 0o644) }
    chmod(cachePath, 0o755)
    chmod(cachePath + "/v1/files", 0o777)
    let directory = try CacheDirectory(path: cachePath)
    _ = try #require(try directory.openEntry(key))
    #expect(try permissions(of: cachePath) == 0o700)
    #expect(try permissions(of: cachePath + "/v1/files") == 0o700)
    #expect(try permissions(of: try root.recordPath()) == 0o600)
    #expect(try permissions(of: try root.dataPath()) == 0o600)
  }

  @Test("A symbolic link is refused, with and without a trailing slash")
  func symbolicLink() throws {
    let target = root.path + "/target"
    let link = root.path + "/link"
    try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target)
    #expect(code(link) == .unsafeDirectory(.symbolicLink))
    #expect(code(link + "//") == .unsafeDirectory(.symbolicLink))
    try FileManager.default.removeItem(atPath: target)
    #expect(code(link) == .unsafeDirectory(.symbolicLink))
  }

  @Test("A file in the directory's place is refused")
  func notADirectory() throws {
    try writeFile(root.path + "/file", [])
    #expect(code(root.path + "/file") == .unsafeDirectory(.notADirectory))
    #expect(code(root.path + "/file/cache") == .io)
  }

  @Test("A directory of another user is refused", .enabled(if: geteuid() == 0))
  func foreignOwner() throws {
    try FileManager.default.createDirectory(atPath: cachePath, withIntermediateDirectories: true)
    #expect(chown(cachePath, 12345, 12345) == 0)
    #expect(code(cachePath) == .unsafeDirectory(.foreignOwner(uid: 12345)))
  }

  @Test("A directory that others use for other files is refused and left as it is")
  func otherFiles() throws {
    let path = root.path + "/shared"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    chmod(path, 0o755)
    try writeFile(path + "/letter.txt", [1])
    #expect(code(path) == .unsafeDirectory(.holdsOtherFiles))
    #expect(try permissions(of: path) == 0o755)
  }

  @Test("Entries of a later format version lie beside and are never touched")
  func laterVersion() throws {
    let later = cachePath + "/v2/files/x"
    try FileManager.default.createDirectory(atPath: later, withIntermediateDirectories: true)
    chmod(cachePath, 0o700)
    try writeFile(later + "/record", [1, 2, 3])
    let directory = try CacheDirectory(path: cachePath)
    let key = CacheKey("a")
    try directory.createEntry(key, version: ContentVersion(), source: "").storePattern(0..<9)
    directory.evict(downTo: 0) { _, remove in remove() }
    #expect(try readFile(later + "/record") == [1, 2, 3])
  }

  @Test("What a crash left in an entry's directory is removed when the entry is opened")
  func orphans() throws {
    let key = CacheKey("a")
    let directory = try CacheDirectory(path: cachePath)
    try directory.createEntry(key, version: ContentVersion(), source: "").storePattern(0..<9)
    let names = ["data-0123456789abcdef", "record-0123456789abcdef"]
    for name in names { try writeFile(directory.path(of: key) + "/" + name, [1]) }
    try writeFile(directory.path(of: key) + "/note.txt", [1])
    #expect(try directory.openEntry(key)?.recoveredExtents.extents == [0..<9])
    #expect(root.files { names.contains($0) }.isEmpty)
    #expect(root.files { $0 == "note.txt" }.count == 1)
  }

  @Test("A removed entry is gone; its open descriptor stays readable")
  func removal() throws {
    let key = CacheKey("a")
    let directory = try CacheDirectory(path: cachePath)
    let entry = try directory.createEntry(key, version: ContentVersion(), source: "")
    try entry.storePattern(0..<100)
    try directory.removeEntry(key)
    #expect(try directory.openEntry(key) == nil)
    #expect(!FileManager.default.fileExists(atPath: directory.path(of: key)))
    try entry.storePattern(100..<200)
    #expect(entry.holdsPattern(ExtentSet([0..<200])))
    try directory.removeEntry(key)
  }

  @Test("An entry that cannot be opened is not said to be removed, and stops an eviction")
  func failedRemoval() throws {
    let key = CacheKey("a")
    let directory = try CacheDirectory(path: cachePath)
    #expect(directory.allocatedByteCount == 0)
    try directory.createEntry(key, version: ContentVersion(), source: "").storePattern(0..<8192)
    let group = (directory.path(of: key) as NSString).deletingLastPathComponent
    // As with too few descriptors: the directory is there and cannot be opened.
    #expect(rename(group, group + ".away") == 0)
    #expect(FileManager.default.createFile(atPath: group, contents: nil))
    #expect(throws: CacheError.self) { try directory.removeEntry(key) }
    #expect(directory.allocatedByteCount == 8192)
    #expect(unlink(group) == 0)
    #expect(rename(group + ".away", group) == 0)
    try directory.removeEntry(key)
    #expect(directory.allocatedByteCount == 0)
  }

  @Test("Whole entries go, least recently used first, except those to keep")
  func eviction() throws {
    let directory = try CacheDirectory(path: cachePath)
    let keys = (0..<6).map { CacheKey("file \($0)") }
    let pieceByteCount: Int64 = 64 << 10
    for key in keys {
      try directory.createEntry(key, version: ContentVersion(), source: "")
        .storePattern(0..<pieceByteCount)
    }
    // Used in the order 3, 1, 4, 0, 5, 2.
    for (age, index) in [3, 1, 4, 0, 5, 2].enumerated() {
      let times = [timespec](repeating: timespec(tv_sec: 1000 + age, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, directory.path(of: keys[index]), times, 0) == 0)
    }
    // Touching counts as use; opening does not.
    _ = try directory.openEntry(keys[5])
    for index in [1, 4] { directory.touch(keys[index]) }
    let total = directory.allocatedByteCount
    #expect(total >= 6 * pieceByteCount)
    let freed = directory.evict(downTo: total - 2 * pieceByteCount) { key, remove in
      if key != keys[3] { remove() }
    }
    #expect(freed >= 2 * pieceByteCount)
    #expect(directory.allocatedByteCount == total - freed)
    let left = try keys.indices.filter { try directory.openEntry(keys[$0]) != nil }
    #expect(left == [1, 2, 3, 4])
    directory.evict(downTo: 0) { key, remove in
      if key != keys[3] { remove() }
    }
    #expect(try keys.indices.filter { try directory.openEntry(keys[$0]) != nil } == [3])
  }

  @Test("Each entry is asked about when its turn comes, and goes by the function given then only")
  func decideOneByOne() throws {
    let directory = try CacheDirectory(path: cachePath)
    let keys = (0..<3).map { CacheKey("\($0)") }
    for (age, key) in keys.enumerated() {
      try directory.createEntry(key, version: ContentVersion(), source: "").storePattern(0..<8192)
      let times = [timespec](repeating: timespec(tv_sec: 1000 + age, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, directory.path(of: key), times, 0) == 0)
    }
    var asked: [CacheKey] = []
    let freed = directory.evict(downTo: directory.allocatedByteCount - 1) { key, remove in
      asked.append(key)
      // Opened after the count, before its turn.
      if key != keys[0] { remove() }
    }
    #expect(asked == [keys[0], keys[1]])
    #expect(freed >= 8192)
    #expect(try keys.indices.filter { try directory.openEntry(keys[$0]) != nil } == [0, 2])
  }

  @Test("Eviction goes on after an entry that cannot be removed")
  func evictionPastDamage() throws {
    let directory = try CacheDirectory(path: cachePath)
    let keys = (0..<3).map { CacheKey("\($0)") }
    for (age, key) in keys.enumerated() {
      try directory.createEntry(key, version: ContentVersion(), source: "").storePattern(0..<8192)
      let times = [timespec](repeating: timespec(tv_sec: 1000 + age, tv_nsec: 0), count: 2)
      #expect(utimensat(AT_FDCWD, directory.path(of: key), times, 0) == 0)
    }
    var asked: [CacheKey] = []
    let freed = directory.evict(downTo: directory.allocatedByteCount - 1) { key, remove in
      asked.append(key)
      if key == keys[0] {
        // A plain file takes the place of the entry's directory.
        let path = directory.path(of: key)
        rename(path, path + ".moved")
        close(open(path, O_CREAT | O_WRONLY, 0o600))
      }
      remove()
    }
    #expect(asked == [keys[0], keys[1]])
    #expect(freed >= 8192)
    #expect(try directory.openEntry(keys[1]) == nil)
    #expect(try directory.openEntry(keys[2]) != nil)
  }

  @Test("The count of allocated bytes moves with what is stored and removed")
  func allocated() throws {
    let directory = try CacheDirectory(path: cachePath)
    #expect(directory.allocatedByteCount == 0)
    let key = CacheKey("a")
    let entry = try directory.createEntry(key, version: ContentVersion(), source: "")
    try entry.storePattern(0..<8192)
    #expect(directory.allocatedByteCount == 8192)
    #expect(directory.evict(downTo: .max, decide: { _, remove in remove() }) == 0)
    try directory.removeEntry(key)
    #expect(directory.allocatedByteCount == 0)
  }

  @Test("An error says what and what to do in one line")
  func descriptions() {
    #expect(
      CacheError(code: .inUse(pid: 7, mountpoint: "/m"), path: "/c").description
        == "/c: the cache is in use by process 7, mounted at /m; unmount it, or name another "
        + "directory with --cache-dir")
    let full = CacheError(ErrorNumber(rawValue: ENOSPC), path: "/c/x")
    #expect(full.code == .noSpace)
    #expect(full.description.contains("No space left on device"))
  }
}
