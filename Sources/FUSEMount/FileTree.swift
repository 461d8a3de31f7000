internal import ExtentRecord
internal import RangeCache
public import RemoteFiles
internal import Synchronization

/// The directories and files that a list of sources makes; fixed but for the files' states, which
/// come into being with the first look at each, and for what lies in directories with a listing.
public final class FileTree: Sendable {
  enum Child: Sendable {
    /// The path of the directory.
    case directory(String)
    /// The index of the source.
    case file(Int)
  }

  /// What a directory's names come from.
  enum Node: Sendable {
    case fixed(Directory)
    case listed(ListedDirectory)
  }

  struct Directory: Sendable {
    var children: [String: Child] = [:]
    /// The names in the order of the list.
    var names: [String] = []

    mutating func add(_ name: String, _ child: Child) {
      guard children.updateValue(child, forKey: name) == nil else { return }
      names.append(name)
    }
  }

  let sources: [FileSource]
  private let cacheKeys: [Int: CacheKey]
  private let directories: [String: Directory]
  /// The directories with a listing that the list names, by their paths; nothing else lies below one.
  private let listings: [String: ListedDirectory]
  private let environment: FileEnvironment
  private let files: Mutex<[Int: RemoteFile]>

  /// Makes the tree of `sources`, files and listings of distinct paths, none of which is a directory of
  /// another.
  ///
  /// Where the list was read again, `old` is the tree before: its files and listings go on if their
  /// sources did not change.
  public init(
    sources all: MountSources, environment: FileEnvironment, reusing old: FileTree? = nil
  ) {
    let sources = all.files
    self.sources = sources
    self.environment = environment
    var directories: [String: Directory] = ["": Directory()]

    func add(_ path: String, _ child: Child) {
      var parent = ""
      let parts = path.split(separator: "/")
      for part in parts.dropLast() {
        let path = parent.isEmpty ? String(part) : parent + "/" + part
        directories[parent, default: Directory()].add(String(part), .directory(path))
        if directories[path] == nil { directories[path] = Directory() }
        parent = path
      }
      if let name = parts.last {
        directories[parent, default: Directory()].add(String(name), child)
      }
    }

    for (index, source) in sources.enumerated() { add(source.path, .file(index)) }
    var listings: [String: ListedDirectory] = [:]
    for source in all.listings {
      add(source.path, .directory(source.path))
      let known = old?.listings[source.path]
      listings[source.path] =
        known?.source == source ? known : ListedDirectory(source: source, environment: environment)
    }
    if !listings.isEmpty { environment.reserveCacheKeys(for: sources) }
    self.listings = listings
    self.directories = directories
    cacheKeys = Self.repeatedKeys(of: sources)
    var files: [Int: RemoteFile] = [:]
    if let old {
      let known = Dictionary(
        old.existingListFiles.map { ($0.source.path, $0) }, uniquingKeysWith: { first, _ in first })
      for (index, source) in sources.enumerated() {
        if let file = known[source.path], file.source == source { files[index] = file }
      }
    }
    self.files = Mutex(files)
  }

  /// The cache keys of sources that would share one with an earlier source: each file writes an
  /// entry of its own.
  private static func repeatedKeys(of sources: [FileSource]) -> [Int: CacheKey] {
    var counts: [Int: Int] = [:]
    counts.reserveCapacity(sources.count)
    var keys: [Int: CacheKey] = [:]
    for (index, source) in sources.enumerated() {
      let text = source.cacheKeyText
      // A collision of hashes costs a key of its own, which is harmless.
      let count = counts[text.hashValue, default: 0]
      counts[text.hashValue] = count + 1
      if count > 0 { keys[index] = CacheKey(text + "\n#\(count + 1)") }
    }
    return keys
  }

  /// The directory at a path: of the list, or one that has been looked at below a listing.
  func node(_ path: String) -> Node? {
    if listings.isEmpty { return directories[path].map { .fixed($0) } }
    if let listed = listings[path] { return .listed(listed) }
    if let directory = directories[path], listings[""] == nil { return .fixed(directory) }
    let parts = path.split(separator: "/")
    for count in parts.indices {
      let listed = listings[parts[..<count].joined(separator: "/")]
      if let listed { return listed.existingDirectory(parts[count...]).map { .listed($0) } }
    }
    return nil
  }

  /// The index of the file at `path`; nil where there is none, or a directory.
  func index(of path: String) -> Int? {
    let cut = path.lastIndex(of: "/")
    let parent = cut.map { String(path[..<$0]) } ?? ""
    let name = cut.map { String(path[path.index(after: $0)...]) } ?? path
    guard case .file(let index) = directories[parent]?.children[name] else { return nil }
    return index
  }

  /// The file of a source, made at the first look.
  func file(_ index: Int) -> RemoteFile {
    files.withLock { files in
      if let file = files[index] { return file }
      let file = RemoteFile(
        source: sources[index], cacheKey: cacheKey(index), environment: environment)
      files[index] = file
      return file
    }
  }

  /// What the file of a source is filed under in the cache.
  func cacheKey(_ index: Int) -> CacheKey {
    cacheKeys[index] ?? CacheKey(sources[index].cacheKeyText)
  }

  /// Which of the files are pinned, looked at or not.
  func pinnedIndices() -> Set<Int> {
    let keys = environment.cache.pinnedKeys
    // A key is a hash: not made where nothing is pinned.
    guard !keys.isEmpty else { return [] }
    return Set(sources.indices.filter { keys.contains(cacheKey($0)) })
  }

  /// The file of a source, if it has been looked at.
  func existingFile(_ index: Int) -> RemoteFile? { files.withLock { $0[index] } }

  /// The list's own files that have been looked at.
  private var existingListFiles: [RemoteFile] { files.withLock { Array($0.values) } }

  /// The files below listings that have been looked at, ordered by their paths within each.
  var existingListedFiles: [RemoteFile] {
    listings.sorted { $0.key < $1.key }.flatMap { $0.value.existingFiles }
  }

  /// All files that have been looked at.
  var existingFiles: [RemoteFile] { existingListFiles + existingListedFiles }

  /// Fails whatever waits: the mount ends.
  func abandon() {
    for file in existingListFiles { file.abandon() }
    for directory in listings.values { directory.abandon() }
  }
}
