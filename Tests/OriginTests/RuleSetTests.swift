import OriginContent
import Testing

struct RuleSetTests {
  @Test(
    "A pattern's star crosses slashes",
    arguments: [
      ("*", "/data/a/b.zip", true), ("*.zip", "/data/a/b.zip", true), ("*.zip", "/a.zip.x", false),
      ("/data/*", "/data/", true), ("/data/?", "/data/ab", false), ("*a*b*", "xxaxxbxx", true),
      ("*aab", "aaaab", true), ("", "", true), ("", "a", false), ("a**", "a", true),
    ])
  func globs(pattern: String, path: String, expected: Bool) {
    #expect(GlobPattern(pattern).matches(path) == expected)
  }

  @Test("For each parameter the newest matching rule decides, else the query")
  func newestRuleWins() throws {
    var rules = RuleSet()
    let script = """
      [{"match": "*", "parameters": {"latency": 50, "version": 2}},
       {"match": "*.zip", "parameters": {"version": "3", "chunked": true}},
       {"match": "*.iso", "parameters": {"version": 4}}]
      """
    for command in try CommandParser.commands(json: Array(script.utf8)) { rules.apply(command) }
    let values = rules.values(path: "/data/a.zip", query: ["latency": "1", "length": "9"])
    #expect(values == ["latency": "50", "version": "3", "chunked": "1", "length": "9"])
  }

  @Test("null takes back a parameter of the query and of older rules")
  func nullRemoves() throws {
    var rules = RuleSet()
    let script = #"{"match": "*", "parameters": {"fault": null}}"#
    for command in try CommandParser.commands(json: Array(script.utf8)) { rules.apply(command) }
    #expect(rules.values(path: "/data/a", query: ["fault": "stall"]).isEmpty)
  }

  @Test("A rule of the same pattern is merged with the older one and becomes the newest")
  func samePatternMerges() {
    var rules = RuleSet()
    rules.apply(.set(.init(match: GlobPattern("*"), parameters: ["rate": "1", "seed": "1"])))
    rules.apply(.set(.init(match: GlobPattern("/*"), parameters: ["rate": "2"])))
    rules.apply(.set(.init(match: GlobPattern("*"), parameters: ["rate": "3"])))
    #expect(rules.rules.count == 2)
    #expect(rules.values(path: "/a", query: [:]) == ["rate": "3", "seed": "1"])
    rules.apply(.clear)
    #expect(rules.rules.isEmpty)
  }

  @Test(
    "A message with any mistake is refused as a whole",
    arguments: [
      "", "{", "[1]", "{}", #"{"match": "*"}"#, #"{"clear": false}"#,
      #"{"match": "*", "parameters": {"falt": "stall"}}"#,
      #"{"match": "*", "parameters": {"fault": "stal"}}"#,
      #"{"match": "*", "parameters": {"length": -1}}"#,
      #"[{"clear": true}, {"match": "*", "parameters": {"rate": "0"}}]"#,
    ])
  func refusesMistakes(text: String) {
    #expect(throws: RuleSet.CommandError.self) {
      try CommandParser.commands(json: Array(text.utf8))
    }
  }

  @Test(
    "Rules know the parameters of uploads, access and form",
    arguments: [
      ("upload-rate", "1m"), ("echo", "yes"), ("auth", "u:p"), ("auth-mode", "late"),
      ("coding", "deflate"), ("multipart", "1"), ("interim", "103"), ("set-cookie", "a=b"),
      ("require-cookie", "a=b"), ("content-disposition", "inline"), ("fault", "upload-reset"),
      ("fault", "upload-stall"), ("fault", "upload-early-response"),
    ])
  func rulesKnowNames(name: String, value: String) throws {
    let script = #"{"match": "*", "parameters": {"\#(name)": "\#(value)"}}"#
    var rules = RuleSet()
    for command in try CommandParser.commands(json: Array(script.utf8)) { rules.apply(command) }
    let values = rules.values(path: "/data/a", query: [:])
    #expect(values == [name: value])
    #expect(try ResponseParameters(values: values) != ResponseParameters())
  }

  @Test(
    "The length of a resource is one that its form cannot overflow",
    arguments: [
      ("coding", "gzip"), ("multipart", "1"), ("fault", "wrong-content-range"),
      ("fault", "extra-bytes"),
    ])
  func formedLength(name: String, value: String) {
    #expect(throws: ResponseParameters.ValueError.self) {
      try ResponseParameters(values: [name: value, "length": "9223372036854775807"])
    }
  }

  @Test("Numbers take suffixes; a status or a redirect alone is a fault")
  func readsParameters() throws {
    let parameters = try ResponseParameters(values: [
      "length": "3m", "seed": "0xff", "rate": "10k", "fault-range": "1k-2k", "stall-seconds": "1.5",
      "X-Amz-Signature": "ignored",
    ])
    #expect(parameters.length == 3 << 20)
    #expect(parameters.seed == 255)
    #expect(parameters.rate == 10_240)
    #expect(parameters.faultRange == 1024..<2049)
    #expect(parameters.stallDuration == 1500)
    #expect(parameters.fault == nil)
    #expect(try ResponseParameters(values: ["status": "404"]).fault == .status)
    #expect(try ResponseParameters(values: ["redirect": "/x"]).fault == .redirect)
  }

  @Test(
    "A value that cannot be used is an error",
    arguments: [
      ("length", "1t"), ("length", "9000000000g"), ("seed", "x"), ("rate", "0"),
      ("ranges", "maybe"), ("fault-range", "9-1"), ("stall-seconds", "nan"), ("status", "99"),
      ("fault", "redirect"), ("upload-rate", "0"), ("echo", "loud"), ("auth", "nobody"),
      ("auth-mode", "never"), ("coding", "br"), ("multipart", "2"), ("interim", "101"),
      ("interim", "200"), ("set-cookie", "a"), ("set-cookie", "=b"), ("set-cookie", "a=b; c"),
      ("require-cookie", "a b=c"), ("content-disposition", "a\r\nX: y"),
      ("redirect", "/a\r\nX: y"), ("validators", "strong"),
    ])
  func refusesBadValues(name: String, value: String) {
    #expect(throws: ResponseParameters.ValueError.self) {
      try ResponseParameters(values: [name: value])
    }
  }
}
