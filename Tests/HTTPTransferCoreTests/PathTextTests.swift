import HTTPTransferCore
import Testing

@Suite("Paths by their bytes")
struct PathTextTests {
  @Test(
    "A slash ends a part, whatever stands beside it",
    arguments: [
      ("a/b", ["a", "b"]), ("/a//b/", ["a", "b"]), ("", []),
      ("a/\u{301}b", ["a", "\u{301}b"]), ("a\u{600}/b", ["a\u{600}", "b"]),
      ("a/\u{200D}b/\u{301}", ["a", "\u{200D}b", "\u{301}"]),
    ])
  func parts(path: String, parts: [String]) {
    #expect(path.pathParts() == parts)
  }

  @Test("Empty parts are kept where they are asked for")
  func emptyParts() {
    #expect("/a//".pathParts(omittingEmpty: false) == ["", "a", "", ""])
    #expect("".pathParts(omittingEmpty: false) == [""])
  }

  @Test("A mark at a slash at either end hides it from nobody")
  func ends() {
    #expect("/\u{301}a".isAbsolutePath)
    #expect(!"a/".isAbsolutePath)
    #expect("a\u{600}/".hasFinalSlash)
    #expect(!"a/\u{301}".hasFinalSlash)
    #expect("a\u{600}.end".hasByteSuffix(".end"))
    #expect(!"end".hasByteSuffix(".end"))
  }
}

@Suite("Names as keys")
struct PathKeyTests {
  @Test("Names that look the same and differ in their bytes are two keys")
  func bytes() {
    #expect("\u{E9}" == "e\u{301}")
    #expect(PathKey("\u{E9}") != PathKey("e\u{301}"))
    #expect(Set(["\u{E9}", "e\u{301}", "\u{E9}"].map { PathKey($0) }).count == 2)
    #expect(PathKey("e\u{301}") < PathKey("\u{E9}"))
    #expect(PathKey("xab".dropFirst()) == PathKey("ab"))
    #expect(PathKey("xab".dropFirst()).hashValue == PathKey("ab").hashValue)
  }
}
