import DirectoryListing
import HTTPTransferCore
import Testing

@Suite struct ListedFactsTests {
  private func facts(_ html: String) throws -> [String: ListedFacts] {
    let listing = try DirectoryListing(
      Array(html.utf8), contentType: "text/html", from: try RemoteURL("http://h/"), isRoot: true)
    return listing.entries.reduce(into: [:]) { $0[$1.name] = $1.facts }
  }

  /// The facts from the text beside a file's link in a page like nginx's.
  private func facts(beside text: String) throws -> ListedFacts? {
    try facts(
      "<pre><a href=\"../\">../</a>\n<a href=\"f\">f</a> \(text)\n<a href=\"g\">g</a></pre>")["f"]
  }

  @Test func nginxListsLengthsToTheByteAndTimesToTheMinute() throws {
    let facts = try facts(Captured.nginx)
    // All files, no directory; 2026-11-21 09:01 UTC.
    #expect(facts.count == 9)
    #expect(
      facts.values.allSatisfy { $0.byteCount == 12345 && $0.modificationTime == 1_795_251_660 })
  }

  @Test(arguments: [Captured.apache, Captured.lighttpd, Captured.caddy, Captured.python])
  func roundedOrAbsentLengthsAreNotBelieved(html: String) throws {
    #expect(try facts(html).isEmpty)
  }

  @Test(arguments: [
    ("01-Jan-1970 00:00 1", ListedFacts(byteCount: 1, modificationTime: 0)),
    ("1970-01-02 00:00 12", ListedFacts(byteCount: 12, modificationTime: 86400)),
    ("1970-Jan-02 00:00:01 12", ListedFacts(byteCount: 12, modificationTime: 86401)),
    (
      "29-Feb-2024 23:59   1152921504606846976",
      ListedFacts(byteCount: .maximumFileOffset, modificationTime: 1_709_251_140)
    ),
    (
      "</td><td align=right>1970-01-02 00:00  </td><td>12</td><td>&nbsp;</td>",
      ListedFacts(byteCount: 12, modificationTime: 86400)
    ),
  ])
  func datesTimesAndLengthsAreRead(text: String, expected: ListedFacts) throws {
    #expect(try facts(beside: text) == expected)
  }

  @Test(arguments: [
    "", "12", "01-Jan-2026 00:00", "01-Jan-2026 00:00 -", "01-Jan-2026 00:00 0",
    "01-Jan-2026 00:00 1.2K", "01-Jan-2026 00:00 1,234", "01-Jan-2026 00:00 -5",
    "01-Jan-2026 00:00 +5", "01-Jan-2026 00:00 1 234", "01-Jan-2026 00:00 5 bytes",
    "01-Jan-2026 00:00 1152921504606846977", "01-Jan-2026 00:00 9223372036854775807",
    "01-Jan-2026 00:00 9223372036854775808", "30-Feb-2026 00:00 5", "01-Jan-2026 24:00 5",
    "01-Jan-2026 00:60 5", "01-Foo-2026 00:00 5", "01-00-2026 00:00 5", "2026-13-01 00:00 5",
    "01-Jan-26 00:00 5", "01--2026 00:00 5", "-- : 5", "٠١-Jan-2026 00:00 5",
    "01-Jan-2026 00:00 " + String(repeating: "0", count: 200) + "5",
    String(repeating: " ", count: 100_000) + "01-Jan-2026 00:00 5",
  ])
  func everythingElseIsNot(text: String) throws {
    #expect(try facts(beside: text) == nil)
  }

  @Test func textInALinkOrOfAnotherLinkIsNotTheFilesOwn() throws {
    let facts = try facts(
      "<a href=f>01-Jan-2026 00:00 5</a><a href=g>g</a> 01-Jan-2026 00:00 6 <a href=\"?C=N\">N</a> 7"
    )
    #expect(facts.keys.sorted() == ["g"])
    #expect(facts["g"]?.byteCount == 6)
  }
}
