import Foundation
import Testing

/// The bounds in docs/SECURITY.md match the sources.
@Suite struct SecurityBounds {
  private static let document = "docs/SECURITY.md"

  /// A number of the document and its constant.
  struct Bound: CustomTestStringConvertible {
    /// The first cell of its row.
    let input: String
    /// The text of the row: a number, and its unit.
    let text: String
    /// The file of the constant, below Sources, without its extension.
    let file: String
    let name: String

    init(_ input: String, _ text: String, _ file: String, _ name: String) {
      self.input = input
      self.text = text
      self.file = file
      self.name = name
    }

    var testDescription: String { "\(input): \(text)" }
  }

  static let bounds = [
    Bound("head of a response", "256 KiB", "HTTPTransfer/Client/HeadParser", "byteLimit"),
    Bound(
      "head of a response", "1 KiB of a tag", "HTTPTransferCore/HTTPFields+Foreign", "readableLimit"
    ),
    Bound("head of a response", "1 KiB of a tag", "HTTPTransferCore/EntityTag", "byteLimit"),
    Bound(
      "head of a response", "8 KiB of a redirect's URL", "HTTPTransferCore/RemoteURL",
      "foreignByteLimit"),
    Bound(
      "head of a response", "8 KiB of `Content-Disposition`",
      "HTTPTransferCore/ContentDisposition", "maximumByteCount"),
    Bound(
      "head of a response", "1,000 fields", "HTTPTransferCore/HTTPFields+Foreign", "foreignLimit"),
    Bound("body of a response", "256 pieces", "HTTPTransfer/Client/BodyTurns", "pieceLimit"),
    Bound("body of a response", "4 KiB", "HTTPTransfer/Client/BodyTurns", "smallByteCount"),
    Bound("coded body", "2 codings", "HTTPTransfer/Decoding/ContentCoding", "limit"),
    Bound("coded body", "256 KiB coded", "HTTPTransfer/Decoding/BodyDecoder", "waitingLimit"),
    Bound("coded body", "256 KiB decoded", "HTTPTransfer/Decoding/BodyDecoder", "pieceByteCount"),
    Bound("HTML listing", "16 MiB", "DirectoryListing/ListingError", "maximumByteCount"),
    Bound("HTML listing", "64 KiB a tag", "DirectoryListing/HTMLLinks", "maximumTagByteCount"),
    Bound("HTML listing", "96 bytes", "DirectoryListing/ListedFacts", "maximumTextByteCount"),
    Bound("HTML listing", "100,000 names", "DirectoryListing/ListingError", "maximumEntryCount"),
    Bound(
      "HTML listing", "1,000 attributes", "DirectoryListing/HTMLLinks", "maximumAttributeCount"),
    Bound("HTML listing", "512 MiB", "RemoteFiles/Listings/ListingRegistry", "standardLimit"),
    Bound("HTML listing", "8 at a time", "httpfs/Recursion/ListingReader", "maximumConcurrent"),
    Bound(
      "HTML listing", "1,000,000 files", "httpfs/Recursion/ListingWalk", "maximumEntryCount"),
    Bound("HTML listing", "512 MiB of their", "httpfs/Recursion/ListingWalk", "maximumByteCount"),
    Bound("Metalink", "32 MiB", "SourceList/Metalink/Metalink", "maximumByteCount"),
    Bound("Metalink", "64 KiB a tag", "SourceList/Metalink/TagScanner", "maximumByteCount"),
    Bound("Metalink", "1,000 URLs", "SourceList/SourceList", "maximumURLCount"),
    Bound("Metalink", "1,048,576 piece", "HTTPTransferCore/PieceHashes", "maximumCount"),
    Bound("Metalink", "64 attributes", "SourceList/Metalink/XMLElements", "maximumAttributeCount"),
    Bound(
      "Metalink", "16 namespaces", "SourceList/Metalink/XMLElements", "maximumDeclarationCount"),
    Bound("Metalink", "16 elements", "SourceList/Metalink/XMLElements", "maximumNesting"),
    Bound("list", "1 GiB", "SourceList/SourceList", "maximumInflatedByteCount"),
    Bound("list", "64 KiB a line", "SourceList/SourceList", "maximumLineByteCount"),
    Bound("list", "64 KiB of `header=`", "SourceList/SourceList", "maximumHeaderByteCount"),
    Bound("list", "4,095 bytes", "SourceList/EntryPath", "maximumPathByteCount"),
    Bound("list", "5,000,000 files", "SourceList/SourceList", "maximumEntryCount"),
    Bound("list", "1,000 URLs", "SourceList/SourceList", "maximumURLCount"),
    Bound("list", "100 `header=`", "SourceList/SourceList", "maximumHeaderCount"),
    Bound("list", "1,048,576 piece", "HTTPTransferCore/PieceHashes", "maximumCount"),
    Bound("list", "128 names", "SourceList/EntryPath", "maximumSegmentCount"),
    Bound("list", "20 errors", "SourceList/SourceListError", "maximumDiagnosticCount"),
    Bound("list", "100 kinds", "SourceList/WarningLog", "maximumTopicCount"),
    Bound("session file", "1,048,576 piece", "HTTPTransferCore/PieceHashes", "maximumCount"),
    Bound("netrc", "10,000 machines", "HTTPTransferCore/Netrc", "maximumEntryCount"),
    Bound("extent record", "512 KiB", "ExtentRecord/RecordHeader", "maximumByteCount"),
    Bound("extent record", "4,096 records", "ExtentRecord/LogReader", "blockRecordCount"),
    Bound("`hosts` of the cache", "1 MiB", "RangeCache/Internals/CacheNotes", "byteLimit"),
    Bound("`hosts` of the cache", "1,000 origins", "HTTPTransferCore/HostMemory", "limit"),
    Bound("access trace", "256 MiB", "AccessTrace/AccessTrace", "maximumByteCount"),
    Bound("access trace", "5,000,000 operations", "AccessTrace/AccessTrace", "maximumRecordCount"),
    Bound(
      "configuration file", "1 MiB", "httpfs/Configuration/ConfigurationSource",
      "maximumByteCount"),
    Bound(
      "configuration file", "500 named mounts", "ConfigurationFile/ConfigurationFile", "mostMounts"),
    Bound("`.control`", "4,096 bytes", "MountControl/ControlWriter", "byteLimit"),
    Bound("output of `--url-command`", "64 KiB", "httpfs/Access/ShellCommand", "outputLimit"),
  ]

  /// The number at the start of a text, in its unit.
  private static func number(_ text: String) -> Int? {
    let words = text.replacingOccurrences(of: ",", with: "").split(separator: " ").map(String.init)
    guard let first = words.first, let number = Int(first) else { return nil }
    let shifts = ["KiB": 10, "MiB": 20, "GiB": 30]
    return number << (words.count > 1 ? shifts[words[1], default: 0] : 0)
  }

  /// The value of a constant in the text of a file: a number, a product, or a shift.
  private static func constant(_ name: String, in text: String) -> Int? {
    for line in text.split(separator: "\n") {
      guard
        let mark = ["static let \(name) = ", "static let \(name): Int64 = "].first(where: {
          line.contains($0)
        }),
        let range = line.range(of: mark)
      else { continue }
      let words = line[range.upperBound...].replacingOccurrences(of: "_", with: "")
        .split(separator: " ").map(String.init)
      let numbers = words.compactMap { Int($0) }
      if words.count == 1 { return numbers.first }
      guard words.count == 3, numbers.count == 2 else { return nil }
      return words[1] == "<<" ? numbers[0] << numbers[1] : numbers[0] * numbers[1]
    }
    return nil
  }

  @Test(arguments: bounds)
  func `a bound of the document is the constant of the sources`(bound: Bound) throws {
    let rows = MarkdownTable.all(in: try Repository.text(of: Self.document))
      .filter { $0.header.first == "input" }.flatMap(\.rows)
    let row = try #require(
      rows.first { $0.cells[0] == bound.input }, "\(Self.document) has no row '\(bound.input)'")
    #expect(
      " \(row.cells.joined(separator: " "))".contains(" \(bound.text)"),
      "\(Self.document):\(row.line) does not say '\(bound.text)'")
    let text = try Repository.text(of: "Sources/\(bound.file).swift")
    let constant = try #require(
      Self.constant(bound.name, in: text), "\(bound.file) has no constant \(bound.name)")
    #expect(Self.number(bound.text) == constant)
  }

  @Test func `numbers and constants are read as they are meant`() {
    #expect(Self.number("1,048,576 piece hashes") == 1 << 20)
    #expect(Self.number("64 KiB a tag") == 65_536)
    #expect(Self.constant("a", in: "  static let a = 5_000\n") == 5_000)
    #expect(Self.constant("a", in: "  private static let a: Int64 = 16 << 20\n") == 16 << 20)
    #expect(Self.constant("a", in: "  static let a = 64 * 1024\n") == 65_536)
    #expect(Self.constant("a", in: "  static let a = 2 * other\n") == nil)
  }
}
