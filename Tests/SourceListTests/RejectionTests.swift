import HTTPTransferCore
import SourceList
import Testing

@Suite struct RejectionTests {
  @Test(arguments: [
    ("", "urls.txt: the list is empty"),
    ("# nothing\n\n", "urls.txt: the list is empty"),
    (" out=a\n", "urls.txt:1: an indented option line before any URL"),
    ("example.org/a", "urls.txt:1: malformed URL: no scheme"),
    ("http:/h/a", "urls.txt:1: malformed URL: no scheme"),
    ("http:///a", "urls.txt:1: malformed URL: no host"),
    ("http://h:0/a", "urls.txt:1: malformed URL: the port"),
    ("http://h:99999/a", "urls.txt:1: malformed URL: the port"),
    ("http://h<x/a", "urls.txt:1: malformed URL: the host"),
    ("http://h\\@i/a\nhttp://h\\i/a", "urls.txt:2: malformed URL: the host"),
    ("file:///etc/passwd", "urls.txt:1: malformed URL: scheme 'file' is not supported"),
    ("magnet:?xt=x", "urls.txt:1: malformed URL: no scheme"),
    ("http://h/a b", "urls.txt:1: malformed URL: a space or control character"),
    ("http://h/a\thttp://h /b", "urls.txt:1: malformed URL: a space or control character"),
    ("http://h/a\n out", "urls.txt:2: an indented line must be an option: name=value"),
    ("http://h/a\n http://u:p@h/b?k=v", "urls.txt:2: an indented line must be an option, name="),
    ("http://h/a\n =x", "urls.txt:2: an indented line must be an option, name="),
    ("http://h/a\n header=X", "urls.txt:2: a malformed header"),
    ("http://h/a\n header=: v", "urls.txt:2: a malformed header"),
    ("http://h/a\n header=X Y: v", "urls.txt:2: a malformed header"),
    ("http://h/a\n header=X : v", "urls.txt:2: a malformed header"),
    ("http://h/a\n header=X: v\rY: w", "urls.txt:2: control byte 0x0D in column 13"),
    ("http://h/a\n user-agent=v\0w", "urls.txt:2: control byte 0x00 in column 14"),
    ("http://h/a\0b", "urls.txt:1: control byte 0x00 in column 11"),
    ("http://h/a\rhttp://h/b", "urls.txt:1: control byte 0x0D in column 11"),
    ("\u{1B}[31mhttp://h/a", "urls.txt:1: control byte 0x1B in column 1"),
    ("http://h/a\n max-download-limit=fast", "urls.txt:2: max-download-limit= is the bytes"),
    ("http://h/a\n max-download-limit=-1", "urls.txt:2: max-download-limit= is the bytes"),
    ("http://h/a\n checksum=abc", "urls.txt:2: a checksum is written ALGORITHM=HEX"),
    ("http://h/a\n checksum=crc=abc", "urls.txt:2: the checksum's algorithm is none of md5"),
    ("http://h/a\n checksum=md5=abc", "urls.txt:2: a md5 checksum has 32 hexadecimal"),
    (
      "http://h/a\n checksum=md5=\(String(repeating: "g", count: 32))",
      "urls.txt:2: the checksum holds something else"
    ),
  ])
  func aBadLineIsRefusedWithItsNumber(list: String, message: String) {
    #expect {
      try parse(list)
    } throws: { error in
      "\(error)".hasPrefix(message) && !"\(error)".contains("\n")
    }
  }

  @Test(
    arguments: [
      [0x68, 0xFF, 0x2F], [0xC3, 0x28], [0xED, 0xA0, 0x80], [0xF8], [0xC0, 0xAF],
    ] as [[UInt8]])
  func bytesThatAreNotUTF8AreRefused(bytes: [UInt8]) {
    #expect {
      try SourceListReader.parse(
        Array("http://h/a\nhttp://h/".utf8) + bytes + [0x0A], sourceName: "urls.txt")
    } throws: { error in
      "\(error)" == "urls.txt:2: bytes that are not UTF-8; save the list as UTF-8"
    }
  }

  @Test func utf16IsNamedAsSuch() {
    #expect {
      try SourceListReader.parse([0xFF, 0xFE, 0x68, 0x00, 0x0A, 0x00], sourceName: "urls.txt")
    } throws: { error in
      "\(error)".hasPrefix("urls.txt:1: the list is UTF-16; save it as UTF-8")
    }
  }

  @Test(arguments: [64 * 1024 + 1, 1 << 20])
  func aLineOverTheLimitIsRefusedAndTheNextOnesAreRead(byteCount: Int) {
    let long = "http://h/" + String(repeating: "x", count: byteCount - 9)
    #expect {
      try parse("http://h/a\n\(long)\n out=b\nbad\n")
    } throws: { error in
      "\(error)"
        == "urls.txt:2: a line of more than 65536 bytes\n"
        + "urls.txt:4: malformed URL: no scheme; write http:// or https:// before it"
    }
    #expect(throws: SourceListError.self) { try parse(long) }
  }

  @Test(arguments: ["\n", "\r\n", ""])
  func aLineAtTheLimitIsRead(ending: String) throws {
    let url = "http://h/a?" + String(repeating: "x", count: 64 * 1024 - 11)
    #expect(try parse(url + ending).entries[0].path == "a")
  }

  @Test func everyErrorIsReportedInTheOrderOfTheLines() {
    #expect {
      try parse("bad\nhttp://h/d\nhttp://h/e\n out=d/e\n foo\nhttp://h/f/\n")
    } throws: { error in
      (error as? SourceListError)?.diagnostics.map(\.line) == [1, 3, 5, 6]
    }
  }

  @Test func readingStopsAtTwentyErrors() {
    #expect {
      try parse(String(repeating: "bad\n", count: 1000))
    } throws: { error in
      guard let error = error as? SourceListError else { return false }
      return error.diagnostics.count == 20 && error.isTruncated
    }
  }

  @Test func optionsBelowAMalformedURLAreNotErrors() {
    #expect {
      try parse("bad\n out=x\n header=y\n")
    } throws: { error in
      (error as? SourceListError)?.diagnostics.count == 1
    }
  }

  /// No message contains userinfo, queries or header values.
  @Test(arguments: [
    "http://u:CANARY@h:x/a", "http://CANARY:CANARY@/a", "https://h/a b?CANARY",
    "CANARY@x.y://h/", "http://u:CANARY@h/?CANARY", "http://u:CANARY@h/a\nhttp://h/a?CANARY",
    "http://h/a\n header=CANARY", "http://h/a\n header=A B: CANARY", "http://h/a\n CANARY",
    "http://h/a\n http://CANARY@h/x?y=CANARY", "http://h/a\n checksum=CANARY",
    "http://h/a\n split=CANARY\nbad", "http://u:CAN/ARY@h/a b",
  ])
  func noSecretIsInAMessage(list: String) {
    #expect {
      try parse(list)
    } throws: { error in
      !"\(error)".contains("CANARY")
    }
  }

  // MARK: Bounds

  /// A property of a list that has a maximum.
  enum Bounded: CaseIterable {
    case urls, headerLines, headerBytes, directories, lineBytes, length

    var limit: Int {
      switch self {
      case .urls: SourceList.maximumURLCount
      case .headerLines: SourceList.maximumHeaderCount
      case .headerBytes: SourceList.maximumHeaderByteCount
      case .directories: 128
      case .lineBytes: SourceList.maximumLineByteCount
      case .length: 1 << 60
      }
    }

    /// A list with `count` of the property.
    func list(_ count: Int) -> String {
      func repeated(_ text: String, _ count: Int) -> String {
        String(repeating: text, count: count)
      }
      switch self {
      case .urls: return (0..<count).map { "http://h/\($0)" }.joined(separator: "\t") + "\n"
      case .headerLines: return "http://h/a\n" + repeated(" header=a:b\n", count)
      case .headerBytes:
        let (first, second) = (repeated("b", 60_000), repeated("d", count - 60_002))
        return "http://h/a\n header=a:\(first)\n header=c:\(second)\n"
      case .directories: return "http://h/a\n out=\(repeated("a/", count - 1))a\n"
      case .lineBytes: return "http://h/\(repeated("a", count - 9))\n out=a\n"
      case .length: return "http://h/a\n length=\(count)\n"
      }
    }

    var message: String {
      switch self {
      case .urls: "urls.txt:1: more than 1000 URLs of one file"
      case .headerLines:
        "urls.txt:102: more than 100 header= lines, or 64 KiB of them, for one URL"
      case .headerBytes: "urls.txt:3: more than 100 header= lines, or 64 KiB of them, for one URL"
      case .directories: "urls.txt:2: a path of more than 128 directories and names"
      case .lineBytes: "urls.txt:1: a line of more than 65536 bytes"
      case .length: "urls.txt:2: length= is the number of bytes that a file has"
      }
    }
  }

  @Test(arguments: Bounded.allCases)
  func oneMoreThanTheBoundIsRefused(what: Bounded) throws {
    #expect(try parse(what.list(what.limit)).entries.count == 1)
    #expect {
      try parse(what.list(what.limit + 1))
    } throws: { error in
      "\(error)" == what.message
    }
  }

  /// The parser must not copy all previous hashes for each line.
  @Test func aLineForEachPieceCostsNoMoreThanItsBytes() throws {
    func list(_ count: Int) -> String {
      let hash = String(repeating: "0a", count: 16)
      return "http://h/a\n" + String(repeating: " pieces=md5:1:\(hash)\n", count: count)
    }
    let clock = ContinuousClock()
    let small = try clock.measure { _ = try parse(list(10_000)) }
    var pieces: PieceHashes?
    let large = try clock.measure { pieces = try parse(list(200_000)).entries[0].pieces }
    #expect(pieces?.digests.count == 200_000)
    #expect(large < small * 100 + .seconds(1), "\(large) and \(small)")
  }
}
