import HTTPTransferCore
import HTTPTypes
import Testing

@Suite struct ResponseVerdictTests {
  private static let asked: ByteRange = 1000..<2000
  private static let tag = EntityTag(opaque: "v1")

  private func judge(
    _ status: Int, _ fields: HTTPFields = HTTPFields(), asked: ByteRange? = Self.asked
  ) -> ResponseVerdict {
    ResponseVerdict(
      HTTPResponse(status: .init(code: status), headerFields: fields), asked: asked)
  }

  private func isInvalid(_ verdict: ResponseVerdict) -> Bool {
    if case .invalid = verdict { true } else { false }
  }

  // MARK: 206

  @Test("A part that fits is taken, with its version")
  func part() {
    let fields: HTTPFields = [
      .contentRange: "bytes 1000-1999/5000", .contentLength: "1000", .eTag: "\"v1\"",
    ]
    #expect(
      judge(206, fields)
        == .part(ContentVersion(entityTag: Self.tag, completeLength: 5000), range: 1000..<2000))
  }

  @Test(
    "A part may begin earlier and end elsewhere, as long as it brings the first byte asked for",
    arguments: [
      ("bytes 0-4999/5000", 0..<5000), ("bytes 999-1999/5000", 999..<2000),
      ("bytes 1000-1000/5000", 1000..<1001), ("bytes 1000-4999/5000", 1000..<5000),
      ("bytes 1000-1499/1500", 1000..<1500),
    ] as [(String, ByteRange)])
  func otherPart(field: String, range: ByteRange) throws {
    let length = try #require(ContentRange(field: field)?.completeLength)
    #expect(
      judge(206, [.contentRange: field])
        == .part(ContentVersion(completeLength: length), range: range))
  }

  @Test("A 203, which is a 200 that a proxy has changed, is the whole")
  func changedByProxy() {
    let fields: HTTPFields = [.contentLength: "5000", .eTag: "\"v1\""]
    #expect(
      judge(203, fields) == .whole(ContentVersion(entityTag: Self.tag, completeLength: 5000)))
  }

  @Test(
    "A part with the status of the whole is refused: its body may be either",
    arguments: [200, 203],
    [
      [.contentRange: "bytes 1000-1999/5000", .contentLength: "1000"],
      [.contentRange: "bytes 1000-1999/5000", .transferEncoding: "chunked"],
      [.contentRange: "bytes 1000-1999/5000"], [.contentRange: "bytes 0-999/5000"],
      [.contentRange: "bytes 0-999/*"], [.contentRange: "bytes=0-4999/5000"],
      [.contentRange: "bytes 0-998/*", .contentLength: "1000"],
      [.contentRange: "bytes 0-999/5000", .contentEncoding: "gzip"],
      [.contentRange: "x"], [.contentRange: "bytes 0-4999/5000", .contentLength: "4999"],
    ] as [HTTPFields])
  func partCalledWhole(status: Int, fields: HTTPFields) {
    #expect(isInvalid(judge(status, fields)))
  }

  @Test("The whole may say that it is the whole", arguments: [200, 203])
  func wholeNamed(status: Int) {
    let fields: HTTPFields = [.contentRange: "bytes 0-4999/5000", .contentLength: "5000"]
    #expect(judge(status, fields) == .whole(ContentVersion(completeLength: 5000)))
    let chunked: HTTPFields = [.contentRange: "bytes 0-4999/5000", .transferEncoding: "chunked"]
    #expect(judge(status, chunked) == .whole(ContentVersion()))
    let unsized: HTTPFields = [.contentRange: "bytes 0-4999/*", .contentLength: "5000"]
    #expect(judge(status, unsized) == .whole(ContentVersion(completeLength: 5000)))
    #expect(judge(status, [.contentRange: "bytes */5000"]) == .whole(ContentVersion()))
    let ofUnknownRange: HTTPFields = [.contentRange: "bytes */5000", .contentLength: "99"]
    #expect(isInvalid(judge(status, ofUnknownRange)))
    let coded: HTTPFields = [
      .contentRange: "bytes 0-4999/5000", .contentLength: "99", .contentEncoding: "gzip",
    ]
    #expect(
      judge(status, coded)
        == .whole(ContentVersion(completeLength: 99, contentCoding: "gzip")))
  }

  @Test("A part of unknown complete length says so")
  func partOfUnknownLength() {
    #expect(
      judge(206, [.contentRange: "bytes 1000-1999/*"])
        == .part(ContentVersion(), range: 1000..<2000))
  }

  @Test(
    "A part that does not hold the first byte asked for, or does not say what it is, is refused",
    arguments: [
      [:], [.contentRange: ""], [.contentRange: "bytes 1000-1999"],
      [.contentRange: "bytes 1000-1999/1500"], [.contentRange: "bytes */5000"],
      [.contentRange: "bytes 1001-1999/5000"], [.contentRange: "bytes 2000-2999/5000"],
      [.contentRange: "bytes 0-999/5000"], [.contentRange: "bytes 999-1998/5000"],
      [.contentRange: "bytes 999-1000/5000"], [.contentRange: "items 1000-1999/5000"],
      [.contentRange: "bytes 1000-9223372036854775807/*"],
      // The length contradicts the range, or is invalid.
      [.contentRange: "bytes 1000-1999/5000", .contentLength: "999"],
      [.contentRange: "bytes 1000-1999/5000", .contentLength: "1001"],
      [.contentRange: "bytes 1000-1999/5000", .contentLength: "0"],
      [.contentRange: "bytes 1000-1999/5000", .contentLength: "-1000"],
      [.contentRange: "bytes 1000-1999/5000", .contentLength: "x"],
      // Two ends of one message.
      [
        .contentRange: "bytes 1000-1999/5000", .contentLength: "1000",
        .transferEncoding: "chunked",
      ],
      [
        .contentRange: "bytes 1000-1999/5000",
        .contentType: "multipart/byteranges; boundary=x",
      ],
      [.contentType: "Multipart/ByteRanges; boundary=x"],
    ] as [HTTPFields])
  func refusedPart(fields: HTTPFields) {
    #expect(isInvalid(judge(206, fields)))
  }

  @Test("Two lengths that differ are refused; one length said twice is one")
  func repeatedLength() {
    var fields: HTTPFields = [.contentRange: "bytes 1000-1999/5000", .contentLength: "1000"]
    fields.append(HTTPField(name: .contentLength, value: "1000"))
    #expect(judge(206, fields) == .part(ContentVersion(completeLength: 5000), range: 1000..<2000))
    fields.append(HTTPField(name: .contentLength, value: "1001"))
    #expect(isInvalid(judge(206, fields)))
  }

  @Test("Two ranges in one response are refused")
  func repeatedRange() {
    var fields: HTTPFields = [.contentRange: "bytes 1000-1999/5000"]
    fields.append(HTTPField(name: .contentRange, value: "bytes 1000-1499/5000"))
    #expect(isInvalid(judge(206, fields)))
  }

  @Test("A chunked part has the length of its range")
  func chunkedPart() {
    let fields: HTTPFields = [
      .contentRange: "bytes 1000-1999/5000", .transferEncoding: "chunked",
    ]
    #expect(judge(206, fields) == .part(ContentVersion(completeLength: 5000), range: 1000..<2000))
  }

  @Test("A part of a request for the whole is refused")
  func unaskedPart() {
    #expect(isInvalid(judge(206, [.contentRange: "bytes 0-4999/5000"], asked: nil)))
  }

  // MARK: 200

  @Test(
    "The whole has the length that Content-Length says, or none",
    arguments: [
      ([.contentLength: "5000"], 5000), ([.contentLength: "0"], 0), ([:], nil),
      ([.transferEncoding: "chunked"], nil), ([.contentLength: "1152921504606846976"], 1 << 60),
    ] as [(HTTPFields, Int64?)])
  func whole(fields: HTTPFields, length: Int64?) {
    for asked in [Self.asked, nil] {
      #expect(judge(200, fields, asked: asked) == .whole(ContentVersion(completeLength: length)))
    }
  }

  @Test(
    "A whole of contradictory or malformed length is refused",
    arguments: [
      [.contentLength: "5000", .transferEncoding: "chunked"], [.contentLength: ""],
      [.contentLength: "-1"], [.contentLength: "+1"], [.contentLength: "5e3"],
      [.contentLength: "1152921504606846977"], [.contentLength: "9223372036854775808"],
      [.contentLength: "5000, 5000"],
    ] as [HTTPFields])
  func refusedWhole(fields: HTTPFields) {
    #expect(isInvalid(judge(200, fields)))
  }

  @Test("Validators and coding of the whole are those of its fields")
  func wholeVersion() {
    let fields: HTTPFields = [
      .contentLength: "7", .eTag: "\"v1\"", .lastModified: "d", .contentEncoding: "gzip",
    ]
    #expect(
      judge(200, fields)
        == .whole(
          ContentVersion(
            entityTag: Self.tag, lastModified: "d", completeLength: 7, contentCoding: "gzip")))
  }

  // MARK: Other statuses

  @Test(
    "416 carries the length where the server says it",
    arguments: [
      ([.contentRange: "bytes */1234"], 1234), ([:], nil), ([.contentRange: "bytes */*"], nil),
      ([.contentRange: "nonsense"], nil), ([.contentRange: "bytes */-1"], nil),
    ] as [(HTTPFields, Int64?)])
  func unsatisfiable(fields: HTTPFields, length: Int64?) {
    #expect(judge(416, fields) == .unsatisfiable(completeLength: length))
  }

  @Test("304 and 412 answer a condition")
  func conditions() {
    #expect(judge(304, [.eTag: "\"v1\""]) == .notModified(ContentVersion(entityTag: Self.tag)))
    #expect(judge(412) == .preconditionFailed)
  }

  @Test("Every status has its verdict")
  func everyStatus() {
    for status in 100...999 {
      let isWhole = status == 200 || status == 203
      let verdict = judge(status, isWhole ? [:] : [.contentRange: "bytes 1000-1999/5000"])
      let isExpected: Bool
      switch (status, verdict) {
      case (200, .whole), (203, .whole), (206, .part), (304, .notModified),
        (412, .preconditionFailed), (416, .unsatisfiable(completeLength: 5000)):
        isExpected = true
      case (404, .missing(let code)), (410, .missing(let code)),
        (401, .denied(let code)), (403, .denied(let code)), (407, .denied(let code)),
        (408, .unavailable(let code, nil)), (425, .unavailable(let code, nil)),
        (429, .unavailable(let code, nil)), (500...599, .unavailable(let code, nil)):
        isExpected = code == status
      case (200, _), (203, _), (206, _), (304, _), (401, _), (403, _), (404, _), (407, _),
        (408, _), (410, _), (412, _), (416, _), (425, _), (429, _), (500...599, _):
        isExpected = false
      case (400...499, _): isExpected = verdict == .rejected(status: status)
      default: isExpected = isInvalid(verdict)
      }
      #expect(isExpected, "\(status): \(verdict)")
    }
  }

  @Test(
    "Retry-After is understood in seconds, up to a day, and without a clock as nothing else",
    arguments: [
      ("0", .zero), ("120", .seconds(120)), (" 5 ", .seconds(5)), ("86401", .seconds(86_400)),
      ("9223372036854775807", .seconds(86_400)), ("9223372036854775808", .seconds(86_400)),
      ("-1", nil),
      ("1.5", nil), ("", nil), ("soon", nil), ("Sun, 06 Nov 1994 08:49:37 GMT", nil),
    ] as [(String, Duration?)])
  func retryAfter(field: String, expected: Duration?) {
    #expect(
      judge(503, [.retryAfter: field]) == .unavailable(status: 503, retryAfter: expected))
  }

  // MARK: Stand-ins

  @Test(
    "A page of HTML is doubted where the name promises something else",
    arguments: [
      ("text/html", "/a/b.iso", true), ("Text/HTML; charset=utf-8", "/b.zip", true),
      ("text/html", "/b.tar.gz", true), ("text/html", "/index.html", false),
      ("text/html", "/INDEX.HTM", false), ("text/html", "/get.php", false),
      ("text/html", "/download", false), ("text/html", "/", false), ("text/html", "", false),
      ("text/html", "/dir.d/file", false), ("text/html", "/v1.2/", false),
      ("text/html", "/data.bin/?x=1", true), ("text/html", "/list/?x=1", false),
      ("application/octet-stream", "/b.iso", false),
      ("text/plain", "/b.iso", false), (nil, "/b.iso", false),
    ] as [(String?, String, Bool)])
  func doubtfulPages(type: String?, path: String, expected: Bool) throws {
    var fields = HTTPFields()
    fields[.contentType] = type
    #expect(try fields.isDoubtful(for: RemoteURL("http://h" + path)) == expected)
  }

  @Test("The type counts, however long its field is and whatever follows")
  func longType() throws {
    let rest = String(repeating: "x", count: 97 << 10)
    #expect(
      try HTTPFields([.init(name: .contentType, value: "text/html; a=" + rest)])
        .isDoubtful(for: RemoteURL("http://h/a.iso")))
    let fields: HTTPFields = [
      .contentRange: "bytes 0-0/5", .contentType: "Multipart/byteranges; boundary=" + rest,
    ]
    #expect(isInvalid(judge(206, fields, asked: 0..<1)))
  }

  @Test("The verdict on a head of long values costs next to nothing")
  func costOfLongValues() throws {
    let latin = HTTPField(
      name: .contentEncoding, value: [UInt8](repeating: 0xC9, count: 97 << 10))
    let text = String(repeating: "m ", count: 48 << 10)
    let url = try RemoteURL("http://h/a.iso")
    let start = ContinuousClock.now
    for _ in 0..<200 {
      var fields: HTTPFields = [
        .contentRange: "bytes 0-0/5", .lastModified: text, .date: text, .contentType: text,
      ]
      fields.append(latin)
      _ = judge(206, fields, asked: 0..<1)
      _ = fields.isDoubtful(for: url)
    }
    // Reading each value to its end would take 15 s; the limit also allows for a busy machine.
    #expect(ContinuousClock.now - start < .seconds(4))
  }

  @Test("A coding that was not asked for is doubted, whatever the type")
  func doubtfulCoding() throws {
    for (coding, expected) in [("gzip", true), ("br", true), ("identity", false)] {
      let fields: HTTPFields = [.contentEncoding: coding, .contentType: "application/x-iso"]
      #expect(try fields.isDoubtful(for: RemoteURL("http://h/a.iso")) == expected)
    }
  }
}
