internal import ExtentRecord
internal import HTTPTransferCore
internal import MountStatus
package import RemoteFiles
internal import Synchronization

/// The directories and files of a list of sources.
///
/// The tree is fixed except for the files' states, which are created at the first lookup of each
/// file, and for the contents of directories with a listing.
package final class FileTree: Sendable {
  enum Child: Sendable {
    /// The path of the directory.
    case directory(String)
    /// The index of the source.
    case file(Int)
  }

  /// The directory behind a path, and the source of its names.
  enum Node: Sendable {
    case fixed(Directory)
    case listed(ListedDirectory)
  }

  struct Directory: Sendable {
    /// In the order of the list; the path of each child contains its name.
    fileprivate(set) var children: [Child] = []
  }

  let sources: [FileSource]
  /// The indices of the sources, ascending by path.
  ///
  /// This takes eight bytes per source; a dictionary of the names would take a hundred.
  private let order: [Int]
  private let cacheKeys: [Int: CacheKey]
  private let directories: [PathKey: Directory]
  /// The directories with a listing that the list names, by path; the list has nothing below them.
  private let listings: [PathKey: ListedDirectory]
  let environment: FileEnvironment
  private let files: Mutex<[Int: RemoteFile]>

  private static let root = PathKey("")

  /// Makes the tree of `sources`, whose paths are distinct; no file or listing is above another.
  ///
  /// After a reload, `old` is the previous tree: files and listings with unchanged sources are
  /// kept.
  package init(
    sources all: MountSources, environment: FileEnvironment, reusing old: FileTree? = nil
  ) {
    let sources = all.files
    self.sources = sources
    self.environment = environment
    var directories = [Self.root: Directory()]

    func add(_ path: String, _ child: Child) {
      var parent = Self.root
      var start = path.startIndex
      while let cut = path.utf8[start...].firstIndex(of: UInt8(ascii: "/")) {
        start = path.utf8.index(after: cut)
        let directory = PathKey(path[..<cut])
        if directories[directory] == nil {
          directories[directory] = Directory()
          directories[parent, default: Directory()].children.append(.directory(directory.text))
        }
        parent = directory
      }
      directories[parent, default: Directory()].children.append(child)
    }

    for (index, source) in sources.enumerated() { add(source.path, .file(index)) }
    var listings: [PathKey: ListedDirectory] = [:]
    for source in all.listings {
      if !source.path.isEmpty { add(source.path, .directory(source.path)) }
      let key = PathKey(source.path)
      let known = old?.listings[key]
      listings[key] =
        known?.source == source ? known : ListedDirectory(source: source, environment: environment)
    }
    if !listings.isEmpty { environment.reserveCacheKeys(for: sources) }
    self.listings = listings
    self.directories = directories
    order = sources.indices.sorted { PathKey(sources[$0].path) < PathKey(sources[$1].path) }
    cacheKeys = Self.repeatedKeys(of: sources)
    var files: [Int: RemoteFile] = [:]
    if let old {
      let known = Dictionary(
        old.existingListFiles.map { (PathKey($0.source.path), $0) },
        uniquingKeysWith: { first, _ in first })
      for (index, source) in sources.enumerated() {
        guard let file = known[PathKey(source.path)] else { continue }
        if file.source == source {
          files[index] = file
        } else if source.differsInAccessOnly(from: file.source),
          file.cacheKey == cacheKeys[index] ?? CacheKey(source.cacheKeyText)
        {
          file.adopt(source)
          files[index] = file
        }
      }
    }
    self.files = Mutex(files)
  }

  /// Separate cache keys for sources that would share a key with an earlier source.
  ///
  /// They are needed because each file writes its own entry.
  private static func repeatedKeys(of sources: [FileSource]) -> [Int: CacheKey] {
    var counts: [Int: Int] = [:]
    counts.reserveCapacity(sources.count)
    var keys: [Int: CacheKey] = [:]
    for (index, source) in sources.enumerated() {
      let text = source.cacheKeyText
      // A hash collision only gives a source a separate key, which is harmless.
      let count = counts[text.hashValue, default: 0]
      counts[text.hashValue] = count + 1
      if count > 0 { keys[index] = CacheKey(text + "\n#\(count + 1)") }
    }
    return keys
  }

  /// The directory at a path: from the list, or looked up below a listing.
  func node(_ path: String) -> Node? {
    let key = PathKey(path)
    if listings.isEmpty { return directories[key].map { .fixed($0) } }
    if let listed = listings[key] { return .listed(listed) }
    if let directory = directories[key], listings[Self.root] == nil { return .fixed(directory) }
    let parts = path.pathParts()
    for count in parts.indices {
      let listed = listings[PathKey(parts[..<count].joined(separator: "/"))]
      if let listed { return listed.existingDirectory(parts[count...]).map { .listed($0) } }
    }
    return nil
  }

  /// The file or directory of the list at a path.
  func child(_ path: String) -> Child? {
    let key = PathKey(path)
    if directories[key] != nil || listings[key] != nil { return .directory(path) }
    return index(of: path).map { .file($0) }
  }

  /// The name of a child in its directory.
  func name(of child: Child) -> String {
    let path =
      switch child {
      case .directory(let path): path
      case .file(let index): sources[index].path
      }
    guard let cut = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
    return String(path[path.utf8.index(after: cut)...])
  }

  /// The index of the file at `path`; nil if there is no file.
  func index(of path: String) -> Int? {
    let key = PathKey(path)
    var low = 0
    var high = order.count
    while low < high {
      let middle = (low + high) / 2
      if PathKey(sources[order[middle]].path) < key { low = middle + 1 } else { high = middle }
    }
    guard low < order.count, PathKey(sources[order[low]].path) == key else { return nil }
    return order[low]
  }

  /// The file of a source, created at the first lookup.
  func file(_ index: Int) -> RemoteFile {
    existingFile(index) ?? makeFile(index)
  }

  /// The same, for one that was probably not looked up before.
  func makeFile(_ index: Int) -> RemoteFile {
    // Without the lock, because the hash takes longer than the rest.
    let key = cacheKey(index)
    return files.withLock { files in
      if let file = files[index] { return file }
      let file = environment.file(of: sources[index], key: key) { owner in
        !shows(owner, besides: index, among: files)
      }
      files[index] = file
      return file
    }
  }

  /// Whether an entry of the tree other than source `own` shows `file`, or will show it.
  private func shows(
    _ file: RemoteFile, besides own: Int, among files: [Int: RemoteFile]
  ) -> Bool {
    let path = file.source.path
    if let index = index(of: path) {
      guard index != own else { return false }
      return files[index].map { $0 === file } ?? (cacheKey(index) == file.cacheKey)
    }
    return listings.keys.contains {
      $0 == Self.root || path.utf8.starts(with: "\($0.text)/".utf8)
    }
  }

  /// The cache key of a source's file.
  func cacheKey(_ index: Int) -> CacheKey {
    cacheKeys[index] ?? CacheKey(sources[index].cacheKeyText)
  }

  /// The file of a source, if it was looked up.
  func existingFile(_ index: Int) -> RemoteFile? { files.withLock { $0[index] } }

  /// The list's own files that were looked up, in its order.
  var existingListFiles: [RemoteFile] {
    let files = files.withLock { $0 }
    return files.keys.sorted().compactMap { files[$0] }
  }

  /// The listings that the list names.
  var listedRoots: [ListedDirectory] {
    listings.keys.sorted().compactMap { listings[$0] }
  }

  /// The directories whose servers have not sent their listings, `limit` of them at most.
  func failedListings(limit: Int) -> [FailedListing] {
    listedRoots.reduce(into: []) { failed, directory in
      if failed.count < limit { failed += directory.failedListings(limit: limit - failed.count) }
    }
  }

  /// The files below listings that were looked up, ordered by their paths within each listing.
  var existingListedFiles: [RemoteFile] { allListedFiles.filter(\.wasAskedFor) }

  /// The same files, and those that the mount has looked at ahead.
  private var allListedFiles: [RemoteFile] {
    listings.sorted { $0.key < $1.key }.flatMap { $0.value.existingFiles }
  }

  /// All files that were looked up, or looked at ahead.
  var existingFiles: [RemoteFile] { existingListFiles + allListedFiles }

  /// Fails all waiting requests, because the mount ends.
  func abandon() {
    for file in existingListFiles { file.abandon() }
    for directory in listings.values { directory.abandon() }
  }
}
