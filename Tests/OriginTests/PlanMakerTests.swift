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

  @Test("Methods other than GET and HEAD are refused")
  func otherMethods() throws {
    let plan = try plan(method: "PUT", fields: ["content-length": "5"])
    #expect(plan.head?.status == 405)
    #expect(plan.closesConnection)
  }
}
