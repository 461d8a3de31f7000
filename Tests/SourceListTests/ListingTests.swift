import HTTPTransferCore
import SourceList
import Testing

private func list(
  _ text: String, tree: Bool = false
) throws(SourceListError) -> SourceList {
  try SourceListReader.parse(
    Array(text.utf8), sourceName: "urls.txt", tree: tree, listings: .always)
}

/// URLs that end in `/`.
@Suite struct ListingTests {
  @Test(arguments: [
    ("http://h/pub/", "pub"), ("http://h/a%20b/c%2B/", "c+"), ("http://h/", "h"), ("http://h", "h"),
    ("http://u:p@h:81/", "h:81"), ("http://h/pub/\n out=x", "x"),
    ("http://h/pub/\n out=x/y/", "x/y"),
    ("http://h/pub/\n dir=d", "d/pub"), ("http://h/\n dir=d/", "d/h"), ("http://h/#top", "h"),
  ])
  func aListingIsADirectoryOfTheLastSegment(text: String, path: String) throws {
    let entry = try list(text).entries[0]
    #expect(entry.isListing)
    #expect(entry.path == path)
    #expect(entry.url.path.hasSuffix("/"))
  }

  @Test func withTreeItHasItsHostAndPath() throws {
    #expect(try list("http://h:81/a/b/", tree: true).entries[0].path == "h:81/a/b")
    #expect(try list("http://h/", tree: true).entries[0].path == "h")
  }

  @Test func aFileOrAURLWithAQueryIsNoListing() throws {
    let parsed = try list("http://h/a\nhttp://h/b/?x\n out=b\n")
    #expect(parsed.entries.map(\.isListing) == [false, false])
  }

  @Test(arguments: [
    ("http://h/a/\nhttp://g/a/\n", "urls.txt:2: the name 'a' is already used in line 1"),
    ("http://h/a\nhttp://g/a/\n", "urls.txt:2: the name 'a' is already used in line 1"),
    ("http://h/a/\nhttp://h/x\n out=a/x\n", "urls.txt:2: the name 'a' is a directory listing"),
    ("http://h/a/\n dir=b\nhttp://h/b/\n", "urls.txt:3: the name 'b' is a directory listing"),
    ("http://h/x/../\n", "urls.txt:1: the URL's path holds '.' or '..'"),
    ("http://h/%2e%2e/\n", "urls.txt:1: the URL's path holds '.' or '..'"),
    ("http://../\n", "urls.txt:1: '.' or '..'"),
    ("http://h/a//\n", "urls.txt:1: a URL that ends in '/' needs out="),
    ("http://h/.status/\n", "urls.txt:1: the name '.status' is reserved"),
    ("http://h/a/\n out=/etc\n", "urls.txt:2: an absolute path"),
    ("http://h/a/\n out=/\n", "urls.txt:2: the name is empty"),
    (
      "http://h/a/\n checksum=md5=d41d8cd98f00b204e9800998ecf8427e\n",
      "urls.txt:2: checksum= is for"
    ),
  ])
  func namesFollowTheRulesOfFiles(text: String, message: String) {
    #expect {
      try list(text)
    } throws: { error in
      "\(error)".hasPrefix(message)
    }
  }

  @Test func mirrorsOfAListingAreNotUsed() throws {
    let parsed = try list("http://h/a/\thttp://g/a/\n")
    #expect(parsed.entries[0].mirrors.isEmpty)
    #expect(parsed.warnings.count == 1)
  }

  @Test func oneURLIsTheRootOfTheMount() throws {
    let parsed = try SourceListReader.single(url: "http://h/pub/", listings: .always)
    #expect(parsed.entries.map(\.path) == [""])
    #expect(parsed.entries[0].isListing)
    let tree = try SourceListReader.single(url: "http://h/pub/", tree: true, listings: .always)
    #expect(tree.entries.map(\.path) == ["h/pub"])
  }

  @Test func anUnnamedListingIsOneUnlessOutNamesAFile() throws {
    let text = """
      http://h/a/
        header=X: 1
      http://h/b/\thttp://g/b/
        checksum=md5=d41d8cd98f00b204e9800998ecf8427e
        out=page
      http://h

      """
    let parsed = try SourceListReader.parse(
      Array(text.utf8), sourceName: "urls.txt", listings: .unnamed)
    #expect(parsed.entries.map(\.path) == ["a", "page", "h"])
    #expect(parsed.entries.map(\.isListing) == [true, false, true])
    #expect(parsed.entries.map(\.url.path) == ["/a/", "/b/", "/"])
    #expect(parsed.entries[1].mirrors.count == 1)
    #expect(parsed.entries[1].checksum != nil)
    #expect(parsed.warnings.isEmpty)
  }

  @Test func whoeverFetchesFilesHasNoListings() {
    #expect(throws: SourceListError.self) { try SourceListReader.single(url: "http://h/pub/") }
    #expect(throws: SourceListError.self) {
      try SourceListReader.parse(Array("http://h/pub/\n".utf8), sourceName: "x")
    }
  }

  @Test(arguments: ["a", "ü", "...", ".hidden", "a b", String(repeating: "x", count: 255)])
  func aNameIsAllowed(name: String) {
    #expect(EntryName.isAllowed(name, atRoot: true))
  }

  @Test(arguments: [
    "", ".", "..", "a/b", "/", "a\u{0}", "\n", "\u{7F}", "\u{85}",
    String(repeating: "x", count: 256),
  ])
  func aNameIsNot(name: String) {
    #expect(!EntryName.isAllowed(name, atRoot: false))
  }

  @Test func theMountsOwnNamesAreNotAtItsRoot() {
    for name in SourceList.reservedRootNames {
      #expect(!EntryName.isAllowed(name, atRoot: true))
      #expect(EntryName.isAllowed(name, atRoot: false))
    }
  }
}
