import ArgumentParser
import FoundationEssentials
import HTTPTransferCore
import SourceList
import TextFormat

/// `httpfs list`: shows what a mount of the list would contain, without network access.
struct ListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "Check a list and show its files, URLs and options, without network access.",
    discussion: """
      Prints a line for each file: its name and its URL, separated by a TAB. Indented lines below \
      it show its mirrors and options and, for a file of a Metalink, its length and the number of \
      piece hashes. Credentials, queries and the values of headers are not shown. \
      A directory listing (a URL that ends in '/') is one line; its name ends in '/'.
      """)

  @Argument(help: "A list file, '-' for standard input, or one URL.", completion: .file())
  var source: String

  @Flag(help: "Keep host and path of the URLs as directories.")
  var tree = false

  @Flag(help: "Print JSON.")
  var json = false

  func run() throws {
    try reportingFailure {
      let list = try loadSource(source, tree: tree, listings: .always)
      printWarnings(of: list)
      try json ? printDocument(of: list) : printText(of: list)
    }
  }

  /// How much text to collect before printing: a list may have a million files.
  private static let pieceByteCount = 256 << 10

  private func printText(of list: SourceList) throws(CommandFailure) {
    var text: [UInt8] = []
    for entry in list.entries {
      text += "\(shownName(of: entry))\t\(shown(entry.url))\n".utf8
      for mirror in entry.mirrors { text += "  mirror=\(shown(mirror))\n".utf8 }
      for header in entry.headers { text += "  header=\(header.name)\n".utf8 }
      if let checksum = entry.checksum { text += "  checksum=\(checksum)\n".utf8 }
      if let length = entry.length { text += "  length=\(length)\n".utf8 }
      if let rate = entry.rateLimit { text += "  max-download-limit=\(rate)\n".utf8 }
      if let pieces = entry.pieces {
        text +=
          "  pieces=\(pieces.algorithm.rawValue):\(pieces.pieceByteCount) (\(pieces.digests.count))\n"
          .utf8
      }
      if text.count >= Self.pieceByteCount {
        try printToStandardOutput(text)
        text.removeAll(keepingCapacity: true)
      }
    }
    try printToStandardOutput(text)
  }

  /// One object: `files`, each encoded separately, and `warnings`.
  private func printDocument(of list: SourceList) throws(CommandFailure) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    func append(_ value: some Encodable, to text: inout [UInt8]) throws(CommandFailure) {
      do {
        text += try encoder.encode(value)
      } catch {
        throw CommandFailure("cannot write the list as JSON: \(error)")
      }
    }
    var text = Array(#"{"files":["#.utf8)
    for (index, entry) in list.entries.enumerated() {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      try append(file(of: entry), to: &text)
      if text.count >= Self.pieceByteCount {
        try printToStandardOutput(text)
        text.removeAll(keepingCapacity: true)
      }
    }
    text += #"],"warnings":"#.utf8
    try append(list.warnings.map(\.description), to: &text)
    try printToStandardOutput(text + Array("}\n".utf8))
  }

  private func file(of entry: SourceEntry) -> Document.File {
    Document.File(
      name: entry.path, url: shown(entry.url), mirrors: entry.mirrors.map(shown),
      headers: entry.headers.map(\.name), checksum: entry.checksum?.description,
      length: entry.length,
      pieces: entry.pieces.map {
        Document.Pieces(
          algorithm: $0.algorithm.rawValue, length: $0.pieceByteCount, count: $0.digests.count)
      },
      rate: entry.rateLimit,
      line: entry.line, listing: entry.isListing)
  }

  /// A directory listing ends in a slash, like its URL; the mount's root is `./`.
  private func shownName(of entry: SourceEntry) -> String {
    entry.isListing ? (entry.path.isEmpty ? "." : entry.path) + "/" : entry.path
  }

  private func shown(_ url: RemoteURL) -> String { escapingControls(url.redacted) }

  /// The output of `--json`; a missing checksum, length, rate or list of piece hashes is left out.
  private enum Document {
    struct File: Encodable {
      let name: String
      let url: String
      let mirrors: [String]
      let headers: [String]
      let checksum: String?
      let length: Int64?
      let pieces: Pieces?
      /// The maximum number of bytes per second, 0 for no limit.
      let rate: Int64?
      let line: Int
      /// Whether it is a directory with the files of its server's listing.
      let listing: Bool
    }

    /// The number of piece hashes and their algorithm.
    struct Pieces: Encodable {
      let algorithm: String
      /// The length of a piece in bytes.
      let length: Int64
      let count: Int
    }
  }
}
