import ArgumentParser
import HTTPTransferCore
import RangeCache
import TextFormat

/// `httpfs cache verify`: checks whether the cached bytes are still as stored.
struct CacheVerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Compare cached bytes with their recorded hashes.",
    discussion: """
      Exits with 0 if all is intact and with 1 if something is damaged. A mount verifies the bytes \
      that it uses and fetches damaged ones again; this command verifies everything.
      """)

  @OptionGroup var cache: CacheOptions

  @Flag(help: "Drop the damaged bytes, so that the next mount fetches only these again.")
  var repair = false

  @Argument(help: "Files to verify (default: all).")
  var names: [String] = []

  func run() throws {
    try reportingFailure {
      let patterns = try CachePattern.used(names, inCachesAt: cache.paths())
      try cache.forEachHeld(with: patterns) { directory, inventory in
        try verify(directory, inventory, patterns)
      }
    }
  }

  private func verify(
    _ directory: CacheDirectory, _ inventory: CacheInventory, _ patterns: [CachePattern]
  ) throws {
    var count = 0
    var byteCount: Int64 = 0
    var damagedCount = 0
    var damagedByteCount: Int64 = 0
    for file in try CachedFile.selected(by: patterns, in: inventory) {
      let check = try failing { () throws(CacheError) in
        try directory.check(file.entry, repairing: repair)
      }
      guard let check else {
        printToStandardError(
          "httpfs: warning: \(file.name): written by a later version of httpfs; not verified")
        continue
      }
      count += 1
      byteCount = byteCount.saturatingSum(check.claimedByteCount)
      guard check.isDamaged else { continue }
      damagedCount += 1
      damagedByteCount = damagedByteCount.saturatingSum(check.damagedByteCount)
      // Print it at once, because the rest may take minutes.
      try printToStandardOutput(Array("\(file.name): \(explanation(of: check))\n".utf8))
    }
    let all = "\(counted(count, "file")), \(humanBytes(byteCount))"
    guard damagedCount > 0 else {
      return try printToStandardOutput(Array("\(all): all intact\n".utf8))
    }
    let damage = "\(damagedCount) damaged, \(humanBytes(damagedByteCount))"
    let advice =
      repair
      ? "the next mount fetches that again"
      : "'httpfs cache verify --repair' removes it; a mount fetches it again in any case"
    try printToStandardOutput(Array("\(all): \(damage); \(advice)\n".utf8))
    throw ExitCode.failure
  }

  private func explanation(of check: EntryCheck) -> String {
    var parts: [String] = []
    if check.damagedByteCount > 0 {
      parts.append("\(check.damagedByteCount) of \(check.claimedByteCount) bytes are damaged")
    }
    if check.isRecordDamaged {
      let isUseless = check.claimedByteCount == 0
      parts.append(
        isUseless
          ? "its record is damaged, so that none of its bytes can be used"
          : "its record is damaged; what it says before the damage counts")
    }
    return parts.joined(separator: "; ") + (repair ? "; removed" : "")
  }
}
