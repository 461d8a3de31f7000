import OriginContent
import Testing

struct ScriptMatchTests {
  /// Whether a rule with this match answers a request.
  private func answers(
    _ match: String, _ method: String = "GET", _ target: String = "/data/a",
    range: String? = nil, fields: [String: String] = [:], isReused: Bool = false
  ) throws -> Bool {
    var resource = try ScriptedResource(#"{"match": \#(match), "actions": ["reset"]}"#)
    return try resource.plan(method, target, range: range, fields: fields, isReused: isReused)
      .ruleName != nil
  }

  @Test("Each condition is looked at")
  func conditions() throws {
    #expect(try answers("{}"))
    #expect(try answers(#""/data/*""#))
    #expect(try !answers(#"{"path": "/files/*"}"#))
    #expect(try answers(#"{"method": "HEAD"}"#, "HEAD"))
    #expect(try answers(#"{"method": ["PUT", "GET"]}"#))
    #expect(try !answers(#"{"method": ["PUT", "HEAD"]}"#))
    #expect(try answers(#"{"range": true}"#, range: "0-0"))
    #expect(try !answers(#"{"range": true}"#))
    #expect(try answers(#"{"range": false}"#))
    #expect(try answers(#"{"range": "100-199"}"#, range: "150-9000"))
    #expect(try answers(#"{"range": "100-199"}"#))
    #expect(try !answers(#"{"range": "100-199"}"#, range: "200-"))
    #expect(try answers(#"{"fields": {"If-Range": "*"}}"#, fields: ["if-range": "\"x\""]))
    #expect(try !answers(#"{"fields": {"If-Range": "*"}}"#))
    #expect(try !answers(#"{"fields": {"If-Range": "W/*"}}"#, fields: ["if-range": "\"x\""]))
    #expect(try answers(#"{"fields": {"If-Range": null}}"#))
    #expect(try !answers(#"{"fields": {"If-Range": null}}"#, fields: ["if-range": "\"x\""]))
    #expect(try answers(#"{"reused": true}"#, isReused: true))
    #expect(try !answers(#"{"reused": true}"#))
    #expect(try !answers(#"{"reused": false}"#, isReused: true))
  }

  /// The indices of the answered requests among ten, alternately with and without a range.
  private func answered(_ match: String, seed: Int = 0) throws -> [Int] {
    var resource = try ScriptedResource(
      #"[{"seed": \#(seed)}, {"match": \#(match), "actions": ["reset"]}]"#)
    var numbers: [Int] = []
    for number in 1...10
    where try resource.plan(range: number.isMultiple(of: 2) ? "0-0" : nil).ruleName != nil {
      numbers.append(number)
    }
    return numbers
  }

  @Test("Requests are counted among those that fit")
  func counts() throws {
    #expect(try answered(#"{"requests": 3}"#) == [3])
    #expect(try answered(#"{"requests": {"from": 9}}"#) == [9, 10])
    #expect(try answered(#"{"requests": {"from": 2, "to": 4}}"#) == [2, 3, 4])
    #expect(try answered(#"{"requests": {"from": 2, "every": 4}}"#) == [2, 6, 10])
    #expect(try answered(#"{"range": true, "requests": 2}"#) == [4])
    #expect(try answered(#"{"range": true, "requests": {"every": 2}, "times": 2}"#) == [2, 6])
    #expect(try answered(#"{"probability": 0}"#) == [])
  }

  @Test("Each resource has counts of its own, which a rule of the same name starts again")
  func countsPerResource() throws {
    var resource = try ScriptedResource(#"{"match": {"times": 1}, "name": "a", "actions": []}"#)
    #expect(try resource.plan("GET", "/data/a").ruleName == "a")
    #expect(try resource.plan("GET", "/data/a").ruleName == nil)
    #expect(try resource.plan("GET", "/data/a?x").ruleName == "a")
    var rules = RuleSet()
    let json = #"{"match": {"times": 1}, "name": "a", "actions": []}"#
    let request = try RequestHead(target: "/data/a")
    for _ in 0..<2 {
      for command in try CommandParser.commands(json: Array(json.utf8)) { rules.apply(command) }
      #expect(rules.script.choose(request, completeLength: 1, isReused: false)?.name == "a")
      #expect(rules.script.choose(request, completeLength: 1, isReused: false) == nil)
    }
    #expect(rules.script.rules.count == 1)
  }

  @Test("The newest rule that means a request answers it; the others count it")
  func newestAnswers() throws {
    var resource = try ScriptedResource(
      """
      [{"match": {}, "actions": []}, {"match": {"requests": 2}, "actions": []},
       {"match": {"requests": {"to": 1}}, "name": "named", "actions": []}]
      """)
    let names = try (1...3).map { _ in try resource.plan().ruleName }
    #expect(names == ["named", "rule 2", "rule 1"])
  }

  @Test("A rule is removed by its name, all of them by clear")
  func removal() throws {
    var rules = RuleSet()
    let json = """
      [{"match": {}, "name": "a", "actions": []}, {"match": {}, "name": "b", "actions": []},
       {"remove": "a"}, {"remove": "never there"}]
      """
    for command in try CommandParser.commands(json: Array(json.utf8)) { rules.apply(command) }
    #expect(rules.script.rules.map(\.name) == ["b"])
    rules.apply(.clear)
    #expect(rules.script == Script())
  }

  @Test("Random choices are the same for the same seed, and others for another")
  func determinism() throws {
    let match = #"{"probability": 0.5}"#
    let runs = try (0..<8).map { try answered(match, seed: $0) }
    #expect(try (0..<8).map { try answered(match, seed: $0) } == runs)
    #expect(Set(runs).count > 4)
    let script = """
      [{"seed": 3}, {"match": "*", "name": "r",
        "actions": [{"choose": [[{"text": "a"}], [{"text": "b"}]]}, {"text": "{random(1, 1k)}"}]}]
      """
    // Interleaved requests of other resources, and other rules, change nothing.
    var alone = try ScriptedResource(script)
    var among = try ScriptedResource(
      script.replacing("[{\"seed\"", with: "[{\"match\": \"/x\", \"actions\": []}, {\"seed\""))
    var texts: [String] = []
    for _ in 0..<20 {
      texts.append(try alone.text())
      #expect(try among.text("/data/other") != texts.last)
      #expect(try among.text() == texts.last)
    }
    #expect(Set(texts).count > 15)
    #expect(Set(texts.map { $0.prefix(1) }) == ["a", "b"])
  }

  @Test("A probability is what it says, over many requests")
  func probability() throws {
    var resource = try ScriptedResource(
      #"{"match": {"probability": 0.25}, "actions": []}"#)
    var count = 0
    for _ in 0..<4000 where try resource.plan().ruleName != nil { count += 1 }
    #expect((900...1100).contains(count))
  }
}
