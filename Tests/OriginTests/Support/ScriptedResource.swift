import OriginContent

/// A resource of 10,000 bytes under a script, with planned responses and without a socket.
struct ScriptedResource {
  static let seed: UInt64 = 7
  private var rules = RuleSet()

  init(_ script: String) throws {
    for command in try CommandParser.commands(json: Array(script.utf8)) { rules.apply(command) }
  }

  /// The plan of the next request; without a matching rule, that of the parameters alone.
  mutating func plan(
    _ method: String = "GET", _ target: String = "/data/a", range: String? = nil,
    fields: [String: String] = [:], isReused: Bool = false, now: Int64 = 1_000_000_000
  ) throws -> ResponsePlan {
    var fields = fields
    fields["host"] = "origin.test:8080"
    fields["range"] = range.map { "bytes=\($0)" }
    let request = try RequestHead(method: method, target: target, fields: fields)
    var values = rules.values(path: request.path, query: request.query)
    let choice = rules.script.choose(request, completeLength: 10_000, isReused: isReused)
    if let choice { values = choice.rule.values(over: values) }
    let parameters = try ResponseParameters(values: values)
    let planned = PlanMaker(
      request: request, parameters: parameters,
      resource: .generated(length: 10_000, seed: Self.seed), context: .init(now: now)
    ).plan()
    guard let choice else { return planned }
    return ScriptPlanner(
      choice, request: request, planned: planned, completeLength: 10_000,
      version: parameters.version, now: now
    ).plan()
  }

  /// The texts of a plan without content, waits or heads.
  mutating func text(
    _ target: String = "/data/a", range: String? = nil, fields: [String: String] = [:]
  ) throws -> String {
    guard case .raw(let bytes) = try plan("GET", target, range: range, fields: fields).steps.first
    else { return "" }
    return String(decoding: bytes, as: UTF8.self)
  }
}
