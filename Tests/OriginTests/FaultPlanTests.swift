import OriginContent
import Testing

struct FaultPlanTests {
  private static let range = ["range": "bytes=6000-6999"]

  /// The plan for a resource of 10,000 bytes, of a request for the bytes 6000–6999.
  private func plan(
    _ fault: Fault, _ values: [String: String] = [:], fields: [String: String] = range,
    context: PlanMaker.Context = .init(), method: String = "GET"
  ) throws -> ResponsePlan {
    let all = values.merging(["fault": fault.rawValue]) { $1 }
    let maker = PlanMaker(
      request: try RequestHead(method: method, target: "/data/a?x", fields: fields),
      parameters: try ResponseParameters(values: all),
      resource: .generated(length: 10_000, seed: 1), context: context)
    return maker.plan()
  }

  @Test("Range faults answer with another status, range or body")
  func rangeFaults() throws {
    let ignored = try plan(.ignoreRange)
    #expect(ignored.head?.status == 200)
    #expect(ignored.bodyByteCount == 10_000)
    #expect(try plan(.wrongContentRange).head?["Content-Range"] == "bytes 6001-7000/10000")
    let tail = ["range": "bytes=9000-"]
    #expect(
      try plan(.wrongContentRange, fields: tail).head?["Content-Range"]
        == "bytes 8999-9998/10000")
    let whole = ["range": "bytes=0-"]
    #expect(
      try plan(.wrongContentRange, fields: whole).head?["Content-Range"] == "bytes 0-9999/10001")
    #expect(try plan(.missingContentRange).head?["Content-Range"] == nil)
    let earlier = try plan(.earlierRange)
    #expect(earlier.head?["Content-Range"] == "bytes 1904-6999/10000")
    #expect(earlier.steps.last == .content(1904..<7000, version: 1))
    let empty = try plan(.empty206)
    #expect(empty.head?["Content-Length"] == "0")
    #expect(empty.bodyByteCount == 0)
    let multipart = try plan(.multipart)
    #expect(multipart.head?["Content-Length"] == String(multipart.bodyByteCount))
    #expect(multipart.head?["Content-Type"]?.hasPrefix("multipart/byteranges") == true)
  }

  @Test(
    "A fault of ranges does not happen, and does not count, without a range",
    arguments: [
      Fault.ignoreRange, .wrongContentRange, .missingContentRange, .earlierRange, .empty206,
      .multipart,
    ])
  func rangeFaultsNeedRange(fault: Fault) throws {
    let plan = try plan(fault, fields: [:])
    #expect(plan.fault == nil)
    #expect(plan.bodyByteCount == 10_000)
  }

  @Test("A cut body ends at its place, and never as a whole one")
  func cutBodies() throws {
    let head = ResponsePlan.Step.content(6000..<6500, version: 1)
    #expect(try plan(.truncate).steps.suffix(2) == [head, .close])
    #expect(try plan(.reset).steps.suffix(2) == [head, .reset])
    #expect(
      try plan(.truncate, ["fault-at": "1"]).steps.suffix(2)
        == [.content(6000..<6001, version: 1), .close])
    #expect(
      try plan(.shortBody).steps.suffix(2) == [.content(6000..<6999, version: 1), .close])
    #expect(try plan(.truncate, ["fault-at": "0"]).steps.count == 2)
    #expect(try plan(.truncate, ["fault-at": "9g"]).bodyByteCount == 1000)
    for fault in [Fault.truncate, .reset, .shortBody] {
      let chunked = try plan(fault, ["chunked": "1", "fault-at": "1m"])
      #expect(!chunked.steps.contains(.lastChunk))
      #expect(!chunked.isWhole)
    }
  }

  @Test("A stall is for ever or for so long, and goes on then")
  func stalls() throws {
    let head = ResponsePlan.Step.content(6000..<6010, version: 1)
    let tail = ResponsePlan.Step.content(6010..<7000, version: 1)
    #expect(try plan(.stall, ["fault-at": "10"]).steps.suffix(3) == [head, .stall, tail])
    #expect(
      try plan(.stall, ["fault-at": "10", "stall-seconds": "2"]).steps.suffix(3)
        == [head, .wait(milliseconds: 2000), tail])
    #expect(try plan(.stallHead).steps.first == .stall)
  }

  @Test("Replaced responses: status, redirect, loop, HTML")
  func replacedResponses() throws {
    let status = try plan(.status, ["status": "503", "retry-after": "7"])
    #expect(status.head?.status == 503)
    #expect(status.head?["Retry-After"] == "7")
    let redirect = try plan(.redirect, ["redirect": "/b", "redirect-status": "308"])
    #expect(redirect.head?.status == 308)
    #expect(redirect.head?["Location"] == "/b")
    #expect(try plan(.redirectLoop).head?["Location"] == "/data/a?x")
    #expect(try plan(.html200).head?["Content-Type"]?.hasPrefix("text/html") == true)
    #expect(try plan(.status, ["status": "204"]).head?["Content-Length"] == nil)
  }

  @Test("Framing faults")
  func framingFaults() throws {
    let extra = try plan(.extraBytes)
    #expect(extra.head?["Content-Length"] == "1000")
    guard case .raw = extra.steps.last else {
      Issue.record("no bytes after the body")
      return
    }
    let both = try plan(.lengthAndChunked)
    #expect(both.head?["Content-Length"] == "1000")
    #expect(both.head?["Transfer-Encoding"] == "chunked")
    #expect(try plan(.gzip).head?["Content-Encoding"] == "gzip")
    #expect(try plan(.headerBomb).head?.bytes.count ?? 0 > 2 << 20)
    let silent = try plan(.silentClose)
    #expect(silent.closesConnection && silent.isWhole)
    #expect(silent.head?["Connection"] == nil)
  }

  @Test("The change of a file comes with the second request, or with the one asked for")
  func etagChange() throws {
    func tag(_ number: Int64, _ values: [String: String] = [:]) throws -> String? {
      try plan(.etagChange, values, context: .init(requestNumber: number)).head?["ETag"]
    }
    #expect(try tag(1) == "\"1-2710-v1\"")
    #expect(try tag(2) == "\"1-2710-v2\"")
    #expect(try tag(2, ["fault-from": "3"]) == "\"1-2710-v1\"")
  }

  @Test("A fault ends with its count and begins with its first request")
  func counts() throws {
    let values = ["fault-count": "2", "fault-from": "3"]
    #expect(try plan(.truncate, values, context: .init(requestNumber: 2)).fault == nil)
    #expect(try plan(.truncate, values, context: .init(requestNumber: 3)).fault == .truncate)
    let third = PlanMaker.Context(requestNumber: 9, earlierFaults: 2)
    #expect(try plan(.truncate, values, context: third).fault == nil)
  }

  @Test(
    "A fault of a range of bytes concerns requests that touch it",
    arguments: [("0-5999", false), ("0-6000", true), ("6999-6999", true), ("7000-9000", false)])
  func faultRange(text: String, happens: Bool) throws {
    #expect(try (plan(.truncate, ["fault-range": text]).fault != nil) == happens)
  }

  @Test("HEAD and 304 cannot have a fault of a body", arguments: [Fault.truncate, .stall, .reset])
  func bodyFaultsNeedBody(fault: Fault) throws {
    #expect(try plan(fault, method: "HEAD").fault == nil)
    #expect(try plan(fault, fields: ["if-none-match": "*"]).fault == nil)
  }
}
