import ArgumentParser
import FoundationEssentials
import Glibc
import HTTPTransferCore
import RangeCache
import TextFormat

/// `httpfs cache ls`: shows the contents of a cache directory, also while a mount uses it.
struct CacheListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls",
    abstract: "Show the files in a cache, the most recently used first.",
    discussion: """
      Prints a line for each file: its cached bytes, its complete length, the time of its last \
      use, and its URL without credentials and query. Works while a mount uses the cache.
      """)

  @OptionGroup var cache: CacheOptions

  @Flag(help: "Print JSON.")
  var json = false

  func run() throws {
    try reportingFailure {
      var documents: [Document] = []
      var emptyCaches: [CacheInventory] = []
      var failure: (any Error)?
      do {
        try cache.inspectEach { inventory in
          let rows = try rows(of: inventory)
          if json {
            documents.append(document(of: rows, inventory))
          } else if rows.isEmpty, inventory.holder == nil {
            emptyCaches.append(inventory)
          } else {
            try printToStandardOutput(text(of: rows, inventory))
          }
        }
      } catch {
        failure = error
      }
      if json { try printJSON(documents) }
      try summarize(emptyCaches)
      if let failure { throw failure }
    }
  }

  /// Mentions the caches without files, of which there may be many, in one line.
  private func summarize(_ caches: [CacheInventory]) throws(CommandFailure) {
    if caches.count > 1 {
      let place = defaultCacheDirectory().map { " below \($0)" } ?? ""
      try printToStandardOutput(Array("\(caches.count) empty caches\(place)\n".utf8))
    } else if let only = caches.first {
      try printToStandardOutput(text(of: [], only))
    }
  }

  private func rows(of inventory: CacheInventory) throws(CommandFailure) -> [Row] {
    let files = try CachedFile.all(in: inventory)
    let pinnedNames = inventory.pinnedNames
    var rows: [Row] = []
    for file in files {
      let presence = try failing { () throws(CacheError) in
        try inventory.presence(of: file.entry)
      }
      rows.append(
        Row(
          file: file, presence: presence, isPinned: pinnedNames.contains(file.entry.name)))
    }
    return rows
  }

  /// A file and how much of it is cached.
  private struct Row {
    let file: CachedFile
    let presence: CacheInventory.Presence?
    let isPinned: Bool
  }

  // MARK: Text

  private func text(of rows: [Row], _ inventory: CacheInventory) -> [UInt8] {
    var text = ""
    for row in rows {
      let present = row.presence.map { humanBytes($0.byteCount) } ?? "-"
      let length = row.presence?.completeLength.map(humanBytes) ?? "?"
      text += "\(padded(present, 10)) / \(paddedAfter(length, 10))  "
      text += "\(Self.localTime(row.file.entry.lastUse.seconds))  \(row.file.name)"
      text += "\(Self.remark(row.file.head))\(row.isPinned ? " (pinned)" : "")\n"
    }
    let present = rows.reduce(Int64(0)) { $0.saturatingSum($1.presence?.byteCount ?? 0) }
    let allocated = rows.reduce(Int64(0)) { $0.saturatingSum($1.file.entry.allocatedByteCount) }
    text += "\(counted(rows.count, "file")), \(humanBytes(present)) present, "
    text += "\(humanBytes(allocated)) on the disk in \(inventory.path)"
    if let holder = inventory.holder { text += ", in use by process \(holder)" }
    return Array((text + "\n").utf8)
  }

  private func padded(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  private func paddedAfter(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }

  private static func remark(_ head: StoredHead) -> String {
    switch head {
    case .readable, .missing: ""
    case .damaged: " (damaged record)"
    case .laterFormat: " (of a later version of httpfs)"
    }
  }

  /// A moment in the time zone of the user (`localtime_r(3)`): `2026-11-21 07:45`.
  private static func localTime(_ seconds: Int) -> String {
    var moment = time_t(seconds)
    var fields = tm()
    guard localtime_r(&moment, &fields) != nil else { return "\(seconds)" }
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 32) { buffer in
      guard let base = buffer.baseAddress,
        strftime(base, buffer.count, "%Y-%m-%d %H:%M", &fields) > 0
      else { return "\(seconds)" }
      return String(cString: base)
    }
  }

  // MARK: JSON

  /// Prints one document: that of the named cache, or an object with those of all caches.
  private func printJSON(_ documents: [Document]) throws(CommandFailure) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let bytes: [UInt8]
    do {
      if cache.cacheDir == nil {
        bytes = try Array(encoder.encode(["caches": documents]))
      } else {
        guard let document = documents.first else { return }
        bytes = try Array(encoder.encode(document))
      }
    } catch {
      throw CommandFailure("cannot write the cache's files as JSON: \(error)")
    }
    try printToStandardOutput(bytes + [UInt8(ascii: "\n")])
  }

  private func document(of rows: [Row], _ inventory: CacheInventory) -> Document {
    Document(
      directory: inventory.path, inUseBy: inventory.holder,
      files: rows.map { row in
        var version: ContentVersion?
        if case .readable(_, let found) = row.file.head { version = found }
        return Document.File(
          key: row.file.entry.name, source: row.file.source, state: Self.state(row.file.head),
          length: row.presence?.completeLength, presentByteCount: row.presence?.byteCount,
          allocatedByteCount: row.file.entry.allocatedByteCount,
          lastUse: row.file.entry.lastUse.seconds, validator: version?.validatorDescription,
          contentCoding: version?.contentCoding, isPinned: row.isPinned)
      })
  }

  private static func state(_ head: StoredHead) -> String {
    switch head {
    case .readable: "readable"
    case .damaged: "damaged"
    case .laterFormat: "later_format"
    case .missing: "missing"
    }
  }

  /// The output of `--json`; unknown values are left out.
  private struct Document: Encodable {
    struct File: Encodable {
      let key: String
      let source: String?
      let state: String
      let length: Int64?
      let presentByteCount: Int64?
      let allocatedByteCount: Int64
      /// Seconds since the beginning of 1970 in UTC.
      let lastUse: Int
      let validator: String?
      let contentCoding: String?
      let isPinned: Bool

      enum CodingKeys: String, CodingKey {
        case key, source, state, length, validator
        case presentByteCount = "present_bytes"
        case allocatedByteCount = "allocated_bytes"
        case lastUse = "last_use"
        case contentCoding = "content_coding"
        case isPinned = "pinned"
      }
    }

    let directory: String
    let inUseBy: Int32?
    let files: [File]

    enum CodingKeys: String, CodingKey {
      case directory, files
      case inUseBy = "in_use_by"
    }
  }
}
