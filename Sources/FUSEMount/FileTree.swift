internal import ExtentRecord
internal import RangeCache
public import RemoteFiles
internal import Synchronization

/// The directories and files that a list of sources makes; fixed but for the files' states, which
/// come into being with the first look at each.
public final class FileTree: Sendable {
  enum Child: Sendable {
    /// The path of the directory.
    case directory(String)
    /// The index of the source.
    case file(Int)
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
  private let environment: FileEnvironment
  private let files: Mutex<[Int: RemoteFile]>

  /// Makes the tree of `sources`, files of distinct paths, none of which is a directory of another.
  ///
  /// Where the list was read again, `old` is the tree before: its files go on if their sources did
  /// not change.
  public init(sources: [FileSource], environment: FileEnvironment, reusing old: FileTree? = nil) {
    self.sources = sources
    self.environment = environment
    var directories: [String: Directory] = ["": Directory()]
    for (index, source) in sources.enumerated() {
      var parent = ""
      let parts = source.path.split(separator: "/")
      for part in parts.dropLast() {
        let path = parent.isEmpty ? String(part) : parent + "/" + part
        directories[parent, default: Directory()].add(String(part), .directory(path))
        if directories[path] == nil { directories[path] = Directory() }
        parent = path
      }
      if let name = parts.last {
        directories[parent, default: Directory()].add(String(name), .file(index))
      }
    }
    self.directories = directories
    cacheKeys = Self.repeatedKeys(of: sources)
    var files: [Int: RemoteFile] = [:]
    if let old {
      let known = Dictionary(
        old.existingFiles.map { ($0.source.path, $0) }, uniquingKeysWith: { first, _ in first })
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

  func directory(_ path: String) -> Directory? { directories[path] }

  /// The file of a source, made at the first look.
  func file(_ index: Int) -> RemoteFile {
    files.withLock { files in
      if let file = files[index] { return file }
      let source = sources[index]
      let file = RemoteFile(
        source: source, cacheKey: cacheKeys[index] ?? CacheKey(source.cacheKeyText),
        environment: environment)
      files[index] = file
      return file
    }
  }

  /// The file of a source, if it has been looked at.
  func existingFile(_ index: Int) -> RemoteFile? { files.withLock { $0[index] } }

  var existingFiles: [RemoteFile] { files.withLock { Array($0.values) } }
}
