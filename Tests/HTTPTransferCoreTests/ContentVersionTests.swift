import HTTPTransferCore
import HTTPTypes
import Testing

@Suite struct ContentVersionTests {
  /// One row: the pinned version, the version of a response, and whether their bytes are the same.
  struct Comparison: CustomTestStringConvertible, Sendable {
    let pinned: ContentVersion
    let response: ContentVersion
    let expected: ContentVersion.Comparison

    init(
      _ pinned: ContentVersion, _ response: ContentVersion,
      _ expected: ContentVersion.Comparison
    ) {
      self.pinned = pinned
      self.response = response
      self.expected = expected
    }

    var testDescription: String { "\(pinned) / \(response)" }
  }

  /// Shorthand for a version: `tag` starts with `W/` if it is weak.
  private static func version(
    _ tag: String? = nil, date: String? = nil, length: Int64? = nil, coding: String? = nil
  ) -> ContentVersion {
    ContentVersion(
      entityTag: tag.flatMap(EntityTag.init(field:)), lastModified: date, completeLength: length,
      contentCoding: coding)
  }

  @Test(
    "The response's version is told from the pinned one",
    arguments: [
      // Strong tags decide alone.
      Comparison(version("a"), version("a"), .same),
      Comparison(version("a"), version("b"), .different),
      Comparison(version("a", date: "d"), version("a", date: "e"), .same),
      Comparison(version("a", date: "d"), version("b", date: "d"), .different),
      // Tags are case-sensitive.
      Comparison(version("a"), version("A"), .different),
      // A weak tag on either side: the dates must agree, too.
      Comparison(version("W/a"), version("W/a"), .same),
      Comparison(version("W/a"), version("W/b"), .different),
      Comparison(version("W/a", date: "d"), version("W/a", date: "d"), .same),
      Comparison(version("W/a", date: "d"), version("W/a", date: "e"), .different),
      Comparison(version("W/a", date: "d"), version("a", date: "e"), .different),
      Comparison(version("a", date: "d"), version("W/a", date: "e"), .different),
      Comparison(version("W/a", date: "d"), version("W/a"), .same),
      // A strong tag became weak: only dates can prove that the bytes are the same.
      Comparison(version("a"), version("W/a"), .unknown),
      Comparison(version("a", date: "d"), version("W/a"), .unknown),
      Comparison(version("a"), version("W/a", date: "d"), .unknown),
      Comparison(version("a", date: "d"), version("W/a", date: "d"), .same),
      Comparison(version("W/a"), version("a"), .same),
      // Dates alone.
      Comparison(version(date: "d"), version(date: "d"), .same),
      Comparison(version(date: "d"), version(date: "e"), .different),
      Comparison(version(date: "d"), version("a", date: "d"), .same),
      Comparison(version(date: "d"), version("a", date: "e"), .different),
      // The response lacks a validator of the pinned version.
      Comparison(version("a", date: "d"), version(date: "d"), .unknown),
      Comparison(version("a", date: "d"), version(date: "e"), .different),
      Comparison(version("a"), version(), .unknown),
      Comparison(version("W/a"), version(), .unknown),
      Comparison(version(date: "d"), version(), .unknown),
      Comparison(version("a"), version(date: "d"), .unknown),
      Comparison(version(date: "d"), version("a"), .unknown),
      // Only the length is pinned.
      Comparison(version(), version(), .same),
      Comparison(version(), version("a"), .different),
      Comparison(version(), version(date: "d"), .different),
      Comparison(version(length: 5), version(length: 5), .same),
      Comparison(version(length: 5), version("a", length: 5), .different),
      Comparison(version(length: 5), version("a", length: 6), .different),
      // Lengths, if both are known, overrule equal validators.
      Comparison(version("a", length: 5), version("a", length: 5), .same),
      Comparison(version("a", length: 5), version("a", length: 6), .different),
      Comparison(version("a", length: 5), version("a", length: 0), .different),
      Comparison(version("a", length: 5), version("a"), .same),
      Comparison(version("a"), version("a", length: 5), .same),
      Comparison(version(length: 5), version(), .same),
      Comparison(version("a", length: 5), version(length: 6), .different),
      Comparison(version("a", length: 5), version(length: 5), .unknown),
      // Codings are part of the version, and overrule everything.
      Comparison(version("a", coding: "gzip"), version("a", coding: "gzip"), .same),
      Comparison(version("a"), version("a", coding: "gzip"), .different),
      Comparison(version("a", coding: "gzip"), version("a"), .different),
      Comparison(version("a", coding: "gzip"), version("a", coding: "br"), .different),
    ])
  func compare(row: Comparison) {
    #expect(row.pinned.compare(row.response) == row.expected)
  }

  @Test("Identity wants every validator alike, and the lengths where both are known")
  func identity() {
    let version = Self.version("a", date: "d", length: 5)
    #expect(version.hasSameIdentity(as: version))
    #expect(version.hasSameIdentity(as: Self.version("a", date: "d")))
    #expect(Self.version("a", date: "d").hasSameIdentity(as: version))
    let others = [
      Self.version("b", date: "d", length: 5), Self.version("W/a", date: "d", length: 5),
      Self.version(nil, date: "d", length: 5), Self.version("a", date: "e", length: 5),
      Self.version("a", length: 5), Self.version("a", date: "d", length: 6),
      Self.version("a", date: "d", length: 5, coding: "gzip"),
    ]
    for other in others {
      #expect(!version.hasSameIdentity(as: other), "\(other)")
      #expect(!other.hasSameIdentity(as: version), "\(other)")
    }
  }

  @Test("Strength and description name the best validator there is")
  func strength() {
    let strong = Self.version("a", date: "d")
    #expect(strong.strength == .strong)
    #expect(strong.validatorDescription == "ETag \"a\"")
    let weak = Self.version("W/a")
    #expect(weak.strength == .weak)
    #expect(weak.validatorDescription == "ETag W/\"a\"")
    var dated = Self.version(date: "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(dated.strength == .weak)
    dated.dateStrength = .strong
    #expect(dated.strength == .strong)
    #expect(dated.validatorDescription == "Last-Modified Sun, 06 Nov 1994 08:49:37 GMT")
    let none = Self.version(length: 5)
    #expect(none.strength == .unverifiable)
    #expect(none.validatorDescription == "unverifiable")
  }

  @Test(
    "Identity in any spelling is no coding",
    arguments: [
      (nil, nil), ("identity", nil), ("Identity ", nil), ("", nil), ("gzip", "gzip"),
      (" GZIP ", "gzip"), ("gzip, br", "gzip, br"),
    ] as [(String?, String?)])
  func coding(field: String?, expected: String?) {
    var fields = HTTPFields()
    fields[.contentEncoding] = field
    #expect(ContentVersion(fields, completeLength: nil).contentCoding == expected)
  }

  @Test(
    "A modification date is strong where the response is at least a second younger",
    arguments: [
      ("Sun, 06 Nov 1994 08:49:37 GMT", .weak), ("Sun, 06 Nov 1994 08:49:38 GMT", .strong),
      ("Sun, 06 Nov 1994 08:49:36 GMT", .weak), ("Mon, 07 Nov 1994 08:49:37 GMT", .strong),
      ("yesterday", .undated), (nil, .undated),
    ] as [(String?, ContentVersion.DateStrength)])
  func dateStrength(made: String?, expected: ContentVersion.DateStrength) {
    var fields: HTTPFields = [.lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"]
    fields[.date] = made
    let version = ContentVersion(fields, completeLength: 1)
    #expect(version.dateStrength == expected)
    #expect(version.strength == (expected == .strong ? .strong : .weak))
    // An unproven validator is not kept for later.
    #expect((version.provable.lastModified != nil) == (expected == .strong))
    #expect(version.isTooFresh == (expected == .weak))
    fields[.eTag] = "\"a\""
    let tagged = ContentVersion(fields, completeLength: 1)
    #expect(tagged.strength == .strong)
    #expect(!tagged.isTooFresh)
  }

  @Test("Equal dates confirm nothing where the pinned one is of its response's second")
  func freshDates() {
    var pinned = Self.version(date: "d")
    #expect(pinned.compare(Self.version(date: "d")) == .same)
    pinned.dateStrength = .weak
    #expect(pinned.compare(Self.version(date: "d")) == .unknown)
    #expect(pinned.compare(Self.version(date: "e")) == .different)
    pinned.dateStrength = .strong
    #expect(pinned.compare(Self.version(date: "d")) == .same)
  }

  @Test("A response's fields make its version")
  func fields() {
    let fields: HTTPFields = [
      .eTag: "W/\"x\"", .lastModified: "Sun, 06 Nov 1994 08:49:37 GMT", .contentLength: "7",
    ]
    let version = ContentVersion(fields, completeLength: 100)
    #expect(version.entityTag == EntityTag(opaque: "x", isWeak: true))
    #expect(version.lastModified == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(version.completeLength == 100)
    // An invalid tag leaves the date as the validator.
    let broken = ContentVersion([.eTag: "\"\"", .lastModified: "d"], completeLength: nil)
    #expect(broken == ContentVersion(lastModified: "d"))
  }

  @Test("Of values as no server means them nothing is kept")
  func longValues() {
    let text = String(repeating: "x", count: 97 << 10)
    let fields: HTTPFields = [
      .eTag: text, .lastModified: text, .date: text, .contentRange: text, .contentType: text,
    ]
    #expect(ContentVersion(fields, completeLength: 5) == ContentVersion(completeLength: 5))
    // A valid date at the start does not make the whole text a date.
    let padded = "Sun, 06 Nov 1994 08:49:37 GMT" + String(repeating: " x", count: 2000)
    #expect(ContentVersion([.lastModified: padded], completeLength: nil) == ContentVersion())
    // Several fields are one value.
    var tags = HTTPFields()
    for _ in 0..<900 { tags.append(HTTPField(name: .lastModified, value: "d")) }
    #expect(ContentVersion(tags, completeLength: nil).lastModified == nil)
    // A coding stays a single value.
    let coded = ContentVersion([.contentEncoding: text], completeLength: nil)
    #expect(coded.contentCoding?.utf8.count == 1024)
  }

  @Test("Validators of other bytes are others, whatever text the bytes make")
  func bytes() throws {
    func version(_ name: HTTPField.Name, _ bytes: [UInt8]) -> ContentVersion {
      var fields = HTTPFields()
      fields.append(HTTPField(name: name, value: bytes))
      return ContentVersion(fields, completeLength: 10)
    }
    let (one, other) = ([0x22, 0x76, 0x80, 0x22], [0x22, 0x76, 0x90, 0x22]) as ([UInt8], [UInt8])
    #expect(version(.eTag, one).compare(version(.eTag, one)) == .same)
    #expect(version(.eTag, one).compare(version(.eTag, other)) == .different)
    #expect(!version(.eTag, one).hasSameIdentity(as: version(.eTag, other)))
    // The same text to a reader, composed and decomposed.
    let (composed, decomposed) = (Array("\"\u{E9}\"".utf8), Array("\"e\u{301}\"".utf8))
    #expect(version(.eTag, composed).compare(version(.eTag, decomposed)) == .different)
    #expect(version(.contentEncoding, one).compare(version(.contentEncoding, other)) == .different)
    // No date has such bytes.
    #expect(version(.lastModified, one).lastModified == nil)
    #expect(version(.lastModified, one).strength == .unverifiable)
  }
}
