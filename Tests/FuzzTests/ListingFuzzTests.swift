import DirectoryListing
import Foundation
import HTTPTransferCore
import SeededRandom
import Testing

/// Listings are arbitrary bytes from a server: no page traps, and all names are in its directory.
@Suite(.timeLimit(.minutes(10))) struct ListingFuzzTests {
  private static let base = "http://h/pub/a%20d/"

  private let mutator = ByteMutator(
    dictionary: [
      "<a href=\"", "<A HREF='", "\">", "</a>", "<base href=\"", "..", "../", "./", "/", "//h/",
      "//g/",
      "/pub/a%20d/", "/pub/a d/", "http://h/pub/a%20d/", "http://h:80", "https://h", "?", "#",
      "%2e",
      "%2F", "%00", "%0a", "%C3%BC", "%ff", "%", "&amp;", "&#46;", "&#x2f;", "&#0;", "&", "\\", ":",
      "javascript:", "@", " ", "\n", "ü", "e\u{301}", "<!--", "-->", "<script>", "<table><tr><td>",
      "<!DOCTYPE html>", "<![CDATA[", "<div>", "</div>", "<meta charset=utf-16>", "<?xml ?>",
    ].map { Array($0.utf8) } + [[0xFF], [0x00], [0xFE, 0xFF], [0xC2, 0x85]])

  @Test("A mutated listing is refused, or names only children that may be names")
  func listings() throws {
    let url = try RemoteURL(Self.base)
    let campaign = FuzzCampaign(name: "listing", count: 10_000)
    campaign.run(minimumAccepted: 0.5, minimumRefused: 0) { generator in
      var bytes = page(using: &generator)
      for _ in 0..<generator.pick([0, 1, 2, 4, 8, 16]) {
        mutator.mutate(&bytes, using: &generator)
      }
      let type = generator.pick([
        "text/html", "text/html;charset=utf-8", "text/html; charset=ISO-8859-1",
        "text/html; charset=utf-16",
      ])
      let isRoot = generator.isOnce(in: 2)
      let listing: DirectoryListing
      do {
        listing = try DirectoryListing(bytes, contentType: type, from: url, isRoot: isRoot)
      } catch {
        return "\(error)".isEmpty ? .broken("an error without a reason") : .refused
      }
      var names: Set<PathKey> = []
      for entry in listing.entries {
        if let rule = rule(brokenBy: entry, isRoot: isRoot) {
          return .broken("\(rule): \(entry.name.debugDescription)")
        }
        if !names.insert(PathKey(entry.name)).inserted { return .broken("twice: \(entry.name)") }
        if listing[entry.name] != entry { return .broken("not found: \(entry.name)") }
      }
      return .accepted
    }
  }

  private func page(using generator: inout SeededGenerator) -> [UInt8] {
    var html = generator.pick(["", "<html><body><pre>", "<table><tbody>"])
    for index in 0..<Int.random(in: 0...30, using: &generator) {
      let name = generator.pick([
        "file\(index).bin", "dir\(index)/", "./x\(index)", "a%20b\(index)", "gr%C3%BC\(index)/",
        "/pub/a%20d/abs\(index)", "../", "?C=N;O=D", "100%25", ".status", ".hidden",
      ])
      html += generator.pick(["", "<tr><td>", "<li>"]) + "<a href=\"\(name)\">x</a>  12K\n"
    }
    return Array(html.utf8)
  }

  /// The rules of names, in an independent and simple form.
  private func rule(brokenBy entry: ListingEntry, isRoot: Bool) -> String? {
    let name = entry.name
    if ["", ".", ".."].contains(name) { return "no name" }
    if name.utf8.count > 255 { return "\(name.utf8.count) bytes" }
    let isBad = name.unicodeScalars.contains {
      $0 == "/" || $0.value < 0x20 || (0x7F...0x9F).contains($0.value)
    }
    if isBad { return "a forbidden character" }
    if isRoot, [".status", ".status.json", ".control", ".metrics"].contains(name) {
      return "a name of the mount's own"
    }
    guard let url = try? RemoteURL(Self.base + entry.segment) else { return "no URL" }
    if url.text != Self.base + entry.segment || url.query != nil { return "more than a path" }
    if entry.segment.contains("/") { return "another directory" }
    // Compare bytes: strings are equal if they look alike.
    guard let decoded = entry.segment.removingPercentEncoding,
      decoded.utf8.elementsEqual(name.utf8)
    else { return "another name than that of its URL, \(entry.segment)" }
    return nil
  }
}
