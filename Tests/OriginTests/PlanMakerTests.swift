import OriginContent
import Testing

struct PlanMakerTests {
  /// The plan for a resource of 10,000 bytes and seed 1.
  private func plan(
    _ values: [String: String] = [:], method: String = "GET", isHTTP11: Bool = true,
    context: PlanMaker.Context = .init(), fields: [String: String] = [:]
  ) throws -> ResponsePlan {
    let request = try RequestHead(
      method: method, target: "/data/a", fields: fields, isHTTP11: isHTTP11)
    let maker = PlanMaker(
      request: request, parameters: try ResponseParameters(values: values),
      resource: .generated(length: 10_000, seed: 1), context: context)
    return maker.plan()
  }

  private let range = ["range": "bytes=6000-6999"]

  /// The tag of version 1 as in the `ETag` field.
  private let tag = "\"1-2710-v1\""

  @Test("A GET sends the whole with its validators and length")
  func whole() throws {
    let plan = try plan()
    let head = try #require(plan.head)
    #expect(head.status == 200)
    #expect(head["ETag"] == tag)
    #expect(head["Last-Modified"] == "Wed, 01 Jan 2020 01:00:00 GMT")
    #expect(head["Accept-Ranges"] == "bytes")
    #expect(head["Content-Length"] == "10000")
    #expect(plan.steps.dropFirst() == [.content(0..<10_000, version: 1)])
    #expect(!plan.closesConnection)
    #expect(plan.isWhole)
  }

  @Test("A range request gets those bytes, HEAD no body")
  func part() throws {
    let part = try plan(fields: range)
    #expect(part.head?.status == 206)
    #expect(part.head?["Content-Range"] == "bytes 6000-6999/10000")
    #expect(part.head?["Content-Length"] == "1000")
    #expect(part.steps.last == .content(6000..<7000, version: 1))
    let head = try plan(method: "HEAD", fields: range)
    #expect(head.head?.status == 200)
    #expect(head.head?["Content-Length"] == "10000")
    #expect(head.bodyByteCount == 0)
  }

  @Test("A range after the end is answered 416 with the complete length")
  func unsatisfiable() throws {
    let plan = try plan(fields: ["range": "bytes=10000-"])
    #expect(plan.head?.status == 416)
    #expect(plan.head?["Content-Range"] == "bytes */10000")
  }

  @Test(
    "Conditional requests follow RFC 9110 §13",
    arguments: [
      (["if-none-match": "\"1-2710-v1\""], 304), (["if-none-match": "\"x\", W/\"1-2710-v1\""], 304),
      (["if-none-match": "*"], 304), (["if-none-match": "\"x\""], 200),
      (["if-modified-since": "Wed, 01 Jan 2020 01:00:00 GMT"], 304),
      (["if-modified-since": "Wed, 01 Jan 2020 00:59:59 GMT"], 200),
      (
        ["if-none-match": "\"x\"", "if-modified-since": "Wed, 01 Jan 2020 01:00:00 GMT"], 200
      ),
      (["if-match": "\"1-2710-v1\""], 200), (["if-match": "W/\"1-2710-v1\""], 412),
      (["if-match": "\"x\""], 412), (["if-match": "*"], 200),
      (["if-unmodified-since": "Wed, 01 Jan 2020 00:59:59 GMT"], 412),
      (["range": "bytes=0-9", "if-range": "\"1-2710-v1\""], 206),
      (["range": "bytes=0-9", "if-range": "W/\"1-2710-v1\""], 200),
      (["range": "bytes=0-9", "if-range": "\"x\""], 200),
      (["range": "bytes=0-9", "if-range": "Wed, 01 Jan 2020 01:00:00 GMT"], 206),
      (["range": "bytes=0-9", "if-range": "Wed, 01 Jan 2020 02:00:00 GMT"], 200),
    ])
  func conditional(fields: [String: String], status: Int) throws {
    #expect(try plan(fields: fields).head?.status == status)
  }

  @Test(
    "The validators are those asked for",
    arguments: [
      ("both", "\"1-2710-v1\"", true), ("etag", "\"1-2710-v1\"", false),
      ("weak", "W/\"1-2710-v1\"", false), ("date", nil, true), ("none", nil, false),
    ] as [(String, String?, Bool)])
  func validatorPolicies(policy: String, tag: String?, hasDate: Bool) throws {
    let head = try #require(try plan(["validators": policy]).head)
    #expect(head["ETag"] == tag)
    #expect((head["Last-Modified"] != nil) == hasDate)
  }

  @Test("A version has its own tag, date and bytes; flipped tags alternate")
  func versions() throws {
    let second = try plan(["version": "2"])
    #expect(second.head?["ETag"] == "\"1-2710-v2\"")
    #expect(second.steps.last == .content(0..<10_000, version: 2))
    let tags = try (1...4).map { number in
      try plan(["etag-flip": "1"], context: .init(requestNumber: number)).head?["ETag"]
    }
    #expect(tags[0] != tags[1])
    #expect(tags[0] == tags[2] && tags[1] == tags[3])
  }

  @Test("Without a declared length ranges are ignored, unless asked for")
  func unknownLengths() throws {
    for name in ["chunked", "close-delimited"] {
      let plan = try plan([name: "1"], fields: range)
      #expect(plan.head?.status == 200)
      #expect(plan.head?["Content-Length"] == nil)
      #expect(plan.head?["Accept-Ranges"] == nil)
      #expect(plan.isChunked == (name == "chunked"))
      #expect(plan.closesConnection == (name == "close-delimited"))
      #expect(try self.plan([name: "1", "ranges": "yes"], fields: range).head?.status == 206)
    }
    #expect(try plan(["chunked": "1"]).steps.last == .lastChunk)
    let old = try plan(["chunked": "1"], isHTTP11: false)
    #expect(!old.isChunked && old.closesConnection)
  }

  @Test("Latency comes before the head, the connection's only once")
  func latency() throws {
    let values = ["latency": "20", "connect-latency": "30"]
    let first = try plan(values, context: .init(isFirstOnConnection: true))
    #expect(first.steps.first == .wait(milliseconds: 50))
    #expect(try plan(values).steps.first == .wait(milliseconds: 20))
  }

  @Test("Other methods are refused, and so are uploads to files")
  func otherMethods() throws {
    let plan = try plan(method: "DELETE", fields: ["content-length": "5"])
    #expect(plan.head?.status == 405)
    #expect(plan.head?["Allow"] == "GET, HEAD, PUT, POST")
    #expect(plan.closesConnection)
    let upload = PlanMaker(
      request: try RequestHead(method: "PUT", target: "/files/a"),
      parameters: ResponseParameters(),
      resource: .file(length: 1, modified: 0, inodeNumber: 2))
    #expect(upload.plan().head?.status == 405)
    #expect(upload.plan().head?["Allow"] == "GET, HEAD")
  }

  @Test(
    "Statuses without a body have none, and a length only where it is 0",
    arguments: [(204, nil), (205, "0"), (304, nil)] as [(Int, String?)])
  func bodilessStatuses(status: Int, length: String?) throws {
    for values in [["status": "\(status)"], ["redirect": "/", "redirect-status": "304"]] {
      if status != 304, values["redirect"] != nil { continue }
      let plan = try plan(values)
      #expect(plan.head?.status == status)
      #expect(plan.head?["Content-Length"] == length)
      #expect(plan.bodyByteCount == 0)
      #expect(!plan.closesConnection)
    }
  }

  @Test("Several ranges at once come as parts only if asked for")
  func multipart() throws {
    let fields = ["range": "bytes=0-9,6000-6999"]
    #expect(try plan(fields: fields).head?.status == 200)
    let values = ["multipart": "yes", "content-type": "text/x"]
    let plan = try plan(values, fields: fields)
    #expect(plan.head?.status == 206)
    #expect(plan.head?["Content-Range"] == nil)
    #expect(plan.head?["Content-Length"] == String(plan.bodyByteCount))
    let type = try #require(plan.head?["Content-Type"])
    let boundary = try #require(type.split(separator: "=").last)
    #expect(type == "multipart/byteranges; boundary=\(boundary)")
    let fieldsOfParts = ["0-9", "6000-6999"].map {
      "--\(boundary)\r\nContent-Type: text/x\r\nContent-Range: bytes \($0)/10000\r\n\r\n"
    }
    #expect(
      plan.steps.dropFirst() == [
        .text(Array(fieldsOfParts[0].utf8)), .content(0..<10, version: 1),
        .text(Array("\r\n\(fieldsOfParts[1])".utf8)), .content(6000..<7000, version: 1),
        .text(Array("\r\n--\(boundary)--\r\n".utf8)),
      ])
    let one = try self.plan(values, fields: ["range": "bytes=0-9,20000-"])
    #expect(one.head?["Content-Range"] == "bytes 0-9/10000")
    #expect(try self.plan(values, fields: ["range": "bytes=20000-,-0"]).head?.status == 416)
  }

  @Test("A coded form has a tag and a length of its own, and says what it depends on")
  func coding() throws {
    let coded = try plan(
      ["coding": "gzip"], fields: ["accept-encoding": "br, gzip;q=0.5"])
    #expect(coded.head?["Content-Encoding"] == "gzip")
    #expect(coded.head?["ETag"] == "\"1-2710-v1-gzip\"")
    #expect(coded.head?["Vary"] == "Accept-Encoding")
    #expect(coded.head?["Content-Length"] == "10023")
    #expect(
      coded.steps.last
        == .coded(.gzip, contentByteCount: 10_000, version: 1, part: 0..<10_023))
    let identity = try plan(["coding": "gzip"], fields: ["accept-encoding": "br"])
    #expect(identity.head?["Content-Encoding"] == nil)
    #expect(identity.head?["ETag"] == tag)
    #expect(identity.head?["Vary"] == "Accept-Encoding")
    #expect(try plan(fields: ["accept-encoding": "gzip"]).head?["Vary"] == nil)
  }

  @Test("A range is one of the identity; a coded form is found unchanged by its own tag")
  func codingAndRanges() throws {
    let accepted = ["accept-encoding": "deflate"]
    let part = try plan(["coding": "deflate"], fields: accepted.merging(range) { $1 })
    #expect(part.head?.status == 206)
    #expect(part.head?["Content-Encoding"] == nil)
    #expect(part.head?["ETag"] == tag)
    let ignored = try plan(
      ["coding": "deflate", "ranges": "no"], fields: accepted.merging(range) { $1 })
    #expect(ignored.head?["Content-Encoding"] == "deflate")
    let own = accepted.merging(["if-none-match": "\"1-2710-v1-deflate\""]) { $1 }
    #expect(try plan(["coding": "deflate"], fields: own).head?.status == 304)
    let other = accepted.merging(["if-none-match": tag]) { $1 }
    #expect(try plan(["coding": "deflate"], fields: other).head?.status == 200)
  }

  @Test("A coded body can be cut anywhere")
  func cutCodedBody() throws {
    let plan = try plan(
      ["coding": "gzip", "fault": "stall", "fault-at": "5000", "stall-seconds": "1"],
      fields: ["accept-encoding": "gzip"])
    #expect(
      plan.steps.dropFirst() == [
        .coded(.gzip, contentByteCount: 10_000, version: 1, part: 0..<5000),
        .wait(milliseconds: 1000),
        .coded(.gzip, contentByteCount: 10_000, version: 1, part: 5000..<10_023),
      ])
  }

  @Test("An interim response comes directly before the final head, and not to HTTP/1.0")
  func interim() throws {
    let plan = try plan(["interim": "103", "latency": "5"])
    guard case .interim(let head) = plan.steps[1], case .head = plan.steps[2] else {
      Issue.record("no interim response before the head")
      return
    }
    #expect(plan.steps[0] == .wait(milliseconds: 5))
    #expect(head.status == 103)
    #expect(head["Link"] != nil)
    let old = try self.plan(["interim": "103"], isHTTP11: false)
    guard case .head = old.steps.first else {
      Issue.record("an interim response to HTTP/1.0")
      return
    }
  }

  @Test("The disposition of the content is a field of its responses")
  func contentDisposition() throws {
    let value = "attachment; filename=\"x.zip\""
    for fields in [[:], range] {
      let plan = try plan(["content-disposition": value], fields: fields)
      #expect(plan.head?["Content-Disposition"] == value)
    }
  }
}
