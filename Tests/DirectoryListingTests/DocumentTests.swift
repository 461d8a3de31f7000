import DirectoryListing
import HTTPTransferCore
import SeededRandom
import Testing

private func listing(
  _ bytes: [UInt8], type: String? = "text/html"
) throws(ListingError) -> DirectoryListing {
  guard let url = try? RemoteURL("http://h/d/") else { return DirectoryListing() }
  return try DirectoryListing(bytes, contentType: type, from: url, isRoot: false)
}

@Suite struct DocumentTests {
  @Test(arguments: [
    "text/html", "TEXT/HTML", "text/html;charset=utf-8", "text/html ; charset=x",
    "application/xhtml+xml",
  ])
  func htmlIsRead(type: String) throws {
    #expect(try listing(Array("<a href=a>".utf8), type: type).entries.count == 1)
  }

  @Test(arguments: ["text/plain", "application/json", "text/htmlx", "", nil])
  func nothingElseIs(type: String?) {
    #expect(throws: ListingError.notHTML(type)) {
      try listing(Array("<a href=a>".utf8), type: type)
    }
  }

  @Test func namesAreReadInTheCharsetThatIsDeclared() throws {
    let bytes = Array("<a href=\"".utf8) + [0xFC] + Array("\">".utf8)
    #expect(try listing(bytes, type: "text/html; charset=iso-8859-1").entries[0].name == "ü")
    // Not UTF-8, whatever is said: a byte is a character.
    #expect(try listing(bytes).entries[0].name == "ü")
    let lying = Array("<meta charset=\"iso-8859-1\"><a href=\"ü\">".utf8)
    #expect(try listing(lying).entries[0].name == "ü")
  }

  @Test func anEmptyDocumentIsAnEmptyDirectory() throws {
    #expect(try listing([]).entries.isEmpty)
    #expect(try listing(Array("<html><body>nothing".utf8)).entries.isEmpty)
  }

  @Test func moreNamesThanTheLimitAreRefused() throws {
    func html(_ count: Int) -> [UInt8] {
      Array((0..<count).map { "<a href=f\($0)>" }.joined(separator: "</a>").utf8)
    }
    let limit = ListingError.maximumEntryCount
    #expect(try listing(html(limit)).entries.count == limit)
    #expect(throws: ListingError.tooManyEntries) { try listing(html(limit + 1)) }
  }

  @Test func aDocumentOverTheLimitIsRefused() {
    let bytes = [UInt8](repeating: UInt8(ascii: " "), count: ListingError.maximumByteCount + 1)
    #expect(throws: ListingError.tooLarge) { try listing(bytes) }
  }

  @Test(arguments: ["<div>", "<b>", "<table>", "<ul><li>", "<x:y>"])
  func elementsWithoutEndAreRefusedInShortTime(element: String) {
    let count = ListingError.maximumByteCount / element.utf8.count
    let bytes = Array(String(repeating: element, count: count).utf8)
    let duration = ContinuousClock().measure {
      #expect(throws: ListingError.tooDeeplyNested) { try listing(bytes) }
    }
    #expect(duration < .seconds(20))
  }

  @Test(arguments: [
    "<a href=x></i></b></u>", "<p>", "<!--", "&lt;", "&#x41;", "<a href=\"", "<", "</", "]]>",
    "<!DOCTYPE x [<!ENTITY a \"b\">]>&a;", "<script>", "<a href=x", "<br/>", "<a a=b c=d e=f>",
  ])
  func anythingOverAndOverEndsInBoundedTime(piece: String) {
    let count = ListingError.maximumByteCount / piece.utf8.count
    let bytes = Array(String(repeating: piece, count: count).utf8)
    let duration = ContinuousClock().measure { _ = try? listing(bytes) }
    #expect(duration < .seconds(30), "\(piece)")
  }

  /// Entities are not expanded, nothing is loaded, and nothing outside comes in.
  @Test func declarationsOfEntitiesMeanNothing() throws {
    let html = """
      <!DOCTYPE html [<!ENTITY x SYSTEM "file:///etc/passwd"><!ENTITY y "boom">]>
      <a href="a&x;b">x</a><a href="&y;&y;">y</a>
      """
    for entry in try listing(Array(html.utf8)).entries {
      #expect(!entry.name.contains("root:") && !entry.name.contains("boom"), "\(entry.name)")
    }
  }

  @Test(arguments: 0..<300)
  func garbageGivesNoBadName(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let pieces = [
      "<a href=\"", "\">", "</a>", "..", "/", "%2e", "%2f", "%00", "\u{0}", "<base href='", "'>",
      "http://h/d/", "//h/", "?", "#", "&#", "x", "\n", "é", "<", "<!--", "-->", "\\", ".", "%",
    ]
    var bytes: [UInt8] = []
    for _ in 0..<Int.random(in: 0...400, using: &random) {
      if Bool.random(using: &random) {
        bytes += Array((pieces.randomElement(using: &random) ?? "").utf8)
      } else {
        bytes.append(.random(in: .min ... .max, using: &random))
      }
    }
    guard let listing = try? listing(bytes) else { return }
    for entry in listing.entries {
      let name = entry.name
      #expect(!name.isEmpty && name != "." && name != ".." && name.utf8.count <= 255)
      #expect(!name.unicodeScalars.contains { $0.value < 0x20 || $0 == "/" || $0.value == 0x7F })
      let url = "http://h/d/" + entry.segment
      #expect(try RemoteURL(url).path == "/d/" + entry.segment)
    }
    #expect(Set(listing.entries.map(\.name)).count == listing.entries.count)
  }
}
