import ArgumentParser
import Glibc
import HTTPTransferCore
import RangeCache
import TextFormat

/// `httpfs cache clear`: removes all cached files.
struct CacheClearCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clear",
    abstract: "Remove all files from a cache.",
    discussion: "Keeps files that httpfs has not written.")

  @OptionGroup var cache: CacheOptions

  @Flag(help: "Do not ask for confirmation.")
  var yes = false

  func run() throws {
    try reportingFailure {
      try cache.forEachHeld { directory, inventory in
        let entries = try failing { () throws(CacheError) in try inventory.entries() }
        if !yes, !entries.isEmpty { try ask(entries, in: inventory) }
        try CacheRemoval(directory).remove(entries)
        directory.removeNote(CacheDirectory.hostsName)
      }
    }
  }

  /// Asks the user; returns if the answer is yes.
  private func ask(
    _ entries: [StoredEntry], in inventory: CacheInventory
  ) throws(CommandFailure) {
    guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else {
      throw CommandFailure(
        "'\(inventory.path)' is not cleared: httpfs cannot ask for confirmation without a terminal; add --yes"
      )
    }
    let byteCount = entries.reduce(Int64(0)) { $0.saturatingSum($1.allocatedByteCount) }
    let files = "\(counted(entries.count, "file")), \(humanBytes(byteCount)),"
    let question = Array("Remove \(files) from \(inventory.path)? [y/N] ".utf8)
    // Without a newline, so that the cursor stays after the question.
    _ = question.withUnsafeBytes { write(STDERR_FILENO, $0.baseAddress, $0.count) }
    let answer = readLine() ?? ""
    guard ["y", "yes"].contains(answer.lowercased()) else {
      throw CommandFailure("'\(inventory.path)' is not cleared")
    }
  }
}
