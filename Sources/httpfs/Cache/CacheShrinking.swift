import HTTPTransferCore
import RangeCache
import TextFormat

/// Frees space in several caches together, that of the least recently used files first.
struct CacheShrinking {
  /// A cache that this process holds.
  private struct Held {
    let directory: CacheDirectory
    let inventory: CacheInventory
    var removedCount = 0
    var removedByteCount: Int64 = 0
  }

  private let paths: [String]

  init(_ paths: [String]) { self.paths = paths }

  /// Removes files that are not pinned until at most `limit` bytes are left in all caches that no
  /// mount uses.
  ///
  /// - Throws: ``CommandFailure`` with a line for each cache that cannot be opened, for each file
  ///   that cannot be removed, and if more than `limit` bytes are left.
  func evict(downTo limit: Int64) throws(CommandFailure) {
    var failures: [String] = []
    var caches = hold(&failures)
    var left: Int64 = 0
    var pinnedCount = 0
    var files: [(cache: Int, entry: StoredEntry)] = []
    for (index, cache) in caches.enumerated() {
      let entries = try failing { () throws(CacheError) in try cache.inventory.entries() }
      let pinned = cache.inventory.pinnedNames
      left = entries.reduce(left) { $0.saturatingSum($1.allocatedByteCount) }
      pinnedCount += entries.count { pinned.contains($0.name) }
      files += entries.filter { !pinned.contains($0.name) }.map { (index, $0) }
    }
    files.sort { $0.entry.lastUse < $1.entry.lastUse }
    for (index, entry) in files where left > limit {
      do throws(CacheError) {
        let freed = try caches[index].directory.remove(entry)
        // What others have put into the directory of an entry stays there.
        if freed > 0 || entry.allocatedByteCount == 0 { caches[index].removedCount += 1 }
        caches[index].removedByteCount += freed
        left -= freed
      } catch {
        failures.append("\(error)")
      }
    }
    for cache in caches where cache.removedCount > 0 {
      try CacheRemoval.report(
        fileCount: cache.removedCount, byteCount: cache.removedByteCount, from: cache.directory)
    }
    try printToStandardOutput(
      Array("\(humanBytes(left)) left in \(counted(caches.count, "unused cache"))\n".utf8))
    if left > limit {
      failures.append(
        "\(humanBytes(left)) cannot be removed; "
          + (pinnedCount > 0
            ? "\(counted(pinnedCount, "file")) pinned, 'httpfs cache evict NAME' removes one; else "
            : "") + "check who may write there, and for files that httpfs has not written")
    }
    if !failures.isEmpty { throw CommandFailure(messages: failures) }
  }

  /// The caches that no mount uses; the others are mentioned.
  private func hold(_ failures: inout [String]) -> [Held] {
    var caches: [Held] = []
    for path in paths {
      do throws(CacheError) {
        let inventory = try CacheInventory(path: path)
        if let holder = inventory.holder {
          printToStandardError(
            escapingControls("httpfs: \(path) is left: process \(holder) uses it"))
          continue
        }
        caches.append(Held(directory: try openCacheDirectory(path), inventory: inventory))
      } catch {
        failures.append(escapingControls("\(error)"))
      }
    }
    return caches
  }
}
