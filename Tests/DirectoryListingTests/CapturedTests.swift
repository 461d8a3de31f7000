import DirectoryListing
import HTTPTransferCore
import Testing

@Suite struct CapturedTests {
  /// The names in that directory; directories end with a slash.
  private static let names: Set<String> = [
    "sub/", "with dir & x/", "%41.txt", "a&amp;b", "a&b.txt", "a+b.txt", "a:b.txt", "double\"q.txt",
    "grüße.txt", "what?.txt", "with space.txt",
  ]

  @Test(arguments: [
    ("nginx", Captured.nginx), ("Apache", Captured.apache), ("lighttpd", Captured.lighttpd),
    ("Caddy", Captured.caddy), ("Python", Captured.python),
  ])
  func everyServersListingGivesTheNamesOfItsDirectory(server: String, html: String) throws {
    // Links relative to a directory are the same below any path.
    for path in ["/", "/pub/a%20b/"] {
      let listing = try DirectoryListing(
        Array(html.utf8), contentType: "text/html", from: try RemoteURL("http://h" + path),
        isRoot: true)
      #expect(
        Set(listing.entries.map { $0.name + ($0.isDirectory ? "/" : "") }) == Self.names)
      #expect(listing.entries.count == Self.names.count)
      #expect(listing.unusableCount == 0 && listing.clashCount == 0)
    }
  }
}
