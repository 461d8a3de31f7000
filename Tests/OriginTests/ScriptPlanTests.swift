import Glibc
import OriginContent
import Testing

struct ScriptPlanTests {
  /// The plan of a request for the bytes 6000–6999 under a rule with these actions.
  private func plan(
    _ actions: String, parameters: String = "{}", method: String = "GET",
    range: String? = "6000-6999", fields: [String: String] = [:]
  ) throws -> ResponsePlan {
    let script =
      #"{"match": "*", "name": "r", "parameters": \#(parameters), "#
      + #""actions": \#(actions)}"#
    var resource = try ScriptedResource(script)
    return try resource.plan(method, range: range, fields: fields)
  }

  /// The processor time that this thread has used.
  private var threadSeconds: Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  private func text(_ plan: ResponsePlan) -> String {
    String(decoding: plan.head?.bytes ?? [], as: UTF8.self)
  }

  @Test("Head and body make the planned response, whatever it is")
  func plannedResponse() throws {
    for parameters in [
      "{}", #"{"chunked": true}"#, #"{"fault": "reset"}"#, #"{"latency": 5, "interim": 103}"#,
      #"{"status": 404}"#, #"{"fault": "extra-bytes"}"#,
    ] {
      var plain = try ScriptedResource(#"{"match": "*", "parameters": \#(parameters)}"#)
      var expected = try plain.plan(range: "6000-6999")
      expected.ruleName = "r"
      #expect(try plan(#"["head", "body"]"#, parameters: parameters) == expected)
    }
  }

  @Test("A rule of parameters for certain requests needs no actions")
  func actionsByDefault() throws {
    var resource = try ScriptedResource(
      #"{"match": {"requests": 2}, "parameters": {"version": 2}}"#)
    #expect(try resource.plan().head?["ETag"] == "\"7-2710-v1\"")
    #expect(try resource.plan().head?["ETag"] == "\"7-2710-v2\"")
    #expect(try resource.plan().head?["ETag"] == "\"7-2710-v1\"")
  }

  @Test("A head is sent with its changes")
  func headChanges() throws {
    let change = """
      [{"head": {"status": 299, "reason": "Odd", "set": {"etag": "\\"other\\"",
        "Content-Length": null, "X-New": "{asked}"},
        "add": ["Content-Length: {asked - 1}", "X-Folded: a\\r\\n b", "no field"]}}]
      """
    let head = text(try plan(change))
    #expect(head.hasPrefix("HTTP/1.1 299 Odd\r\n"))
    #expect(head.contains("\r\netag: \"other\"\r\n"))
    #expect(!head.contains("7-2710-v1"))
    #expect(head.contains("\r\nX-New: 1000\r\n"))
    #expect(!head.contains("Content-Length: 1000"))
    #expect(head.hasSuffix("Content-Length: 999\r\nX-Folded: a\r\n b\r\nno field\r\n\r\n"))
  }

  @Test("A cut head is the beginning of the whole one")
  func cutHead() throws {
    let whole = try plan(#"["head"]"#)
    let cut = try plan(#"[{"head": {"cut": 20}}, "reset"]"#)
    #expect(cut.steps == [.raw(Array((whole.head?.bytes ?? []).prefix(20))), .reset])
    #expect(!cut.isWhole)
  }

  @Test("Pieces of a planned body follow each other; only the rest has its end")
  func bodyPieces() throws {
    let plan = try plan(
      #"["head", {"body": 10}, {"delay": 5}, {"body": "size - 10"}, {"delay": 6}, "body"]"#,
      parameters: #"{"chunked": true, "ranges": true}"#)
    #expect(
      plan.steps.dropFirst() == [
        .content(6000..<6010, version: 1), .wait(milliseconds: 5),
        .content(6010..<7000, version: 1), .wait(milliseconds: 6), .lastChunk,
      ])
  }

  @Test("Content is sent as it is, with the variables of the request, of any version")
  func content() throws {
    let plan = try plan(
      #"["content", {"content": ["first - 1", "last + 1"]}, {"content": [0, 0], "version": 2}]"#)
    #expect(
      plan.steps == [
        .rawContent(6000..<7000, version: 1), .rawContent(5999..<7001, version: 1),
        .rawContent(0..<1, version: 2),
      ])
  }

  @Test("Where nothing is, nothing is sent: numbers below 0 are 0")
  func numbersBelowZero() throws {
    let plan = try plan(
      #"["head", {"body": "size - 1"}, {"delay": -5}, {"content": [5, 3]}, {"repeat": -1, "#
        + #""actions": ["close"]}, {"content": [-5, 0]}]"#, method: "HEAD")
    #expect(plan.steps.dropFirst() == [.wait(milliseconds: 0), .rawContent(0..<1, version: 1)])
    #expect(!plan.closesConnection)
  }

  @Test("Bytes of all kinds go out in one piece, up to what lies between")
  func bytes() throws {
    let plan = try plan(
      #"[{"text": "a\u0000\rb"}, {"hex": "ff 00\n0A"}, {"base64": "AAE="}, {"rate": 1}, "stall"]"#)
    #expect(
      plan.steps == [
        .raw([0x61, 0, 0x0D, 0x62, 0xFF, 0, 0x0A, 0, 1]), .pace(bytesPerSecond: 1), .stall,
      ])
  }

  @Test("A repetition counts its rounds, also within another")
  func repetition() throws {
    let actions = """
      [{"repeat": 2, "actions": [{"text": "<{index}"},
        {"repeat": 2, "actions": [{"text": "{index}"}]}, {"text": "{index}>"}]}]
      """
    #expect(try plan(actions).steps == [.raw(Array("<0010><1011>".utf8))])
  }

  // The test measures the processor time of this thread, which other tests and a busy machine do
  // not affect. If each piece were copied with all previous ones, that would be 470 GB: most of a
  // minute.
  @Test("A header bomb of a long line costs what its bytes cost, not their square")
  func longLine() throws {
    let actions = #"[{"repeat": "300k", "actions": [{"text": "xxxxxxxxxx"}]}]"#
    let before = threadSeconds
    let steps = try plan(actions).steps
    let seconds = threadSeconds - before
    guard case .raw(let bytes) = steps.first else {
      Issue.record("no bytes")
      return
    }
    #expect(bytes.count == 3072_000)
    #expect(seconds < 10)
  }

  @Test("Close is an orderly end after what was sent; without it the connection goes on")
  func close() throws {
    #expect(try plan(#"["head", "body", "close"]"#).closesConnection)
    #expect(try !plan(#"["head", "body"]"#).closesConnection)
    #expect(
      try !plan(#"[{"text": "x"}]"#, parameters: #"{"fault": "silent-close"}"#).closesConnection)
    #expect(
      try plan(#"[{"text": "x"}]"#, fields: ["connection": "close"]).closesConnection)
    #expect(try !plan(#"[{"choose": [["reset"]]}, {"text": "never"}]"#).isWhole)
    #expect(try plan(#"[{"choose": [["reset"]]}, {"text": "never"}]"#).steps == [.reset])
  }

  @Test("A script that sends nothing planned has no fault of the parameters")
  func noFault() throws {
    let parameters = #"{"fault": "truncate"}"#
    #expect(try plan(#"[{"text": "x"}]"#, parameters: parameters).fault == nil)
    #expect(try plan(#"["head"]"#, parameters: parameters).fault == .truncate)
  }

  @Test("The latency comes first, whatever is sent")
  func latency() throws {
    let plan = try plan(#"[{"text": "x"}]"#, parameters: #"{"latency": 7}"#)
    #expect(plan.steps == [.wait(milliseconds: 7), .raw([0x78])])
  }

  @Test("The head of an upload reads its body and answers; reading lets a waiting client send")
  func uploads() throws {
    let fields = ["content-length": "100", "expect": "100-continue"]
    let interim = ResponsePlan.Step.interim(ResponseHead(status: 100))
    let whole = try plan(#"["head"]"#, method: "PUT", range: nil, fields: fields)
    #expect(whole.steps.prefix(2) == [interim, .receiveBody(limit: nil)])
    guard case .uploadAnswer = whole.steps.last else {
      Issue.record("no answer")
      return
    }
    let part = try plan(
      #"[{"read": 10}, {"delay": 1}, "read", {"text": "HTTP/1.1 507 Full\r\n\r\n"}, "close"]"#,
      method: "PUT", range: nil, fields: fields)
    #expect(
      part.steps.prefix(4) == [
        interim, .receiveBody(limit: 10), .wait(milliseconds: 1), .receiveBody(limit: nil),
      ])
    let refused = try plan(
      #"[{"text": "HTTP/1.1 507 Full\r\n\r\n"}, "close"]"#, method: "PUT", range: nil,
      fields: fields)
    #expect(refused.steps.count == 1)
  }

  @Test("HEAD can lie about the length, and sends no body")
  func lyingHead() throws {
    let plan = try plan(
      #"[{"head": {"set": {"Content-Length": "{length + 1}"}}}, "body"]"#, method: "HEAD",
      range: nil)
    #expect(plan.head?["Content-Length"] == "10001")
    #expect(plan.steps.count == 1)
  }

  @Test("The status of a head that was written by hand is known")
  func rawStatus() {
    #expect(ResponseHead.status(ofBytes: Array("HTTP/1.1 503 No\r\n".utf8)) == 503)
    #expect(ResponseHead.status(ofBytes: Array("HTTP/1.1 103 Hi\r\n".utf8)) == nil)
    #expect(ResponseHead.status(ofBytes: Array("HTTP/1.1 50".utf8)) == nil)
    #expect(ResponseHead.status(ofBytes: Array("garbage garbage".utf8)) == nil)
  }
}
