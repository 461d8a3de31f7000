import ArgumentParser
import RangeCache
import TextFormat

/// `httpfs cache evict`: frees space in a cache.
struct CacheEvictCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "evict",
    abstract: "Remove the named files, or the least recently used ones, from a cache.",
    discussion: """
      With --to, pinned files stay; named files are removed even if they are pinned. Without \
      --cache-dir, --to applies to all caches together that no mount uses.
      """)

  @OptionGroup var cache: CacheOptions

  @Option(
    help: ArgumentHelp(
      "Remove least recently used files until at most this much is left; K, M, G and T may follow.",
      valueName: "bytes"))
  var to: ByteSize?

  @Argument(help: "Files to remove.")
  var names: [String] = []

  func validate() throws {
    if (to == nil) == names.isEmpty {
      throw ValidationError("Name either files or the bytes to leave, with --to.")
    }
  }

  func run() throws {
    try reportingFailure {
      let paths = try cache.paths()
      if let to, paths.count > 1 {
        return try CacheShrinking(paths).evict(downTo: to.byteCount)
      }
      let patterns = try CachePattern.used(names, inCachesAt: paths)
      try cache.forEachHeld(with: patterns) { directory, inventory in
        if let to { return try evict(from: directory, downTo: to.byteCount) }
        try CacheRemoval(directory).remove(
          CachedFile.selected(by: patterns, in: inventory).map(\.entry))
      }
    }
  }

  private func evict(from directory: CacheDirectory, downTo limit: Int64) throws {
    var count = 0
    let freed = directory.evict(downTo: limit) { _, remove in
      remove()
      count += 1
    }
    let left = directory.allocatedByteCount
    guard left <= limit else {
      let pinned = directory.pinnedKeys.count
      throw CommandFailure(
        "\(directory.path): \(humanBytes(left)) cannot be removed; "
          + (pinned > 0 ? "\(counted(pinned, "file")) pinned, see 'httpfs unpin'; else " : "")
          + "check who may write there, and for files that httpfs has not written")
    }
    try CacheRemoval.report(fileCount: count, byteCount: freed, from: directory)
  }
}
