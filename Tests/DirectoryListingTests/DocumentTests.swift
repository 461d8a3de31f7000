import HTTPTransferCore
import SeededRandom
import Testing

@testable import DirectoryListing

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
    // The text is not UTF-8, whatever it declares: each byte is a character.
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

  @Test func moreLinksThanTheLimitAreRefused() throws {
    let limit = ListingError.maximumLinkCount
    let links = String(repeating: "<a href=x>", count: limit)
    #expect(try listing(Array(links.utf8)).entries.map(\.name) == ["x"])
    #expect(throws: ListingError.tooManyLinks) { try listing(Array((links + "<a href=/>").utf8)) }
  }

  @Test func aTagMayBe64KiBLongAndNoLonger() throws {
    func html(_ byteCount: Int) -> [UInt8] {
      let filler = String(repeating: "x", count: byteCount - "<a title=\"\" href=a>".utf8.count)
      return Array("<a title=\"\(filler)\" href=a><a href=b>".utf8)
    }
    let limit = HTMLLinks.maximumTagByteCount
    #expect(try listing(html(limit)).entries.map(\.name) == ["a", "b"])
    #expect(throws: ListingError.tagTooLong) { try listing(html(limit + 1)) }
    // This also holds without an end of the tag.
    let open = "<a href=\"" + String(repeating: "x", count: limit)
    #expect(throws: ListingError.tagTooLong) { try listing(Array(open.utf8)) }
  }

  @Test func aTagMayHaveAThousandAttributesAndNoMore() throws {
    func html(_ count: Int) -> [UInt8] {
      Array(("<a " + (1..<count).map { "a\($0) " }.joined() + "href=a>").utf8)
    }
    let limit = HTMLLinks.maximumAttributeCount
    #expect(try listing(html(limit)).entries.map(\.name) == ["a"])
    #expect(throws: ListingError.tagTooLong) { try listing(html(limit + 1)) }
  }

  /// libxml2's parser, which was used before, compared each attribute with all previous ones.
  @Test(arguments: [
    "<a ATTRIBUTES>x</a>", "<html ATTRIBUTES>", "</a ATTRIBUTES>", "<!-- --><b ATTRIBUTES/>",
    "<a \"<b ATTRIBUTES>", "<script><a ATTRIBUTES></script>",
  ])
  func manyAttributesCostNoMoreThanTheirBytes(piece: String) {
    let attributes = (0..<900).map { "attribute-\($0)" }.joined(separator: " ")
    let page = piece.split(separator: "ATTRIBUTES").joined(separator: attributes)
    let bytes = Array(
      String(repeating: page, count: ListingError.maximumByteCount / page.utf8.count).utf8)
    let text = [UInt8](repeating: UInt8(ascii: "x"), count: bytes.count)
    let pace = ContinuousClock().measure { _ = try? listing(text) }
    let duration = ContinuousClock().measure { _ = try? listing(bytes) }
    // With the other parser it took some hundred times as long, on a machine of any speed.
    #expect(duration < pace * 40 + .seconds(1), "\(duration), text \(pace)")
  }

  @Test func aLongBaseCostsNothingForEachLink() throws {
    let base = "<base href=\"/" + String(repeating: "a/", count: 30_000) + "\">"
    let links = String(repeating: "<a href=x>", count: ListingError.maximumLinkCount)
    let plain = ContinuousClock().measure { _ = try? listing(Array(links.utf8)) }
    var entries: [ListingEntry]?
    let duration = try ContinuousClock().measure {
      entries = try listing(Array((base + links).utf8)).entries
    }
    #expect(entries == [])
    #expect(duration < plain * 10 + .seconds(1), "\(duration), without \(plain)")
  }

  @Test(arguments: [
    ("a&amp;b", "a&b"), ("a&lt;&gt;&quot;&apos;b", "a<>\"'b"), ("gr&uuml;n&euro;", "grün€"),
    ("&#228;&#xe4;&#XE4;", "äää"), ("a&b", "a&b"), ("a&amp", "a&amp"), ("a&nosuch;b", "a&nosuch;b"),
    ("&yuml;&nbsp;&thetasym;", "ÿ\u{A0}ϑ"), ("&&amp;amp;", "&&amp;"), ("&;", "&;"),
  ])
  func characterReferencesAreResolvedOnce(reference: String, name: String) throws {
    #expect(try listing(Array("<a href='\(reference)'>".utf8)).entries.map(\.name) == [name])
  }

  @Test(arguments: [
    "<!-- <a href=no> --><a href=yes>", "<!--><a href=yes>", "<!---><a href=yes>",
    "<!-- -- > <a href=no> --><a href=yes>", "<!doctype html><a href=yes>",
    "<![CDATA[ x ]]><a href=yes>", "<?php x ?><a href=yes>", "</ x><a href=yes>",
    "<script><a href=no></scripts></script ><a href=yes>", "<SCRIPT>x</script><a href=yes>",
    "<script src=x /><a href=yes>", "<title>a <b</title><a href=yes>", "1 < 2 <a href=yes>",
    "<a title='>' href=yes>", "<a title=\"'\" href=yes>", "<a/href=yes>", "<a\nhref\n=\nyes\n>",
    "<A\tHREF=yes>", "<a href=yes href=no>", "<a =href href=yes>", "<a xhref=no href=yes hrefx=no>",
    "<ab href=no><a href=yes>", "<a href=yes>x</a><a href=no", "<a href=yes>x</a><!-- <a href=no>",
  ])
  func tagsCommentsAndRawTextEndWhereHTMLSays(html: String) throws {
    #expect(try listing(Array(html.utf8)).entries.map(\.name) == ["yes"], "\(html)")
  }

  @Test(arguments: [
    "<div>", "<b>", "<table>", "<ul><li>", "<x:y>", "<!-- x ", "<title>", "<textarea>", "<a '",
    "<a href=x></i></b></u>", "<p>", "<!--", "&lt;", "&#x41;", "<a href=\"", "<", "</", "]]>",
    "<!DOCTYPE x [<!ENTITY a \"b\">]>&a;", "<script>", "<a href=x", "<br/>", "<a a=b c=d e=f>",
  ])
  func anythingOverAndOverEndsInBoundedTime(piece: String) {
    let count = ListingError.maximumByteCount / piece.utf8.count
    let bytes = Array(String(repeating: piece, count: count).utf8)
    let duration = ContinuousClock().measure { _ = try? listing(bytes) }
    #expect(duration < .seconds(30), "\(piece)")
  }

  /// Entities are not expanded, and no external resource is loaded.
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
    #expect(Set(listing.entries.map { PathKey($0.name) }).count == listing.entries.count)
  }
}
