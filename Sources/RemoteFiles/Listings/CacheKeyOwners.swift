internal import ExtentRecord
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// Makes sure that no two files of a mount share a cache entry.
///
/// Listings bring files as they are looked up, so that a URL may be listed, named in the list, and
/// listed once more; and a reread list may bring a file back while handles of it are still open.
///
/// Lock order: `state` is a leaf. ``file(of:key:in:mayContinue:)`` calls files without holding it.
final class CacheKeyOwners: Sendable {
  fileprivate struct State {
    /// The hashes of the texts whose keys belong to the list's own files; a collision only costs a
    /// key of its own.
    var listed: Set<Int> = []
    /// The paths of the files that listings name, by the keys of their URLs; pruned with the files.
    var paths: [CacheKey: PathKey] = [:]
    /// The files by their keys; weak references, so that unused files are freed.
    var files: [CacheKey: Owner] = [:]
    /// The number of files at which freed ones are removed.
    var pruningCount = 1024
  }

  fileprivate struct Owner {
    weak var file: RemoteFile?
  }

  private let state = Mutex(State())

  /// Reserves the keys of the list's own files, which come first.
  func reserve(for sources: [FileSource]) {
    let listed = Set(sources.map { $0.cacheKeyText.hashValue })
    state.withLock { $0.listed = listed }
  }

  /// The key of a file that a listing names: that of its URL, unless another file has it.
  func key(for source: FileSource) -> CacheKey {
    let text = source.cacheKeyText
    let key = CacheKey(text)
    let isOwn = state.withLock { state in
      guard !state.listed.contains(text.hashValue) else { return false }
      let own = PathKey(source.path)
      if let path = state.paths[key] { return path == own }
      state.paths[key] = own
      return true
    }
    return isOwn ? key : CacheKey(text + "\n#" + source.path)
  }

  /// The file for `source`, filed under `key`.
  ///
  /// This is the file that has the key, if it is the same one and `mayContinue` confirms that it is
  /// not shown elsewhere. Otherwise it is a new file, which gets another key while the other file
  /// is shown elsewhere or in use.
  func file(
    of source: FileSource, key first: CacheKey, in environment: MountEnvironment,
    mayContinue: (RemoteFile) -> Bool
  ) -> RemoteFile {
    var key = first
    var count = 1
    while true {
      guard let owner = state.withLock({ $0.files[key]?.file }) else {
        let file = RemoteFile(source: source, cacheKey: key, environment: environment)
        if state.withLock({ $0.enter(file) }) { return file }
        continue
      }
      if owner.source.isSameFile(as: source), mayContinue(owner) {
        if owner.source != source { owner.adopt(source) }
        owner.keep()
        return owner
      }
      if mayContinue(owner), owner.giveWay() {
        state.withLock { if $0.files[key]?.file === owner { $0.files[key] = nil } }
      } else {
        count += 1
        key = CacheKey(source.cacheKeyText + "\n@\(count)\n" + source.path)
      }
    }
  }
}

extension CacheKeyOwners.State {
  /// Enters `file` unless another file has its key.
  ///
  /// - Returns: whether no other file has the key.
  fileprivate mutating func enter(_ file: RemoteFile) -> Bool {
    guard files[file.cacheKey]?.file == nil else { return false }
    if files.count >= pruningCount {
      files = files.filter { $0.value.file != nil }
      // A path whose file is about to be made loses its claim, too: if another path then takes the
      // key, the file gets another key.
      paths = paths.filter { files[$0.key] != nil }
      pruningCount = max(1024, 2 * files.count)
    }
    files[file.cacheKey] = CacheKeyOwners.Owner(file: file)
    return true
  }
}
