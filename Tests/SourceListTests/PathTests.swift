import HTTPTransferCore
import SourceList
import Testing

@Suite struct PathTests {
  @Test(arguments: [
    ("http://h/a.bin", "a.bin"),
    ("http://h/d/e/a.bin?name=x/y", "a.bin"),
    ("http://h/a%20b.bin#part", "a b.bin"),
    ("http://h/%C3%A9t%C3%A9", "été"),
    ("http://h/été", "été"),
    // Encoded slashes create no directory, and an encoded NUL does not cut a name short.
    ("http://h/a%2Fb", "a_b"),
    ("http://h/..%2f..%2fetc%2fpasswd", ".._.._etc_passwd"),
    ("http://h/a%00b", "a_b"),
    ("http://h/a%0Ab%1b%7Fc", "a_b__c"),
    ("http://h/a%C2%9Bb", "a_b"),
    // Not UTF-8 after decoding: left unchanged.
    ("http://h/caf%E9", "caf%E9"),
    ("http://h/a%2Fcaf%E9", "a%2Fcaf%E9"),
    ("http://h/100%", "100%"),
    ("http://h/100%4", "100%4"),
    ("http://h/100%zz", "100%zz"),
    ("http://h/a%252Fb", "a%2Fb"),
    ("http://h/...", "..."),
    ("http://h/.hidden", ".hidden"),
  ])
  func theNameIsTheLastSegmentDecodedAndMadeSafe(url: String, path: String) throws {
    #expect(try parse(url).entries.map(\.path) == [path])
  }

  @Test(arguments: [
    ("http://h/a/b.bin", "h/a/b.bin"),
    ("http://u:p@Example.ORG:8080/a//b%2Fc?q", "example.org:8080/a/b_c"),
    ("http://h/a\n out=z/y", "z/y"),
    ("http://h/a/b\n dir=top", "top/h/a/b"),
    ("http://h/.status", "h/.status"),
  ])
  func treeKeepsHostAndPath(list: String, path: String) throws {
    #expect(try parse(list, tree: true).entries.map(\.path) == [path])
  }

  @Test(arguments: [
    ("out=x", "x"),
    ("out=d/x", "d/x"),
    ("dir=d", "d/a"),
    ("dir=d/", "d/a"),
    ("dir=", "a"),
    ("dir=d/e\n out=f/x", "d/e/f/x"),
    ("out=d/.status", "d/.status"),
    ("out=.status.txt", ".status.txt"),
    ("out=a%2Fb", "a%2Fb"),
    ("out=\(String(repeating: "x", count: 255))", String(repeating: "x", count: 255)),
  ])
  func outAndDirNameThePath(option: String, path: String) throws {
    #expect(try parse("http://h/a\n \(option)\n").entries.map(\.path) == [path])
  }

  @Test(arguments: [
    ("out=", "the name is empty"),
    ("out=/etc/passwd", "an absolute path"),
    ("dir=/tmp", "an absolute path"),
    ("dir=/", "an absolute path"),
    ("dir=d\n out=/x", "an absolute path"),
    ("out=..", "'.' or '..'"),
    ("out=../x", "'.' or '..'"),
    ("out=d/../x", "'.' or '..'"),
    ("out=d/./x", "'.' or '..'"),
    ("dir=.", "'.' or '..'"),
    ("dir=..", "'.' or '..'"),
    ("out=d//x", "an empty segment"),
    ("out=d/", "an empty segment"),
    ("dir=d//", "an empty segment"),
    ("out=a\u{9B}b", "a control character"),
    ("out=a\tb", "a control character"),
    ("out=\(String(repeating: "x", count: 256))", "a name of 256 bytes; the limit is 255"),
    ("out=\(String(repeating: "é", count: 128))", "a name of 256 bytes; the limit is 255"),
    ("out=\(String(repeating: "xy/", count: 1400))z", "a path of 4201 bytes"),
    ("out=.status", "the name '.status' is reserved"),
    ("out=.status/x", "the name '.status' is reserved"),
    ("out=.status.json", "the name '.status.json' is reserved"),
    ("out=.metrics", "the name '.metrics' is reserved"),
    ("dir=.control", "the name '.control' is reserved"),
  ])
  func anUnsafeNameIsRefusedWithTheLineThatGivesIt(option: String, message: String) {
    let lineOfName = 2 + option.split(separator: "\n").count
    #expect {
      try parse("# first\nhttp://h/a\n \(option)\n")
    } throws: { error in
      "\(error)".hasPrefix("urls.txt:\(lineOfName): \(message)") && !"\(error)".contains("\n")
    }
  }

  @Test(arguments: [
    ("http://h", "a URL that ends in '/' needs out=: it names no file"),
    ("http://h/", "a URL that ends in '/' needs out="),
    ("http://h/d/", "a URL that ends in '/' needs out="),
    ("http://h?x", "a URL that ends in '/' needs out="),
    ("http://h/..", "the URL's path holds '.' or '..'"),
    ("http://h/%2e%2E", "the URL's path holds '.' or '..'"),
    ("http://h/.", "the URL's path holds '.' or '..'"),
    ("http://h/.status", "the name '.status' is reserved"),
    ("http://h/%2econtrol", "the name '.control' is reserved"),
    ("http://h/" + String(repeating: "x", count: 256), "a name of 256 bytes"),
  ])
  func aURLWithoutAUsableNameIsRefused(url: String, message: String) {
    #expect {
      try parse(url)
    } throws: { error in
      "\(error)".hasPrefix("urls.txt:1: \(message)")
    }
  }

  @Test func dotsInTheMiddleOfATreePathAreRefused() {
    #expect(throws: SourceListError.self) { try parse("http://h/a/../b", tree: true) }
    #expect(throws: SourceListError.self) { try parse("http://h/%2e/b", tree: true) }
  }

  @Test func namesThatLookTheSameAndDifferInTheirBytesAreTwo() throws {
    let list = try parse(
      "http://h/1\n out=\u{E9}/x\nhttp://h/2\n out=e\u{301}/x\nhttp://h/3\n out=e\u{301}x\n"
        + "http://h/4\n out=\u{E9}x\n")
    #expect(list.entries.map { $0.path.utf8.count } == [4, 5, 4, 3])
  }

  @Test func aNameUsedTwiceNamesBothLines() {
    #expect {
      try parse("http://h/a\nhttp://h/b\nhttp://i/a\n")
    } throws: { error in
      "\(error)"
        == "urls.txt:3: the name 'a' is already used in line 1; "
        + "give one of the two another name with out= or use --tree"
    }
  }

  @Test("Where only the query differs, the advice is out=, because --tree gives the same names")
  func namesThatOnlyAQueryTellsApart() {
    for tree in [false, true] {
      #expect {
        try parse("http://h/a?id=1\nhttp://h/a?id=2\n", tree: tree)
      } throws: { error in
        "\(error)".hasSuffix(
          "is already used in line 1; give one of the two another name with an indented line"
            + " out=NAME below its URL")
      }
    }
    #expect {
      try parse("http://h/d/a?id=1\nhttp://h/e/a?id=2\n")
    } throws: { error in
      "\(error)".hasSuffix(" with out= or use --tree")
    }
  }

  @Test(arguments: ["out=d\n", "out=d/e/f\n"])
  func aFileThatIsAlsoADirectoryIsRefused(option: String) {
    #expect {
      try parse("http://h/a\n out=d/e/f/g\nhttp://h/b\n \(option)")
    } throws: { error in
      "\(error)".hasPrefix("urls.txt:3: the name 'd")
        && "\(error)".contains("is a file and a directory at once, see line 1")
    }
  }

  @Test func aFileBeforeItsDirectoryIsRefusedToo() {
    #expect {
      try parse("http://h/d\nhttp://h/x\n out=e/x\nhttp://h/b\n out=d/e\n")
    } throws: { error in
      "\(error)".hasPrefix("urls.txt:4: the name 'd' is a file and a directory at once, see line 1")
    }
  }
}
