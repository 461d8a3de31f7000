/// Reads the conditions of a script rule.
struct MatchParser {
  typealias CommandError = RuleSet.CommandError

  /// Reads a pattern of paths, or an object of conditions.
  static func match(_ reader: JSONReader) throws(CommandError) -> RequestMatch {
    var match = RequestMatch()
    if case .text(let pattern) = reader.value {
      match.path = GlobPattern(pattern)
      return match
    }
    let members = try reader.object(allowing: [
      "path", "method", "range", "fields", "reused", "requests", "times", "probability",
    ])
    if let path = members["path"] { match.path = GlobPattern(try path.text()) }
    if let method = members["method"] { match.methods = try method.texts() }
    if let range = members["range"] { match.range = try self.range(range) }
    if let fields = members["fields"] { match.fields = try self.fields(fields) }
    if let reused = members["reused"] { match.isReused = try reused.flag() }
    if let requests = members["requests"] { try read(requests, into: &match) }
    if let times = members["times"] { match.times = try times.number(from: 1) }
    if let probability = members["probability"] {
      match.probability = try probability.probability()
    }
    return match
  }

  private static func range(
    _ reader: JSONReader
  ) throws(CommandError) -> RequestMatch.RangeCondition {
    switch reader.value {
    case .flag(let isPresent): return isPresent ? .present : .absent
    case .text(let text):
      guard let range = ByteText.range(text) else { break }
      return .touches(range)
    default: break
    }
    throw reader.error(expected: "true, false or \"FIRST-LAST\"")
  }

  private static func fields(
    _ reader: JSONReader
  ) throws(CommandError) -> [String: GlobPattern?] {
    var fields: [String: GlobPattern?] = [:]
    for (name, value) in try reader.anyObject() {
      let pattern = value.value == .null ? nil : GlobPattern(try value.text())
      fields.updateValue(pattern, forKey: name.lowercased())
    }
    return fields
  }

  /// One number, or a first, a last and a step.
  private static func read(
    _ reader: JSONReader, into match: inout RequestMatch
  ) throws(CommandError) {
    if case .integer = reader.value {
      match.from = try reader.number(from: 1)
      match.to = match.from
      return
    }
    guard case .object = reader.value else {
      throw reader.error(expected: "a number from 1, or an object of from, to, every")
    }
    let members = try reader.object(allowing: ["from", "to", "every"])
    if let from = members["from"] { match.from = try from.number(from: 1) }
    if let to = members["to"] { match.to = try to.number(from: match.from) }
    if let every = members["every"] { match.every = try every.number(from: 1) }
  }
}
