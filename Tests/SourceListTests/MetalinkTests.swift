import HTTPTransferCore
import SourceList
import Testing

/// Metalinks of both versions as lists, shaped after the examples of RFC 5854 and of metalinker.org.
@Suite struct MetalinkTests {
  private static let sha256 = String(repeating: "0a", count: 32)
  private static let sha1 = String(repeating: "B1", count: 20)
  private static let md5 = String(repeating: "c2", count: 16)

  private static let version4 = """
    <?xml version="1.0" encoding="UTF-8"?>
    <metalink xmlns="urn:ietf:params:xml:ns:metalink">
      <generator>a tool/1.2</generator>
      <published>2009-05-15T12:23:23Z</published>
      <!-- A comment with a <url> in it. -->
      <file name="isos/example.ext">
        <size>300000</size>
        <identity>Example</identity>
        <description>A &lt;description&gt;.</description>
        <hash type="md5">\(md5)</hash>
        <hash type="sha-256">
          \(sha256)
        </hash>
        <hash type="tiger">nothing that is known</hash>
        <pieces length="262144" type="sha-1">
          <hash>\(sha1)</hash>
          <hash>\(sha1)</hash>
        </pieces>
        <pieces length="262144" type="sha-256"><hash>\(sha256)</hash></pieces>
        <url location="de">http://last.example/a?x=1&amp;y=2</url>
        <url location="us" priority="2">https://second.example/b</url>
        <url priority="1">ftp://ftp.example/b</url>
        <url priority="1">http://first.example/c</url>
        <url priority="2">http://third.example/d</url>
        <metaurl mediatype="torrent" priority="2">http://example.com/example.ext.torrent</metaurl>
      </file>
      <file name="small.bin"><url>http://h/s</url></file>
    </metalink>
    """

  private static let version3 = """
    <?xml version="1.0" encoding="utf-8"?>
    <metalink version="3.0" xmlns="http://www.metalinker.org/" type="static">
      <publisher><name>Example</name><url>http://www.example.org</url></publisher>
      <files>
        <file name="example.iso">
          <size>1048577</size>
          <verification>
            <hash type="md5">\(md5)</hash>
            <hash type="sha1">\(sha1)</hash>
            <signature type="pgp" file="x.asc">-----BEGIN PGP SIGNATURE-----</signature>
            <pieces length="1048576" type="sha1">
              <hash piece="1">\(sha1.lowercased())</hash>
              <hash piece="0">\(String(repeating: "00", count: 20))</hash>
            </pieces>
          </verification>
          <resources maxconnections="5">
            <url type="http" location="us" preference="10">http://slow.example/e.iso</url>
            <url type="bittorrent" preference="100">http://torrent.example/e.iso.torrent</url>
            <url type="https" preference="90" maxconnections="1">https://fast.example/e.iso</url>
            <url type="http">http://last.example/e.iso</url>
          </resources>
        </file>
      </files>
    </metalink>
    """

  private func document(_ files: String) -> String {
    "<metalink xmlns='urn:ietf:params:xml:ns:metalink'>\n\(files)\n</metalink>"
  }

  // MARK: Good documents

  @Test func version4NamesURLsByPriorityTheStrongestHashAndThePiecesThatFit() throws {
    let list = try parse(Self.version4)
    let file = try #require(list.entries.first)
    #expect(list.entries.map(\.path) == ["isos/example.ext", "small.bin"])
    #expect(file.url.text == "http://first.example/c")
    #expect(
      file.mirrors.map(\.text) == [
        "https://second.example/b", "http://third.example/d", "http://last.example/a?x=1&y=2",
      ])
    #expect(file.length == 300_000)
    #expect(file.checksum?.description == "sha-256=\(Self.sha256)")
    // The stronger list has one hash for two pieces.
    #expect(file.pieces?.algorithm == .sha1)
    #expect(file.pieces?.pieceByteCount == 262_144)
    #expect(file.pieces?.digests.count == 2)
    #expect(file.line == 6)
    #expect(list.entries[1].pieces == nil && list.entries[1].length == nil)
    #expect(list.warnings.map(\.line) == [22])
    #expect(list.warnings[0].message.contains("'ftp'"))
  }

  @Test func version3CountsPreferencesDownAndNumbersItsPieces() throws {
    let list = try parse(Self.version3)
    let file = try #require(list.entries.first)
    #expect(list.entries.count == 1)
    #expect(file.path == "example.iso")
    #expect(file.url.text == "https://fast.example/e.iso")
    #expect(
      file.mirrors.map(\.text) == ["http://slow.example/e.iso", "http://last.example/e.iso"])
    #expect(file.checksum?.description == "sha-1=\(Self.sha1.lowercased())")
    #expect(file.pieces?.digests.map(\.first) == [0, 0xB1])
    #expect(list.warnings.count == 1 && list.warnings[0].message.contains("'bittorrent'"))
  }

  @Test(arguments: [version3, version4])
  func aCompressedMetalinkIsTheSame(document: String) throws {
    let plain = try parse(document)
    let compressed = gzip(Array(document.utf8))
    #expect(try SourceListReader.parse(compressed, sourceName: "urls.txt") == plain)
    #expect(try parse("\u{FEFF}" + document) == plain)
  }

  @Test func blanksBeforeTheDocumentCountAsLines() throws {
    let list = try parse("\n \n" + Self.version4)
    #expect(list.entries[0].line == 8)
  }

  @Test func whatAnotherNamespaceSaysIsPassedOver() throws {
    let list = try parse(
      """
      <m:metalink xmlns:m="urn:ietf:params:xml:ns:metalink" xmlns:x="urn:other">
        <x:file name="no"><url>http://h/no</url></x:file>
        <m:file x:name="no" name="yes">
          <x:url>http://h/other</x:url><m:url><x:b>http://h/in</x:b>http://h/yes</m:url>
          <m:future><m:url>http://h/future</m:url></m:future>
        </m:file>
      </m:metalink>
      """)
    #expect(list.entries.map(\.path) == ["yes"])
    #expect(list.entries[0].url.text == "http://h/yes")
    #expect(list.entries[0].mirrors.isEmpty)
  }

  @Test func piecesThatDoNotFitTheSizeAreIgnoredWithAWarning() throws {
    let list = try parse(
      document(
        """
        <file name="a"><size>10</size><pieces length="5" type="md5"><hash>\(Self.md5)</hash></pieces>
        <url>http://h/a</url></file>
        """))
    #expect(list.entries[0].pieces == nil)
    #expect(list.warnings.count == 1)
  }

  @Test func aFileWithoutAnHTTPURLIsLeftOut() throws {
    let list = try parse(
      document(
        """
        <file name="a"><url>ftp://h/a</url></file>
        <file name="b"><url>http://h/b</url></file>
        """))
    #expect(list.entries.map(\.path) == ["b"])
    #expect(list.warnings.count == 2)
  }

  // MARK: Bad documents

  @Test(arguments: [
    ("<html><body/></html>", "urls.txt:1: an XML document, but no Metalink"),
    ("<!DOCTYPE html><html/>", "urls.txt:1: a document type declaration"),
    ("<metalink/>", "urls.txt:1: an XML document, but no Metalink"),
    ("<metalink xmlns='urn:ietf:params:xml:ns:metalink'>", "urls.txt:1: not well-formed XML"),
    ("<", "urls.txt:1: not well-formed XML"),
    ("<metalink xmlns='urn:ietf:params:xml:ns:metalink'/>", "urls.txt: the Metalink names no file"),
    (
      """
      <?xml version="1.0"?>
      <!DOCTYPE metalink [
        <!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
      ]>
      <metalink xmlns="urn:ietf:params:xml:ns:metalink"><file name="&b;"/></metalink>
      """, "urls.txt:2: a document type declaration"
    ),
    (
      """
      <!DOCTYPE m SYSTEM "file:///etc/passwd"><m/>
      """, "urls.txt:1: a document type declaration"
    ),
  ])
  func whatIsNoMetalinkIsRefused(text: String, message: String) {
    #expect {
      try parse(text)
    } throws: { error in
      "\(error)".hasPrefix(message) && !"\(error)".contains("\n")
    }
  }

  @Test(arguments: [
    ("<file name='a'><url>http://h:0/a</url></file>", "malformed URL: the port"),
    ("<file name='a'><url>a</url></file>", "malformed URL: no scheme"),
    ("<file name='a'><url></url></file>", "malformed URL: no scheme"),
    ("<file name='a'><size>1.5</size><url>http://h/a</url></file>", "a size that is not a number"),
    ("<file name='a'><size>-1</size><url>http://h/a</url></file>", "a size that is not a number"),
    (
      "<file name='a'><hash type='md5'>00</hash><url>http://h/a</url></file>",
      "a md5 checksum has 32 hexadecimal"
    ),
    (
      "<file name='a'><pieces type='md5'><hash/></pieces><url>http://h/a</url></file>",
      "piece hashes without the length"
    ),
    (
      "<file name='a'><pieces type='md5' length='1'/><url>http://h/a</url></file>",
      "piece hashes that are not numbered from 0 on, or none"
    ),
    ("<file><url>http://h/a</url></file>", "a file without a name"),
    ("<file name='/etc/passwd'><url>http://h/a</url></file>", "an absolute path"),
    ("<file name='a/../../b'><url>http://h/a</url></file>", "'.' or '..' as a segment"),
    ("<file name='a&#10;b'><url>http://h/a</url></file>", "a control character in the name"),
    ("<file name='.status'><url>http://h/a</url></file>", "the name '.status' is reserved"),
    (
      "<file name='a'><url>http://h/a</url></file><file name='a'><url>http://h/b</url></file>",
      "the name 'a' is already used in line 2"
    ),
    (
      "<file name='a'><url>http://h/a</url></file><file name='a/b'><url>http://h/b</url></file>",
      "the name 'a' is a file and a directory at once"
    ),
  ])
  func aBadFileIsRefusedWithItsLine(files: String, message: String) {
    #expect {
      try parse(document(files))
    } throws: { error in
      "\(error)".hasPrefix("urls.txt:2: " + message) && !"\(error)".contains("\n")
    }
  }

  @Test func piecesOfVersion3ThatAreNumberedTwiceAreRefused() {
    #expect(throws: SourceListError.self) {
      try parse(Self.version3.replacing("piece=\"1\"", with: "piece=\"0\""))
    }
    #expect(throws: SourceListError.self) {
      try parse(Self.version3.replacing("piece=\"1\"", with: "piece=\"99999999999999999999\""))
    }
  }

  @Test func everyErrorIsReportedUpToTwenty() {
    let files = String(repeating: "<file name='a/'><url>x</url></file>\n", count: 1000)
    #expect {
      try parse(document(files))
    } throws: { error in
      guard let error = error as? SourceListError else { return false }
      return error.diagnostics.count == 20 && error.isTruncated
        && error.diagnostics.map(\.line) == (2..<22).map { Optional($0) }
    }
  }

  @Test func bytesThatAreNotUTF8AreRefused() {
    #expect(throws: SourceListError.self) {
      try SourceListReader.parse(
        Array("<metalink a='".utf8) + [0xFF] + Array("'/>".utf8), sourceName: "x")
    }
  }

  /// Without bounds, each would keep a parser busy for minutes, or fill the memory.
  @Test(
    .timeLimit(.minutes(10)),
    arguments: ["nesting", "attributes", "namespaces", "quotes", "comment", "text", "entities"])
  func aDocumentMadeToBlowUpIsRefusedSoon(kind: String) {
    let start = "<metalink xmlns='urn:ietf:params:xml:ns:metalink'>"
    let body =
      switch kind {
      case "nesting": String(repeating: "<file>", count: 1_000_000)
      case "attributes": "<file " + (0..<500_000).map { "a\($0)='' " }.joined() + "/>"
      case "namespaces":
        "<file " + (0..<4000).map { "xmlns:n\($0)='u' " }.joined() + ">"
          + String(repeating: "<n0:a/>", count: 1_000_000)
      case "quotes": "<file a='>' b='" + String(repeating: ">", count: 200_000) + "'/>"
      case "comment": String(repeating: "<!-- x -->", count: 1_000_000) + "<"
      case "text": "<file name='a'><url>" + String(repeating: "x", count: 9 << 20) + "</url></file>"
      default: "<file name='a'><url>" + String(repeating: "&amp;", count: 4 << 20) + "</url></file>"
      }
    #expect(throws: SourceListError.self) { try parse(start + body + "</metalink>") }
  }

  @Test func aFileMayHaveAThousandURLsAndNoMore() throws {
    func urls(_ count: Int) -> String {
      document(
        "<file name='a'>" + (0..<count).map { "<url>http://h/\($0)</url>" }.joined()
          + "<url>http://h/0</url></file>")
    }
    let limit = SourceList.maximumURLCount
    #expect(try parse(urls(limit)).entries[0].mirrors.count == limit - 1)
    #expect {
      try parse(urls(limit + 1))
    } throws: { error in
      "\(error)".contains("more than 1000 URLs of one file")
    }
  }

  /// libxml2 continues after an error, and would then parse a tag of too many attributes without a
  /// check.
  @Test func manyAttributesBehindAnErrorAreRefusedBeforeTheyAreParsed() {
    let tag = "<file " + (0..<8000).map { "a\($0)='' " }.joined() + "/>"
    let body = "&undefined;" + String(repeating: tag, count: 300)
    let duration = ContinuousClock().measure {
      #expect {
        try parse(document(body))
      } throws: { error in
        "\(error)".contains("a tag of more than 65536 bytes or 80 attributes")
      }
    }
    // Without the bound, it takes a minute.
    #expect(duration < .seconds(10))
  }

  /// The parser searches each prefix among all namespaces in scope, which are unbounded after an
  /// error.
  @Test func whatFollowsAnErrorIsNotParsed() {
    let declarations = (0..<80).map { " xmlns:p\($0)='u'" }.joined()
    let body =
      "&undefined;" + String(repeating: "<n\(declarations)>", count: 250)
      + String(repeating: "<p0:a/>", count: 3_000_000)
    let duration = ContinuousClock().measure {
      #expect {
        try parse(document(body))
      } throws: { error in
        "\(error)".contains("not well-formed XML: Entity 'undefined' not defined")
      }
    }
    // Without the bound, it takes half a minute.
    #expect(duration < .seconds(10))
  }

  @Test func aTagMayHave64AttributesAndNoMore() throws {
    func text(_ count: Int) -> String {
      let attributes = (1..<count).map { " a\($0)=''" }.joined()
      return document("<file name='a'\(attributes)><url>http://h/0</url></file>")
    }
    #expect(try parse(text(64)).entries.count == 1)
    for count in [65, 80, 81, 82] {
      #expect(throws: SourceListError.self) { try parse(text(count)) }
    }
  }

  @Test func noSecretOfAURLIsInAMessage() {
    #expect {
      try parse(
        document(
          "<file name='a'><url>http://u:CANARY@h:x/a?CANARY</url><url>CANARY:b</url></file>"))
    } throws: { error in
      !"\(error)".contains("CANARY")
    }
  }

  // MARK: The list's own form

  @Test func aListCanSayLengthAndPieces() throws {
    let plain = try #require(try parse(Self.version4).entries.first)
    let pieces = try #require(plain.pieces)
    var text = "http://first.example/c\n length=300000\n"
    for option in pieces.options { text += " pieces=\(option)\n" }
    let entry = try #require(try parse(text).entries.first)
    #expect(entry.length == 300_000)
    #expect(entry.pieces == pieces)
  }

  @Test func manyPiecesTakeSeveralLines() throws {
    let digests = (0..<1000).map { [UInt8](repeating: UInt8($0 % 256), count: 64) }
    let pieces = try #require(
      PieceHashes(algorithm: .sha512, pieceByteCount: 7, digests: digests))
    let text = pieces.options.map { " pieces=\($0)\n" }.joined()
    #expect(text.split(separator: "\n").allSatisfy { $0.utf8.count < 64 << 10 })
    #expect(try parse("http://h/a\n" + text).entries[0].pieces == pieces)
  }

  @Test(arguments: [
    "length=-1", "length=x", "pieces=md5", "pieces=md5:0:", "pieces=md5:5:00", "pieces=crc:5:00",
    "pieces=md5:5:\(md5)\n pieces=md5:6:\(md5)",
  ])
  func aMalformedLengthOrPieceIsRefused(options: String) {
    #expect(throws: SourceListError.self) { try parse("http://h/a\n \(options)\n") }
  }
}
