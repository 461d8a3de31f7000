import OriginContent
import Testing

struct UploadPlanTests {
  private static let body = ["content-length": "1000"]
  private static let asking = ["content-length": "1000", "expect": "100-continue"]
  private static let permission = ResponsePlan.Step.interim(ResponseHead(status: 100))

  /// The plan of an upload of 1000 bytes.
  private func plan(
    _ values: [String: String] = [:], method: String = "PUT",
    fields: [String: String] = Self.body, context: PlanMaker.Context = .init()
  ) throws -> ResponsePlan {
    let maker = PlanMaker(
      request: try RequestHead(method: method, target: "/data/a", fields: fields),
      parameters: try ResponseParameters(values: values),
      resource: .generated(length: 10, seed: 1), context: context)
    return maker.plan()
  }

  /// The head and body of the response to a received upload.
  private func answer(
    _ plan: ResponsePlan, to body: [UInt8]
  ) throws -> (head: ResponseHead, body: [UInt8]) {
    var received = ReceivedBody()
    body.withUnsafeBytes { received.append($0, keeping: plan.keptBodyByteCount) }
    guard case .uploadAnswer(let answer) = plan.steps.last,
      case .head(let head) = answer.steps(for: received).first,
      case .text(let text) = answer.steps(for: received).last
    else { throw NoAnswer() }
    return (head, text)
  }

  private struct NoAnswer: Error {}

  @Test("An upload is read to its end and answered with what was received")
  func readsAndAnswers() throws {
    for (method, status) in [("PUT", 201), ("POST", 200)] {
      let plan = try plan(method: method)
      #expect(plan.steps.first == .receiveBody(limit: nil))
      #expect(plan.steps.count == 2)
      #expect(!plan.closesConnection)
      #expect(plan.keptBodyByteCount == 0)
      let (head, body) = try answer(plan, to: Array("foobar".utf8))
      #expect(head.status == status)
      #expect(head["Content-Length"] == String(body.count))
      // The published test vector of FNV-1a for "foobar".
      let text = #"{"bytes": 6, "fnv": "0x85944171f73967e8"}"# + "\n"
      #expect(String(decoding: body, as: UTF8.self) == text)
    }
  }

  @Test("A body that comes in pieces has the hash of the whole")
  func hashesPieces() {
    let bytes = OriginContent.bytes(seed: 1, range: 0..<1000)
    var whole = ReceivedBody()
    bytes.withUnsafeBytes { whole.append($0, keeping: 10) }
    var pieces = ReceivedBody()
    for start in stride(from: 0, to: 1000, by: 7) {
      bytes[start..<min(start + 7, 1000)].withUnsafeBytes { pieces.append($0, keeping: 10) }
    }
    #expect(pieces == whole)
    #expect(pieces.kept == Array(bytes[..<10]))
    #expect(pieces.byteCount == 1000)
  }

  @Test("A client that asks is let send, once, before the body is read")
  func permitsBody() throws {
    #expect(
      try plan(fields: Self.asking).steps.prefix(2) == [
        Self.permission, .receiveBody(limit: nil),
      ])
    let stall = try plan(["fault": "upload-stall", "fault-at": "0"], fields: Self.asking)
    #expect(stall.steps.prefix(3) == [.stall, Self.permission, .receiveBody(limit: nil)])
  }

  @Test("An echo is the body itself up to its limit, and 413 beyond")
  func echoes() throws {
    let plan = try plan(["echo": "yes"])
    let bytes = OriginContent.bytes(seed: 1, range: 0..<Int64(UploadAnswer.echoLimit))
    let (head, body) = try answer(plan, to: bytes)
    #expect(head.status == 201)
    #expect(head["Content-Type"] == "application/octet-stream")
    #expect(body == bytes)
    let tooLong = try answer(plan, to: bytes + [0])
    #expect(tooLong.head.status == 413)
    #expect(tooLong.head["Content-Length"] == String(tooLong.body.count))
  }

  @Test("A reset or a stall comes after so many bytes of the body, half of it by default")
  func cutUploads() throws {
    let reset = try plan(["fault": "upload-reset"])
    #expect(reset.steps == [.receiveBody(limit: 500), .reset])
    #expect(reset.fault == .uploadReset)
    #expect(!reset.isWhole)
    #expect(try plan(["fault": "upload-reset", "fault-at": "0"]).steps == [.reset])
    #expect(
      try plan(["fault": "upload-reset", "fault-at": "1"]).steps
        == [.receiveBody(limit: 1), .reset])
    let stall = try plan(["fault": "upload-stall", "fault-at": "7", "stall-seconds": "2"])
    #expect(
      stall.steps.prefix(3) == [
        .receiveBody(limit: 7), .wait(milliseconds: 2000), .receiveBody(limit: nil),
      ])
    #expect(try answer(stall, to: []).head.status == 201)
    let chunked = ["transfer-encoding": "chunked"]
    #expect(
      try plan(["fault": "upload-reset"], fields: chunked).steps
        == [.receiveBody(limit: 64 << 10), .reset])
  }

  @Test("An early response comes before the end of the body, and the connection ends")
  func earlyResponse() throws {
    let early = try plan(["fault": "upload-early-response", "fault-at": "7"])
    #expect(early.steps.first == .receiveBody(limit: 7))
    #expect(early.head?.status == 413)
    #expect(early.head?["Connection"] == "close")
    #expect(early.closesConnection)
    #expect(!early.drainsUnreadBody)
    let values = ["fault": "upload-early-response", "fault-at": "0", "status": "507"]
    let immediate = try plan(values, fields: Self.asking)
    #expect(immediate.head?.status == 507)
    #expect(!immediate.steps.contains(Self.permission))
  }

  @Test(
    "The faults of uploads respect their counts, and need a body",
    arguments: [Fault.uploadReset, .uploadStall, .uploadEarlyResponse])
  func faultCounts(fault: Fault) throws {
    let values = ["fault": fault.rawValue, "fault-count": "1", "fault-from": "2"]
    #expect(try plan(values).fault == nil)
    #expect(try plan(values, context: .init(requestNumber: 2)).fault == fault)
    let third = PlanMaker.Context(requestNumber: 3, earlierFaults: 1)
    #expect(try plan(values, context: third).fault == nil)
    #expect(try plan(["fault": fault.rawValue], fields: ["content-length": "0"]).fault == nil)
    #expect(try plan(["fault": fault.rawValue], method: "GET", fields: [:]).fault == nil)
    let notModified = ["if-none-match": "*"]
    #expect(try plan(["fault": fault.rawValue], method: "GET", fields: notModified).fault == nil)
  }

  @Test("The faults of a resource's bytes do not happen to an upload", arguments: Fault.allCases)
  func otherFaults(fault: Fault) throws {
    let happening: Set<Fault> = [
      .uploadReset, .uploadStall, .uploadEarlyResponse, .stallHead, .status, .redirect,
      .redirectLoop, .html200, .headerBomb, .silentClose,
    ]
    let plan = try plan(
      ["fault": fault.rawValue, "redirect": "/b"], context: .init(requestNumber: 2))
    #expect(plan.fault == (happening.contains(fault) ? fault : nil))
  }

  @Test(
    "A refused or redirected upload is read before the response, if it does not take too long",
    arguments: [
      ["status": "503"], ["redirect": "/b"], ["auth": "u:p"], ["require-cookie": "a=b"],
      ["status": "204"],
    ])
  func refusesAfterBody(values: [String: String]) throws {
    let small = try plan(values)
    #expect(small.steps.first == .receiveBody(limit: 64 << 20))
    #expect(!small.closesConnection)
    #expect(small.head?.status ?? 0 > 201)
    let huge = try plan(values, fields: ["content-length": "67108865"])
    #expect(huge.closesConnection)
    #expect(huge.head?["Connection"] == "close")
    #expect(try plan(values, fields: [:]).steps.allSatisfy { $0 != .receiveBody(limit: 64 << 20) })
  }

  @Test(
    "A client that asks gets the refusal instead of the permission",
    arguments: [["status": "503"], ["redirect": "/b"], ["auth": "u:p"], ["require-cookie": "a=b"]])
  func refusesInsteadOfPermission(values: [String: String]) throws {
    let plan = try plan(values, fields: Self.asking)
    guard case .head(let head) = plan.steps.first else {
      Issue.record("the head is not the first that is sent")
      return
    }
    #expect(head["Connection"] == "close")
    #expect(plan.closesConnection)
  }

  @Test("Late authentication refuses after the whole body, whether or not the client asks")
  func lateAuthentication() throws {
    let values = ["auth": "u:p", "auth-mode": "late"]
    let asking = try plan(values, fields: Self.asking)
    #expect(asking.steps.prefix(2) == [Self.permission, .receiveBody(limit: nil)])
    #expect(asking.head?.status == 401)
    #expect(!asking.closesConnection)
    #expect(try plan(values).steps.first == .receiveBody(limit: nil))
  }

  @Test("Latency comes before the body is read, other delays before the head")
  func delays() throws {
    let plan = try plan(["latency": "5", "fault": "stall-head", "interim": "103"])
    #expect(
      plan.steps.prefix(3) == [.wait(milliseconds: 5), .receiveBody(limit: nil), .stall])
    guard case .interim(let head) = plan.steps[3] else {
      Issue.record("no interim response before the answer")
      return
    }
    #expect(head.status == 103)
  }

  @Test("The answer to an upload sets cookies too, and the rate is that asked for")
  func answerFields() throws {
    let plan = try plan(["set-cookie": "k=v", "upload-rate": "10k"])
    #expect(try answer(plan, to: []).head["Set-Cookie"] == "k=v; Path=/")
    #expect(plan.uploadRate == 10_240)
    #expect(try self.plan(["status": "503", "upload-rate": "1k"]).uploadRate == 1024)
  }

  @Test("A body whose end cannot be known is refused unread")
  func unknownFraming() throws {
    let plan = try plan(fields: ["content-length": "x"])
    #expect(plan.head?.status == 400)
    #expect(plan.closesConnection)
    #expect(plan.head?["Connection"] == "close")
  }
}
