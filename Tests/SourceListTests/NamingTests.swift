import HTTPTransferCore
import SourceList
import Testing

@Suite struct NamingTests {
  @Test(arguments: [
    ("http://h/d/a.bin", false), ("http://h/a.tar.gz?token=x", false), ("http://h/a.7z", false),
    ("http://h/a.html", false), ("http://h/a.PDF", false),
    // No name, no extension, or one of a program.
    ("http://h", true), ("http://h/?id=5", true), ("http://h/d/..", true), ("http://h/get", true),
    ("http://h/tar.gz/v1.2", true), ("http://h/.hidden", true), ("http://h/a.", true),
    ("http://h/get.php", true), ("http://h/get.php?id=5", true), ("http://h/Get.ASPX", true),
    ("http://h/x.cgi", true), ("http://h/x.jsp;s=1", true), ("http://h/a.longextension", true),
    ("http://h/view.html?id=5", true),
    // The query asks for the field.
    ("http://h/k.zip?response-content-disposition=attachment%3B%20filename%3Da.zip", true),
    ("http://h/k.zip?sv=1&rscd=file%3B%20filename%3Da.zip", true),
    ("http://h/k.zip?Response-Content-Disposition=", true),
  ])
  func `a server is asked if the URL has no ordinary file name`(url: String, isAsked: Bool) throws {
    let remote = try RemoteURL(url)
    #expect(NamingRule.byServerIfUnclear.asks(about: remote) == isAsked)
    #expect(NamingRule.byServer.asks(about: remote))
    #expect(!NamingRule.byURL.asks(about: remote))
  }

  private func parse(_ list: String, _ naming: NamingRule = .byServerIfUnclear) throws -> SourceList
  {
    try SourceListReader.parse(Array(list.utf8), sourceName: "urls.txt", naming: naming)
  }

  @Test func `in a list, names that the server may change do not clash yet`() throws {
    let list = "http://h/get.php?id=1\nhttp://h/get.php?id=2\n dir=d\nhttp://h/?id=3\n dir=e/\n"
    let entries = try parse(list + "http://h/get.php\n out=x\nhttp://h/a.bin\n").entries
    #expect(entries.map(\.path) == ["get.php", "d/get.php", "e/", "x", "a.bin"])
    #expect(entries.map(\.asksForName) == [true, true, true, false, false])
    #expect(throws: SourceListError.self) { try parse(list, .byURL) }
    let twice = "http://h/get.php?id=1\nhttp://h/get.php?id=2\n"
    #expect(try parse(twice).entries.count == 2)
    #expect(throws: SourceListError.self) { try parse(twice, .byURL) }
  }

  @Test func `a directory that cannot be is an error before the server is asked`() {
    #expect(throws: SourceListError.self) { try parse("http://h/?id=1\n dir=../x\n") }
    #expect(throws: SourceListError.self) { try parse("http://h/get\n dir=/x\n") }
  }

  @Test func `only a session says that a server has chosen a name`() throws {
    let list = Array("http://h/get\n  out=.//a\n  named-by=server\nhttp://h/b\n".utf8)
    let session = try SourceListReader.parse(list, sourceName: "s", rules: .local)
    #expect(session.entries.map(\.isNamedByServer) == [true, false])
    #expect(session.warnings.isEmpty)
    let other = try SourceListReader.parse(
      Array("http://h/get\n  named-by=server\n".utf8), sourceName: "l")
    #expect(other.entries.map(\.isNamedByServer) == [false])
    #expect(other.warnings.count == 1)
  }

  @Test func `a session may be empty, have equal names, and exceed the limits of lists`() throws {
    func session(_ text: String) throws(SourceListError) -> SourceList {
      try SourceListReader.parse(Array(text.utf8), sourceName: "s", rules: .local)
    }
    #expect(try session("# A session\n").entries.isEmpty)
    let deep = String(repeating: "d/", count: 3000) + "x"
    let paths = ["a", "a/b", "a", deep]
    let list = try session(paths.map { "http://h/x\n  out=\($0)\n" }.joined())
    #expect(list.entries.map(\.path) == paths)
    let mirrors = (0..<2000).map { "\thttp://h/a-long-path-of-a-mirror-\($0)" }
    let fields = (0..<200).map { "  header=X-\($0): \(deep)\n" }
    let comment = "# " + String(repeating: "r", count: SourceList.maximumLineByteCount) + "\n"
    let one = try session(comment + "http://h/x\(mirrors.joined())\n" + fields.joined())
    #expect(one.entries.map(\.mirrors.count) == [2000])
    #expect(one.entries.map(\.headers.count) == [200])
  }

  @Test func `a listing is never asked for a name`() throws {
    let list = try SourceListReader.parse(
      Array("http://h/d/\n".utf8), sourceName: "urls.txt", listings: .unnamed, naming: .byServer)
    #expect(list.entries.map(\.asksForName) == [false])
    #expect(list.entries.map(\.isListing) == [true])
    let one = try SourceListReader.single(url: "http://h/?x", naming: .byServerIfUnclear)
    #expect(one.entries.map(\.path) == [""])
    #expect(one.entries.map(\.asksForName) == [true])
  }
}
