import ExtentRecord
import HTTPTransferCore

/// Removes entries, except those that must stay.
struct EntryRemover: Sendable {
  let context: CacheContext
  let pins: PinnedKeys

  /// Removes the entry of `key`, if it exists.
  func remove(_ key: CacheKey) throws(CacheError) { context.allocated.recordFreed(try delete(key)) }

  /// Removes an entry and its pin, or throws if its record cannot be removed.
  ///
  /// - Returns: the number of bytes that its files occupied.
  func removeWithPin(_ key: CacheKey) throws(CacheError) -> Int64 {
    context.recordings.end(key)
    let folder = context.folder(of: key)
    let recordFreed = try folder.deleteRecord()
    context.allocated.recordFreed(recordFreed)
    // Without a record there may still be files from a crash.
    let freed = try delete(key)
    context.allocated.recordFreed(freed)
    if pins.contains(key) {
      pins.set(false, key)
      try pins.store(false, key)
    }
    folder.removeGroup()
    return recordFreed + freed
  }

  /// Removes entries that are not pinned, the least recently used ones first, until all together
  /// occupy at most `limit` bytes; see ``CacheDirectory/evict(downTo:decide:)``.
  func evict(
    downTo limit: Int64, decide: (CacheKey, _ remove: () -> Void) -> Void
  ) -> Int64 {
    let entries = context.allocated.count().sorted { $0.lastUse < $1.lastUse }
    var allocated = entries.reduce(Int64(0)) { $0.saturatingSum($1.allocatedByteCount) }
    var freed: Int64 = 0
    for entry in entries {
      if allocated <= limit { break }
      if pins.contains(entry.key) { continue }
      decide(entry.key) {
        // An entry that cannot be removed frees nothing, but the next one may.
        guard let byteCount = try? delete(entry.key) else { return }
        allocated -= byteCount
        freed += byteCount
      }
    }
    context.allocated.recordFreed(freed)
    return freed
  }

  private func delete(_ key: CacheKey) throws(CacheError) -> Int64 {
    context.recordings.end(key)
    return try context.folder(of: key).delete()
  }
}
