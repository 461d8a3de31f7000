import RangeCache
import TextFormat

/// Removes files from a cache that this process holds, and reports the result.
struct CacheRemoval {
  private let directory: CacheDirectory

  init(_ directory: CacheDirectory) { self.directory = directory }

  /// Removes as many of `entries` as possible, and reports how many.
  ///
  /// - Throws: ``CommandFailure`` with a line for each entry that stays.
  func remove(_ entries: [StoredEntry]) throws(CommandFailure) {
    var count = 0
    var byteCount: Int64 = 0
    var failures: [String] = []
    for entry in entries {
      do throws(CacheError) {
        byteCount += try directory.remove(entry)
        count += 1
      } catch {
        failures.append("\(error)")
      }
    }
    try Self.report(fileCount: count, byteCount: byteCount, from: directory)
    if !failures.isEmpty { throw CommandFailure(messages: failures) }
  }

  static func report(
    fileCount: Int, byteCount: Int64, from directory: CacheDirectory
  ) throws(CommandFailure) {
    let text =
      "removed \(counted(fileCount, "file")), \(humanBytes(byteCount)), from \(directory.path)\n"
    try printToStandardOutput(Array(text.utf8))
  }
}
