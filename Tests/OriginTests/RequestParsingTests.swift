import OriginContent
import Testing

struct RequestParsingTests {
  @Test("A head is split into method, path, query and lower-case fields")
  func parsesHead() throws {
    let text =
      "GET /data/a%20b.zip?length=1k&fault=stall&x=%2F HTTP/1.1\r\nHost: h\r\n"
      + "RANGE:  bytes=0-1 \r\nX-A: 1\r\nx-a: 2"
    let head = try RequestHead(parsing: Array(text.utf8))
    #expect(head.method == "GET")
    #expect(head.path == "/data/a b.zip")
    #expect(head.query == ["length": "1k", "fault": "stall", "x": "/"])
    #expect(head.fields == ["host": "h", "range": "bytes=0-1", "x-a": "1, 2"])
    #expect(head.isHTTP11)
  }

  @Test(
    "What is not a request head is refused",
    arguments: [
      "", "GET /", "GET  / HTTP/1.1", "GET / HTTP/2", "GET /%zz HTTP/1.1", "GET /?a=%f HTTP/1.1",
      "GET / HTTP/1.1\r\nno colon", "GET / HTTP/1.1\r\n: x", "GET / HTTP/1.1\r\nA : x",
    ])
  func refusesMalformedHeads(text: String) {
    #expect(throws: RequestHead.ParseError.self) {
      try RequestHead(parsing: Array(text.utf8))
    }
  }

  @Test("A target in absolute form has the same path")
  func parsesAbsoluteForm() throws {
    #expect(try RequestHead(target: "http://host:1/a/b?c=d").path == "/a/b")
    #expect(try RequestHead(target: "http://host").path == "/")
  }

  @Test(
    "Whether the connection stays open follows the version and the Connection field",
    arguments: [
      (true, nil, true), (true, "close", false), (false, nil, false), (false, "Keep-Alive", true),
    ] as [(Bool, String?, Bool)])
  func keepsConnection(isHTTP11: Bool, field: String?, expected: Bool) throws {
    let fields = field.map { ["connection": $0] } ?? [:]
    let head = try RequestHead(target: "/", fields: fields, isHTTP11: isHTTP11)
    #expect(head.keepsConnection == expected)
  }

  @Test(
    "A Range field selects bytes of a length of 1000",
    arguments: [
      (nil, .whole), ("bytes=0-0", .part(0..<1)), ("bytes=10-19", .part(10..<20)),
      ("BYTES=990-2000", .part(990..<1000)), ("bytes=999-", .part(999..<1000)),
      ("bytes=-10", .part(990..<1000)), ("bytes=-5000", .part(0..<1000)),
      ("bytes=0-9223372036854775807", .part(0..<1000)),
      ("bytes=1000-", .unsatisfiable), ("bytes=5000-6000", .unsatisfiable),
      ("bytes=-0", .unsatisfiable),
      ("bytes=9-3", .whole), ("bytes=", .whole), ("bytes=-", .whole), ("bytes=a-b", .whole),
      ("bytes=0-1,5-6", .whole), ("items=0-1", .whole), ("bytes=99999999999999999999-", .whole),
    ] as [(String?, RangeSelection)])
  func selectsRange(field: String?, expected: RangeSelection) {
    #expect(RangeSelection(field: field, completeLength: 1000) == expected)
  }

  @Test(
    "Several ranges are selected where they are allowed, without those that are not there",
    arguments: [
      ("bytes=0-1, 5-6", .parts([0..<2, 5..<7])), ("bytes=-1,0-0", .parts([999..<1000, 0..<1])),
      ("bytes=0-1,1000-", .part(0..<2)), ("bytes=1000-,-0", .unsatisfiable),
      ("bytes=0-1,x", .whole), ("bytes=0-1,", .whole), ("bytes=3-4", .part(3..<5)),
    ] as [(String, RangeSelection)])
  func selectsRanges(field: String, expected: RangeSelection) {
    #expect(
      RangeSelection(field: field, completeLength: 1000, allowsSeveral: true) == expected)
  }

  @Test("Ranges whose sum no number holds are not selected")
  func hugeRanges() {
    let field = "bytes=0-,0-,0-"
    #expect(RangeSelection(field: field, completeLength: .max, allowsSeveral: true) == .whole)
  }

  @Test(
    "The end of a body is found by its length or its chunks",
    arguments: [
      ([:], .length(0)), (["content-length": "7"], .length(7)),
      (["content-length": "-7"], .unknown), (["content-length": "7, 7"], .unknown),
      (["transfer-encoding": "Chunked", "content-length": "7"], .chunked),
      (["transfer-encoding": "gzip, chunked"], .unknown),
    ] as [([String: String], RequestHead.BodyFraming)])
  func bodyFraming(fields: [String: String], expected: RequestHead.BodyFraming) throws {
    #expect(try RequestHead(method: "PUT", target: "/", fields: fields).bodyFraming == expected)
  }

  @Test("A client waits for permission only in HTTP/1.1, and only with a body")
  func expectsContinue() throws {
    func head(_ length: String, isHTTP11: Bool) throws -> RequestHead {
      try RequestHead(
        method: "PUT", target: "/",
        fields: ["expect": "100-Continue", "content-length": length], isHTTP11: isHTTP11)
    }
    #expect(try head("5", isHTTP11: true).expectsContinue)
    #expect(try !head("0", isHTTP11: true).expectsContinue)
    #expect(try !head("5", isHTTP11: false).expectsContinue)
  }

  @Test("Nothing of an empty representation can be selected")
  func emptyRepresentation() {
    #expect(RangeSelection(field: "bytes=0-", completeLength: 0) == .unsatisfiable)
    #expect(RangeSelection(field: nil, completeLength: 0) == .whole)
  }

  @Test(
    "Dates are written and read as IMF-fixdate",
    arguments: [
      (0, "Thu, 01 Jan 1970 00:00:00 GMT"), (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
      (951_827_696, "Tue, 29 Feb 2000 12:34:56 GMT"),
      (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
    ] as [(Int64, String)])
  func dates(seconds: Int64, field: String) {
    #expect(HTTPDate.field(seconds: seconds) == field)
    #expect(HTTPDate.seconds(field: field) == seconds)
  }

  @Test(
    "Other dates are not read",
    arguments: ["", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT"])
  func refusesOtherDates(field: String) {
    #expect(HTTPDate.seconds(field: field) == nil)
  }
}
