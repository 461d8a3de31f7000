import OriginContent
import Testing

struct ScriptParsingTests {
  @Test(
    "A mistake in a script is refused, and the message says where it is",
    arguments: [
      (#"{"match": "*", "actions": ["hed"]}"#, "actions[0]: unknown action 'hed'"),
      (#"{"match": "*", "actions": [{"delay": -1.5}]}"#, "actions[0].delay: expected a number"),
      (#"{"match": "*", "actions": [{"delay": "1 +"}]}"#, "actions[0].delay: the expression"),
      (#"{"match": "*", "actions": [{"body": "sise"}]}"#, "unknown name 'sise'"),
      (#"{"match": "*", "actions": [{"text": "{first"}]}"#, "a brace is not closed"),
      (#"{"match": "*", "actions": [{"text": "{lasst}"}]}"#, "actions[0].text: unknown name"),
      (#"{"match": "*", "actions": [{"hex": "0g"}]}"#, "pairs of hexadecimal digits"),
      (#"{"match": "*", "actions": [{"base64": "a"}]}"#, "base64"),
      (#"{"match": "*", "actions": [{"content": [1]}]}"#, "actions[0].content: expected [FIRST"),
      (#"{"match": "*", "actions": [{"delay": 1, "text": ""}]}"#, "exactly one of"),
      (#"{"match": "*", "actions": [{"delay": 1, "version": 2}]}"#, "unknown member 'version'"),
      (#"{"match": "*", "actions": ["reset", "body"]}"#, #"actions[1]: nothing can come after"#),
      (#"{"match": "*", "actions": [{"repeat": 3}]}"#, #""repeat" needs "actions""#),
      (#"{"match": "*", "actions": [{"repeat": 3, "actions": []}]}"#, "expected an action"),
      (#"{"match": "*", "actions": [{"choose": []}]}"#, "expected an alternative"),
      (#"{"match": "*", "actions": [{"choose": [["x"]]}]}"#, "actions[0].choose[0][0]: unknown"),
      (#"{"match": "*", "actions": [{"head": {"sett": {}}}]}"#, "unknown member 'sett'"),
      (#"{"match": "*", "actions": [{"head": {"set": {"A": 1}}}]}"#, "head.set.A: expected a str"),
      (#"{"match": {"pth": "*"}, "actions": []}"#, "match: unknown member 'pth'"),
      (#"{"match": {"range": "9-1"}, "actions": []}"#, "match.range: expected"),
      (#"{"match": {"requests": 0}, "actions": []}"#, "match.requests: expected a whole number"),
      (#"{"match": {"requests": {"from": 3, "to": 2}}, "actions": []}"#, "match.requests.to"),
      (#"{"match": {"probability": 1.1}, "actions": []}"#, "match.probability: expected"),
      (#"{"match": {"times": 0}, "actions": []}"#, "match.times: expected"),
      (#"{"match": {}}"#, #"a rule needs "parameters" or "actions""#),
      (#"{"match": {}, "parameters": {"falt": "reset"}}"#, "unknown parameter 'falt'"),
      (#"{"match": {}, "parameters": {"rate": [1]}}"#, "parameters.rate: expected a string"),
      (#"{"actions": []}"#, #"a rule needs "match""#),
      (#"{"seed": 1, "match": "*"}"#, #""seed" must stand alone"#),
      (#"[{"clear": true}, {"match": "*", "actions": [3]}]"#, "rule 2: actions[0]: expected"),
      (#"[{"match": "*", "actions": [{"delay": "((((((((((((((((((1"}]}]"#, "deeper than"),
    ])
  func errorsSayWhere(script: String, expected: String) {
    let error = #expect(throws: RuleSet.CommandError.self) {
      try CommandParser.commands(json: Array(script.utf8))
    }
    #expect(error?.description.contains(expected) == true, "\(error?.description ?? "no error")")
  }

  @Test("JSON that nests without end is refused, not followed")
  func deepNesting() {
    let script = String(repeating: "[", count: 100_000)
    #expect(throws: RuleSet.CommandError.self) {
      try CommandParser.commands(json: Array(script.utf8))
    }
  }

  @Test("A pattern with parameters alone stays a rule of parameters")
  func plainRules() throws {
    let commands = try CommandParser.commands(
      json: Array(#"{"match": "*", "parameters": {"latency": 5}}"#.utf8))
    #expect(commands == [.set(.init(match: GlobPattern("*"), parameters: ["latency": "5"]))])
  }

  @Test(
    "Expressions compute as expected",
    arguments: [
      ("first", "100"), ("last", "199"), ("asked", "100"), ("length", "10000"), ("size", "100"),
      ("version", "1"), ("request", "1"), ("now", "1000000000"), ("port", "8080"),
      ("1 + 2 * 3", "7"), ("(1 + 2) * 3", "9"), ("7 / 2", "3"), ("7 % 4", "3"), ("-2 + 1", "-1"),
      ("10 - 3 - 2", "5"), ("4k", "4096"), ("min(first, 3)", "3"), ("max(first, 3)", "100"),
      ("random(5, 5)", "5"), ("random(5, 1)", "5"), ("hex(255)", "ff"), ("first-1", "99"),
      ("date(784111777)", "Sun, 06 Nov 1994 08:49:37 GMT"), ("path", "/data/a"),
      ("method", "GET"), ("host", "origin.test:8080"), ("target", "/data/a?x=1"),
      ("field(X-Field)", "sent"), ("field(absent)", ""), ("etag", "\"7-2710-v1\""),
    ])
  func expressions(expression: String, expected: String) throws {
    let script = #"{"match": "*", "actions": [{"text": "<{\#(expression)}>{{}}"}]}"#
    var resource = try ScriptedResource(script)
    let text = try resource.text(
      "/data/a?x=1", range: "100-199", fields: ["x-field": "sent"])
    // `{{` and `}}` are one brace each.
    #expect(text == "<\(expected)>{}")
  }

  @Test(
    "Without a range the whole is asked for; a range beyond the end is as it was asked for",
    arguments: [
      (nil, "0 9999"), ("-100", "9900 9999"), ("9990-20000", "9990 9999"),
      ("20000-20099", "20000 20099"), ("1-2,5-9", "1 9"), ("30000-", "10000 9999"),
    ])
  func askedRanges(range: String?, expected: String) throws {
    var resource = try ScriptedResource(
      #"{"match": "*", "actions": [{"text": "{first} {last}"}]}"#)
    #expect(try resource.text(range: range) == expected)
  }

  @Test(
    "What cannot be computed is answered with 500 and the reason",
    arguments: [
      (#"{"delay": "1 / (first - 0)"}"#, "1 / 0 cannot be computed"),
      (#"{"text": "{9223372036854775807 + 1}"}"#, "cannot be computed"),
      (#"{"repeat": 1000000, "actions": [{"text": "x"}, {"text": "y"}]}"#, "actions"),
      (#"{"head": {"status": -1}}"#, "is not a status"),
    ])
  func runtimeErrors(action: String, expected: String) throws {
    var resource = try ScriptedResource(#"{"match": "*", "name": "r", "actions": [\#(action)]}"#)
    let plan = try resource.plan()
    #expect(plan.head?.status == 500)
    guard case .text(let bytes) = plan.steps.last else {
      Issue.record("no reason")
      return
    }
    let text = String(decoding: bytes, as: UTF8.self)
    #expect(text.hasPrefix("script rule 'r': ") && text.contains(expected), "\(text)")
  }
}
