import OriginContent
import Testing

struct AccessPlanTests {
  /// The plan of a request for a resource of 10 bytes.
  private func plan(
    _ values: [String: String], method: String = "GET", fields: [String: String] = [:]
  ) throws -> ResponsePlan {
    let maker = PlanMaker(
      request: try RequestHead(method: method, target: "/data/a", fields: fields),
      parameters: try ResponseParameters(values: values),
      resource: .generated(length: 10, seed: 1))
    return maker.plan()
  }

  @Test(
    "Only the right credentials open a resource",
    arguments: [
      // "Aladdin:open sesame", the example of RFC 7617 §2.
      ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", 200), ("basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", 200),
      ("Basic QWxhZGRpbjpvcGVuIHNlc2FtZT==", 401), ("Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==", 401),
      ("Basic", 401), (nil, 401),
    ] as [(String?, Int)], ["GET", "HEAD", "POST"])
  func credentials(_ example: (field: String?, status: Int), method: String) throws {
    let fields = example.field.map { ["authorization": $0] } ?? [:]
    let plan = try plan(["auth": "Aladdin:open sesame"], method: method, fields: fields)
    let answer = plan.steps.last.flatMap { step -> ResponseHead? in
      if case .uploadAnswer(let answer) = step { answer.head } else { nil }
    }
    let head = try #require(plan.head ?? answer)
    #expect(head.status == example.status)
    #expect(
      head["WWW-Authenticate"] == (example.status == 401 ? "Basic realm=\"origin\"" : nil))
  }

  @Test("A request without credentials does not use up a fault")
  func refusalIsNoFault() throws {
    #expect(try plan(["auth": "u:p", "status": "503"]).fault == nil)
  }

  @Test(
    "Only the right cookie among others opens a resource",
    arguments: [("x=1; k=v", 200), ("k=v", 200), ("k=vv", 403), ("xk=v", 403), (nil, 403)]
      as [(String?, Int)])
  func requiredCookie(field: String?, status: Int) throws {
    let fields = field.map { ["cookie": $0] } ?? [:]
    #expect(try plan(["require-cookie": "k=v"], fields: fields).head?.status == status)
  }

  @Test(
    "Any response sets the cookie",
    arguments: [
      [:], ["redirect": "/b"], ["status": "404"], ["status": "204"], ["require-cookie": "a=b"],
      ["auth": "u:p"], ["interim": "103"],
    ])
  func setsCookie(values: [String: String]) throws {
    let plan = try plan(values.merging(["set-cookie": "k=v"]) { $1 })
    #expect(plan.head?["Set-Cookie"] == "k=v; Path=/")
  }
}
