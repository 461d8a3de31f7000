internal import ExtentRecord
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// Sees to it that no two files of a mount have one cache entry: listings bring files as they are looked at, so
/// that a URL may be listed, named in the list, and listed once more; and a list that is read again may bring a
/// file back while handles of it are still open.
///
/// Lock order: `state` is a leaf. ``file(of:key:in:mayContinue:)`` calls files between two times of holding it.
final class CacheKeyOwners: Sendable {
  fileprivate struct State {
    /// Hashes of the texts whose keys the list's own files have; a collision costs a key of its own.
    var listed: Set<Int> = []
    /// The paths of the files that listings name, by the keys of their URLs: pruned with the files.
    var paths: [CacheKey: PathKey] = [:]
    /// The files by their keys; weak, so a file that nothing else refers to is gone.
    var files: [CacheKey: Owner] = [:]
    /// The number of files at which those that are gone are removed.
    var pruningCount = 1024
  }

  fileprivate struct Owner {
    weak var file: RemoteFile?
  }

  private let state = Mutex(State())

  /// The list's own files come first.
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
  /// That is the file that has the key, if it is the same one and `mayContinue` says that nothing
  /// else shows it. Otherwise it is a new file; while somebody has the other one open, it gets
  /// another key.
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
  /// - Returns: whether no other file has the key.
  fileprivate mutating func enter(_ file: RemoteFile) -> Bool {
    guard files[file.cacheKey]?.file == nil else { return false }
    if files.count >= pruningCount {
      files = files.filter { $0.value.file != nil }
      // A path whose file is about to come loses its claim, too: where another one then takes the
      // key, the file gets one of its own.
      paths = paths.filter { files[$0.key] != nil }
      pruningCount = max(1024, 2 * files.count)
    }
    files[file.cacheKey] = CacheKeyOwners.Owner(file: file)
    return true
  }
}
