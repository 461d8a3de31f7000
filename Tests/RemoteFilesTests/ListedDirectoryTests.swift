import DirectoryListing
import ExtentRecord
import HTTPTransferCore
import MountStatus
import Synchronization
import Testing

@testable import RemoteFiles

/// The results of look-ups that a directory with a listing keeps, and for how long.
@Suite struct ListedDirectoryTests {
  /// A weak reference.
  private final class Trace<Item: AnyObject> {
    weak var item: Item?

    init(_ item: Item?) { self.item = item }
  }

  private let disk: VersionOnDisk
  private let directory: ListedDirectory
  private let names: ListedNames

  init() throws {
    disk = try VersionOnDisk(length: 100)
    let url = try RemoteURL("http://127.0.0.1:1/d/")
    directory = ListedDirectory(
      source: ListingSource(path: "d", url: url), environment: disk.files)
    names = try Self.names(["a", "b", "sub/"])
  }

  private static func names(_ references: [String]) throws -> ListedNames {
    let url = try RemoteURL("http://127.0.0.1:1/d/")
    let text = references.map { "<a href=\"\($0)\">x</a>\n" }.joined()
    return ListedNames(
      listing: try DirectoryListing(
        Array(text.utf8), contentType: "text/html", from: url, isRoot: false),
      url: url, entityTag: nil)
  }

  private func file(_ name: String) -> RemoteFile? {
    guard case .file(let file) = directory.child(name, in: names) else { return nil }
    return file
  }

  private func subdirectory(_ name: String) -> ListedDirectory? {
    guard case .directory(let found) = directory.child(name, in: names) else { return nil }
    return found
  }

  /// Gives `file` a current version, like an answer of its server.
  private func describe(_ file: RemoteFile) -> RemoteVersion {
    let version = RemoteVersion(
      of: file,
      content: ContentVersion(entityTag: EntityTag(opaque: "v1"), completeLength: 100))
    file.state.withLock { $0.current = version }
    return version
  }

  /// Drops the results of look-ups, and waits until that is done.
  private func forget() async {
    directory.forget()
    await settle()
  }

  /// Waits until the background has finished its work.
  private func settle() async {
    let environment = disk.environment
    for _ in 0..<2 {
      await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
        environment.background { done.resume() }
      }
    }
  }

  @Test("What nobody has any more is given up: files, with and without versions, and directories")
  func released() async throws {
    let plain = Trace(file("a"))
    let described = Trace(file("b"))
    let below = Trace(subdirectory("sub"))
    if let file = described.item { _ = describe(file) }
    // The directory keeps them until it must forget.
    #expect(plain.item != nil && described.item?.current != nil && below.item != nil)
    #expect(disk.files.listings.total > 0)
    await forget()
    #expect(plain.item == nil)
    #expect(described.item == nil)
    #expect(below.item == nil)
    #expect(directory.existingFiles.isEmpty)
  }

  @Test("A file goes on with its version while the kernel or a handle has that")
  func versionInUse() async throws {
    let known = Trace(file("a"))
    var version = known.item.map { describe($0) }
    await forget()
    #expect(version != nil)
    #expect(known.item?.current === version)
    #expect(directory.existingFiles.map(\.source.path) == ["d/a"])
    // A repeated look-up finds the same file, which is kept from then on.
    #expect(file("a") === version?.remoteFile)
    let number = version?.id
    version = nil
    #expect(file("a")?.current?.id == number)
    await forget()
    #expect(known.item == nil)
  }

  @Test("A directory goes on while the kernel knows it, and is found by its path")
  func directoryInUse() async throws {
    let below = try #require(subdirectory("sub"))
    await forget()
    #expect(directory.existingDirectory(["sub"]) === below)
    #expect(subdirectory("sub") === below)
  }

  @Test("A directory that cannot be listed is reported with its reason, and so are those below")
  func failedListings() async throws {
    let directory = directory
    #expect(directory.failedListings(limit: 10).isEmpty)
    let below = try #require(subdirectory("sub"))
    // The requests are repeated for a while; the reason is known at once.
    for listed in [directory, below] { listed.names { _ in } }
    for _ in 0..<1000 where directory.failedListings(limit: 10).count < 2 {
      try await Task.sleep(for: .milliseconds(20))
    }
    let failed = directory.failedListings(limit: 10)
    #expect(failed.map(\.directory) == ["d/", "d/sub/"])
    #expect(failed.first?.url == "http://127.0.0.1:1/d/")
    #expect(failed.allSatisfy { $0.reason.contains("refused") && !$0.showsEarlierNames })
    #expect(directory.failedListings(limit: 1).count == 1)
  }

  @Test("A file of which the user has wanted something is kept")
  func policy() async throws {
    let paused = Trace(file("a"))
    let other = Trace(file("b"))
    paused.item?.context.policy.withLock { $0.isPaused = true }
    await forget()
    #expect(paused.item != nil)
    #expect(other.item == nil)
  }

  @Test("A name that leads elsewhere now has another file; the one before is given up")
  func replaced() async throws {
    let first = Trace(file("a"))
    if let file = first.item { _ = describe(file) }
    let renamed = try Self.names(["%61"])
    guard case .file(let second) = directory.child("a", in: renamed) else {
      Issue.record("no file")
      return
    }
    #expect(second !== first.item)
    await settle()
    #expect(first.item == nil)
  }

  @Test("What is kept is counted with the bytes of its names and URLs")
  func bytes() throws {
    let short = try Self.names((0..<1000).map { "file-\(100_000 + $0)-of-an-ordinary.tar" })
    let source = FileSource(
      path: "d/file-100000-of-an-ordinary.tar",
      url: try RemoteURL("http://127.0.0.1:1/d/file-100000-of-an-ordinary.tar"))
    // There is room for a million names, of which 80,000 are looked up.
    let ordinary = short.byteCount * 1000 + 80_000 * HeldBytes.of(source)
    #expect(ordinary <= ListingRegistry.standardLimit)
    let accents = String(repeating: "%C3%A9", count: 120)
    let long = try Self.names((0..<1000).map { "\(1000 + $0)\(accents)" })
    #expect(long.byteCount > 1000 * (244 + 724))
    let before = disk.files.listings.total
    _ = file("a")
    let after = disk.files.listings.total
    #expect(after > before + 1000)
    // A repeated look-up creates no object.
    _ = file("a")
    #expect(disk.files.listings.total == after)
  }

  @Test("Lookups in order have the cache looked into for the next names, and for none far ahead")
  func preloadCache() async throws {
    let many = try Self.names((0..<200).map { "f\($0 + 1000)" } + ["sub/"])
    for name in ["f1000", "f1001"] { directory.preloadCache(from: name, in: many) }
    let files = directory.existingFiles
    #expect(files.count == PreloadWindow.distance)
    let deadline = ContinuousClock.now + .seconds(10)
    func areDone() -> Bool {
      files.allSatisfy { file in
        file.state.withLock {
          if case .done = $0.look { true } else { false }
        }
      }
    }
    while !areDone(), .now < deadline { try await Task.sleep(for: .milliseconds(5)) }
    #expect(areDone())
    // That is not a use of their entries, and no program has looked them up.
    #expect(files.allSatisfy { !$0.wasAskedFor })
    files.first?.afterLook {}
    #expect(files.filter(\.wasAskedFor).count == 1)
    // Out of order: this is no walk.
    for name in ["f1190", "f1180", "f1170"] { directory.preloadCache(from: name, in: many) }
    #expect(directory.existingFiles.count == PreloadWindow.distance)
  }

  @Test("A file that is let go of while the cache is looked into is looked for again")
  func letGo() async throws {
    let file = try #require(self.file("a"))
    file.letGo()
    await withCheckedContinuation { continuation in
      file.afterLook { continuation.resume() }
    }
    let mustLook = file.state.withLock {
      if case .none = $0.look { true } else { false }
    }
    #expect(mustLook)
  }

  @Test("A key that a file had is free again when many others have come and gone")
  func keys() throws {
    let owners = CacheKeyOwners()
    func source(_ path: String, _ name: String) throws -> FileSource {
      FileSource(path: path, url: try RemoteURL("http://127.0.0.1:1/\(name)"))
    }
    func look(at source: FileSource) -> CacheKey {
      let key = owners.key(for: source)
      let file = owners.file(of: source, key: key, in: disk.environment) { _ in true }
      return file.cacheKey
    }
    let url = try source("one", "same")
    let own = look(at: url)
    #expect(own == CacheKey(url.cacheKeyText))
    #expect(owners.key(for: try source("two", "same")) != own)
    for index in 0..<1100 { _ = look(at: try source("f\(index)", "f\(index)")) }
    #expect(owners.key(for: try source("two", "same")) == own)
  }
}
