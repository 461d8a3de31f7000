import DirectoryListing
import HTTPTransferCore
import Testing

/// The names in `html`, listed at `url`; directories end with a slash.
private func names(
  _ html: String, at url: String = "http://h/d/", isRoot: Bool = false
) throws -> [String] {
  let listing = try DirectoryListing(
    Array(html.utf8), contentType: "text/html", from: try RemoteURL(url), isRoot: isRoot)
  return listing.entries.map { $0.name + ($0.isDirectory ? "/" : "") }
}

/// A document with a link to each of `references`.
private func links(_ references: String...) -> String {
  references.map { "<a href=\"\($0)\">x</a>\n" }.joined()
}

@Suite struct LinkTests {
  @Test func relativeAndAbsoluteLinksToChildrenAreNames() throws {
    let html = links(
      "a", "./b", "/d/c", "//h/d/e", "http://h/d/f", "http://h:80/d/g", "HTTP://H/d/h", "sub/",
      "/d/sub2/")
    #expect(try names(html) == ["a", "b", "c", "e", "f", "g", "h", "sub/", "sub2/"])
  }

  @Test func namesThatLookTheSameAndDifferInTheirBytesAreTwo() throws {
    let listing = try DirectoryListing(
      Array(links("e%CC%81", "%C3%A9", "e%CC%81").utf8), contentType: "text/html",
      from: try RemoteURL("http://h/d/"), isRoot: false)
    #expect(listing.entries.map(\.segment) == ["e%CC%81", "%C3%A9"])
    #expect(listing["e\u{301}"]?.segment == "e%CC%81")
    #expect(listing["\u{E9}"]?.segment == "%C3%A9")
  }

  @Test(arguments: [
    "..", "../", "../x", "/", "/d", "/d/", ".", "./", "/e/x", "x/y", "sub/y", "sub//", "//x", "",
    "?C=N;O=D", "a?x", "#top", "a#b", "http://g/d/a", "https://h/d/a", "http://h:81/d/a",
    "http://u@h/d/a", "//g/d/a", "javascript:alert(1)", "mailto:a@h", "ftp://h/d/a", "data:,x",
    "http:a", "/d/../d/a", "a/../b", "/D/a",
  ])
  func whatLeadsElsewhereIsNoName(reference: String) throws {
    #expect(try names(links(reference)) == [])
  }

  @Test(arguments: [
    "%2e%2e", ".%2E", "%2E", "%2e%2e/", "%2e%2e%2fetc", "a%2Fb", "%00", "a%00b", "a%0Ab", "a%1b",
    "a%7F", "a%C2%85", "%FF", "%C0%AF", String(repeating: "n", count: 256),
    String(repeating: "%C3%BC", count: 128),
  ])
  func whatNoFileMayBeCalledIsCountedAndNotShown(reference: String) throws {
    let listing = try DirectoryListing(
      Array(links(reference, "good").utf8), contentType: "text/html",
      from: try RemoteURL("http://h/d/"), isRoot: false)
    #expect(listing.entries.map(\.name) == ["good"])
    #expect(listing.unusableCount == 1)
  }

  @Test(arguments: [
    ("with%20space", "with space", "with%20space"), ("raw space", "raw space", "raw%20space"),
    ("gr%C3%BC%C3%9Fe", "grüße", "gr%C3%BC%C3%9Fe"), ("grüße", "grüße", "gr%C3%BC%C3%9Fe"),
    ("100%25", "100%", "100%25"), ("100%", "100%", "100%25"), ("%zz", "%zz", "%25zz"),
    ("%2541", "%41", "%2541"), ("a%23b%3Fc", "a#b?c", "a%23b%3Fc"), ("a+b", "a+b", "a+b"),
    ("a&amp;b", "a&b", "a&b"), ("a&amp;amp;b", "a&amp;b", "a&amp;b"), ("a%26b", "a&b", "a%26b"),
    ("q&quot;q", "q\"q", "q%22q"), ("q&#39;q", "q'q", "q'q"),
    ("back\\slash", "back\\slash", "back%5Cslash"),
    ("./a:b", "a:b", "a:b"), ("a%3Ab", "a:b", "a%3Ab"), ("~t", "~t", "~t"), ("...", "...", "..."),
    (" trimmed\n", "trimmed", "trimmed"), ("a;b=c,d", "a;b=c,d", "a;b=c,d"),
  ])
  func namesAreDecodedAndStayFitForAURL(
    reference: String, name: String, segment: String
  ) throws {
    let listing = try DirectoryListing(
      Array(links(reference).utf8), contentType: "text/html; charset=utf-8",
      from: try RemoteURL("http://h/d/"), isRoot: false)
    let entry = try #require(listing.entries.first)
    #expect(entry.name == name)
    #expect(entry.segment == segment)
    #expect(listing[name] == entry)
  }

  @Test func theServersOwnEncodingOfTheDirectoryCounts() throws {
    #expect(try names(links("/my%20dir/a", "/my dir/b"), at: "http://h/my%20dir/") == ["a", "b"])
    #expect(try names(links("/~u/a"), at: "http://h/%7Eu/") == ["a"])
    // An encoded slash is not a separator.
    #expect(try names(links("/a/b/c"), at: "http://h/a%2Fb/") == [])
  }

  @Test func theRootOfAServerHasChildren() throws {
    #expect(try names(links("a", "/b", "c/", "/", "../x"), at: "http://h/") == ["a", "b", "c/"])
  }

  @Test func aNameGivenTwiceIsOne() throws {
    #expect(try names(links("a", "./a", "%61", "s/", "s/")) == ["a", "s/"])
  }

  @Test(arguments: [["a/", "a"], ["a", "a/"], ["a", "a/", "a"]])
  func whatIsFileAndDirectoryIsAFile(references: [String]) throws {
    let html = references.map { links($0) }.joined()
    let listing = try DirectoryListing(
      Array(html.utf8), contentType: "text/html", from: try RemoteURL("http://h/d/"), isRoot: false)
    #expect(listing.entries.map(\.name) == ["a"])
    #expect(listing.entries.allSatisfy { !$0.isDirectory })
    #expect(listing.clashCount >= 1)
  }

  @Test func theMountsOwnNamesAreLeftOutAtItsRootOnly() throws {
    let html = links(".status", ".status.json", ".control", ".metrics", ".dotted", "%2estatus")
    #expect(try names(html, isRoot: true) == [".dotted"])
    #expect(try names(html).count == 5)
  }

  @Test func aBaseThatLeadsElsewhereTakesRelativeLinksAlong() throws {
    #expect(try names("<base href=\"http://g/d/\">" + links("a", "/d/b")) == ["b"])
    #expect(try names("<base href=\"/e/\">" + links("a", "/d/b")) == ["b"])
    #expect(try names("<base href=\"javascript:x\">" + links("a")) == [])
    #expect(try names("<base href=\"http://h/d/x.html\">" + links("a")) == ["a"])
    // The first one counts.
    #expect(try names("<base href=\"/d/\"><base href=\"http://g/\">" + links("a")) == ["a"])
  }

  @Test func onlyLinksOfAnchorsCount() throws {
    let html = """
      <link href="style.css"><img src="icon.png"><area href="area"><!-- <a href="no">x</a> -->
      <script>document.write('<a href="script">')</script><A HREF=shout>x</A><a name="top">x</a>
      <a title="x" href='second'>x</a>
      """
    #expect(try names(html) == ["shout", "second"])
  }
}
