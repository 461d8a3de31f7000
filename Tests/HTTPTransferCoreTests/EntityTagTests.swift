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

  @Test("A tag of more than 1 KiB is none")
  func length() {
    let text = String(repeating: "x", count: 1024)
    #expect(EntityTag(field: "\"\(text)\"") == EntityTag(opaque: text))
    #expect(EntityTag(field: "W/\"\(text)x\"") == nil)
    #expect(EntityTag(bytes: Array((text + "x").utf8), isWeak: false) == nil)
  }

  @Test("A tag's field parses to the same tag")
  func roundTrip() {
    for isWeak in [false, true] {
      let tag = EntityTag(opaque: "1f-6400a2", isWeak: isWeak)
      #expect(tag.description == (isWeak ? "W/\"1f-6400a2\"" : "\"1f-6400a2\""))
      #expect(EntityTag(field: tag.fieldBytes) == tag)
      #expect(EntityTag(field: tag.description) == tag)
    }
  }

  @Test("Tags are equal only where their bytes are")
  func bytes() throws {
    let fields: [[UInt8]] = [
      [0x22, 0x80, 0x22], [0x22, 0x90, 0x22], Array("\"\u{FFFD}\"".utf8),
      // One character, composed and decomposed.
      Array("\"\u{E9}\"".utf8), Array("\"e\u{301}\"".utf8),
    ]
    var tags: Set<EntityTag> = []
    for field in fields {
      let tag = try #require(EntityTag(field: field))
      #expect(tag.fieldBytes == field)
      #expect(tags.insert(tag).inserted, "\(field)")
    }
  }
}
