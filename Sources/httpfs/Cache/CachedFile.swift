import RangeCache
import TextFormat

/// An entry of the cache, as shown to the user.
struct CachedFile {
  let entry: StoredEntry
  /// The content of its record's header.
  let head: StoredHead

  /// The files in a cache, the most recently used first; reads headers only.
  static func all(in inventory: CacheInventory) throws(CommandFailure) -> [CachedFile] {
    try failing { () throws(CacheError) in
      var files: [CachedFile] = []
      for entry in try inventory.entries() {
        let head = try inventory.head(of: entry)
        if head != .missing { files.append(CachedFile(entry: entry, head: head)) }
      }
      return files
    }
  }

  /// The files that `patterns` select, in their order; all if there is no pattern.
  static func selected(
    by patterns: [CachePattern], in inventory: CacheInventory
  ) throws(CommandFailure) -> [CachedFile] {
    let files = try all(in: inventory)
    if patterns.isEmpty { return files }
    return files.filter { file in patterns.contains { $0.matches(file) } }
  }

  /// The source of the bytes, a URL without credentials and query values; nil if the record does
  /// not have it.
  var source: String? {
    guard case .readable(let source, _) = head, !source.isEmpty else { return nil }
    return source
  }

  /// The name for the user: the source, or else the key.
  var name: String { source.map(escapingControls) ?? "key \(entry.name)" }
}
