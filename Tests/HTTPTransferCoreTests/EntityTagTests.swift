import HTTPTransferCore
import Testing

@Suite struct EntityTagTests {
  @Test(
    "Tags are read with their strength",
    arguments: [
      ("\"abc\"", EntityTag(opaque: "abc")),
      ("W/\"abc\"", EntityTag(opaque: "abc", isWeak: true)),
      (" \"abc\"\t", EntityTag(opaque: "abc")),
      ("\"W/abc\"", EntityTag(opaque: "W/abc")),
      ("\"a\\b;c,d\"", EntityTag(opaque: "a\\b;c,d")),
      ("\"é\"", EntityTag(opaque: "é")),
      // Unquoted, as some servers send it.
      ("abc", EntityTag(opaque: "abc")),
      ("W/abc", EntityTag(opaque: "abc", isWeak: true)),
      // The prefix is case-sensitive (RFC 9110 §8.8.3): this is an unquoted strong tag.
      ("w/abc", EntityTag(opaque: "w/abc")),
    ])
  func parsing(field: String, expected: EntityTag) {
    #expect(EntityTag(field: field) == expected)
  }

  @Test(
    "What cannot be a tag is none",
    arguments: [
      "", " ", "\"\"", "W/", "W/\"\"", "\"", "\"a", "a\"", "\"a\"b\"", "\"a\",\"b\"", "\"a b\"",
      "\"a\u{0}\"", "\"a\u{7F}\"", "\"a\nb\"", "w/\"abc\"",
    ])
  func refused(field: String) {
    #expect(EntityTag(field: field) == nil)
  }

  @Test("A tag's field parses to the same tag")
  func roundTrip() {
    for isWeak in [false, true] {
      let tag = EntityTag(opaque: "1f-6400a2", isWeak: isWeak)
      #expect(tag.field == (isWeak ? "W/\"1f-6400a2\"" : "\"1f-6400a2\""))
      #expect(EntityTag(field: tag.field) == tag)
    }
  }
}
