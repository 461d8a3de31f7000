import HTTPTransferCore
import SourceList
import Testing

func parse(_ text: String, tree: Bool = false) throws(SourceListError) -> SourceList {
  try SourceListReader.parse(Array(text.utf8), sourceName: "urls.txt", tree: tree)
}

@Suite struct ParsingTests {
  @Test func oneURLALineIsEnough() throws {
    let list = try parse("http://example.org/a.bin\nhttps://example.org/d/b.bin\n")
    #expect(list.entries.map(\.path) == ["a.bin", "b.bin"])
    #expect(
      list.entries.map(\.url.text) == [
        "http://example.org/a.bin", "https://example.org/d/b.bin",
      ])
    #expect(list.entries.map(\.line) == [1, 2])
    #expect(list.warnings.isEmpty)
  }

  @Test func commentsBlankLinesByteOrderMarkAndCarriageReturnsAreSkipped() throws {
    let list = try parse(
      "\u{FEFF}# a list\r\n\r\n   \t\r\nhttp://h/a\r\n  # indented\r\n\tout=b\r\n# end\r\nhttp://h/c"
    )
    #expect(list.entries.map(\.path) == ["b", "c"])
    #expect(list.entries.map(\.line) == [4, 8])
  }

  @Test func aCommentMayHoldAnything() throws {
    let list = try SourceListReader.parse(
      Array("# caf".utf8) + [0xE9, 0x00, 0x1B, 0x0A] + Array("http://h/a\n".utf8),
      sourceName: "urls.txt")
    #expect(list.entries.map(\.path) == ["a"])
  }

  @Test func tabsSeparateTheMirrorsOfOneFile() throws {
    let list = try parse("http://a/x.iso\thttp://b/y.iso \t\thttps://c/z.iso\t\n out=w.iso\n")
    let entry = try #require(list.entries.first)
    #expect(list.entries.count == 1)
    #expect(entry.path == "w.iso")
    #expect(entry.url.text == "http://a/x.iso")
    #expect(entry.mirrors.map(\.text) == ["http://b/y.iso", "https://c/z.iso"])
  }

  @Test func optionsBelongToTheURLAbove() throws {
    let digest = String(repeating: "aB", count: 32)
    let list = try parse(
      """
      http://h/a
       header=X-One: 1
      \theader = Cookie:k=v; l=w
        user-agent=agent/1.0 (x)
        referer=http://h/page
        checksum=SHA-256=\(digest)
        dir=sub/deep
      http://h/b
      """)
    let first = list.entries[0]
    #expect(first.path == "sub/deep/a")
    #expect(first.headers.map(\.name) == ["X-One", "Cookie", "User-Agent", "Referer"])
    #expect(first.headers.map(\.value) == ["1", "k=v; l=w", "agent/1.0 (x)", "http://h/page"])
    #expect(first.checksum?.algorithm == .sha256)
    #expect(first.checksum?.hexadecimal == digest.lowercased())
    #expect(list.entries[1].headers.isEmpty)
    #expect(list.entries[1].path == "b")
    #expect(list.warnings.isEmpty)
  }

  @Test func aHeaderWinsOverTheOptionForTheSameField() throws {
    let list = try parse("http://h/a\n user-agent=x\n header=user-agent: y\n")
    #expect(list.entries[0].headers.map(\.value) == ["y"])
  }

  @Test(
    "aria2's max-download-limit= is the bytes per second of a file, the last one counts",
    arguments: [
      ("max-download-limit=500K", 512_000), ("max-download-limit=0", 0),
      ("max-download-limit = 2m/s", 2 << 20), ("max-download-limit=1\n max-download-limit=7", 7),
      ("out=x", nil),
    ] as [(String, Int64?)])
  func rateLimit(option: String, expected: Int64?) throws {
    let list = try parse("http://h/a\n \(option)\nhttp://h/b\n")
    #expect(list.entries.map(\.rateLimit) == [expected, nil])
    #expect(list.warnings.isEmpty)
  }

  @Test func aStarAsRefererIsTheURLWithoutCredentials() throws {
    let list = try parse("http://u:p@h/a\n referer=*\n")
    #expect(list.entries[0].headers.map(\.value) == ["http://h/a"])
  }

  @Test func theLastOutCounts() throws {
    #expect(try parse("http://h/a\n out=b\n out=c\n").entries[0].path == "c")
  }

  @Test func optionsOfAria2AndUnknownOnesGiveWarnings() throws {
    let list = try parse(
      "http://h/a\n split=4\n foo=1\nhttp://h/b\n split=4\n header=Range: bytes=0-1\n")
    #expect(
      list.warnings.map(\.description) == [
        "urls.txt:2: option 'split' of aria2 has no effect here (and 1 more)",
        "urls.txt:3: unknown option 'foo' ignored",
        "urls.txt:6: header 'Range' ignored: httpfs sets it itself",
      ])
    #expect(list.entries[1].headers.isEmpty)
  }

  @Test func manyDifferentUnknownOptionsAreCounted() throws {
    let list = try parse("http://h/a\n" + (0..<300).map { " x\($0)=1\n" }.joined())
    #expect(list.warnings.count == 101)
    #expect(list.warnings.last?.description == "urls.txt: and 200 more warnings")
  }

  @Test func namesThatDifferInCaseAreDifferent() throws {
    #expect(try parse("http://h/a\nhttp://h/A\n").entries.count == 2)
  }

  @Test func credentialsAreKeptForTheRequest() throws {
    #expect(try parse("http://u:p@h/a\n").entries[0].url.userInfo == "u:p")
  }

  @Test func aSingleURLNeedsNoList() throws {
    let list = try SourceListReader.single(url: "http://h/d/a.bin?x=1")
    #expect(list.entries.map(\.path) == ["a.bin"])
    #expect(list.entries.map(\.line) == [0])
    #expect(
      try SourceListReader.single(url: "http://h:81/d/a", tree: true).entries[0].path == "h:81/d/a")
  }

  @Test(arguments: [
    ("http://h/", "URL: a URL that ends in '/' needs out="),
    ("ftp://h/a", "malformed URL: scheme 'ftp' is not supported"),
    ("http://u:secret@h:port/a", "malformed URL: the port is not"),
  ])
  func aSingleURLFailsWithOneLine(url: String, message: String) {
    #expect {
      try SourceListReader.single(url: url)
    } throws: { error in
      let text = "\(error)"
      return text.hasPrefix(message) && !text.contains("\n") && !text.contains("secret")
    }
  }
}
