internal import ExtentRecord
internal import RangeCache
internal import Synchronization

/// Sees to it that no two files of a mount have one cache entry, where listings bring files as they are
/// looked at: a URL may be listed, named in the list, and listed once more.
///
/// Lock order: a leaf.
final class CacheKeyOwners: Sendable {
  private struct State {
    /// Hashes of the texts whose keys the list's own files have; a collision costs a key of its own.
    var listed: Set<Int> = []
    var paths: [CacheKey: String] = [:]
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
      if let path = state.paths[key] { return path == source.path }
      state.paths[key] = source.path
      return true
    }
    return isOwn ? key : CacheKey(text + "\n#" + source.path)
  }
}
