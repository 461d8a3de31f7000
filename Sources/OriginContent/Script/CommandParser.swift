/// Reads the commands of a script or a control message.
package enum CommandParser {
  package typealias CommandError = RuleSet.CommandError

  /// Reads commands from JSON: one object, or an array of them; docs/ORIGIN.md describes them.
  ///
  /// An unknown name or an invalid value is an error that names its place: otherwise a misspelt
  /// fault would pass as a test without faults.
  package static func commands(json: [UInt8]) throws(CommandError) -> [RuleSet.Command] {
    let value = try JSONValue(parsing: json)
    guard case .list(let values) = value else {
      return [try command(JSONReader(value: value, place: "", isCommand: true))]
    }
    var commands: [RuleSet.Command] = []
    for (index, value) in values.enumerated() {
      let reader = JSONReader(value: value, place: "rule \(index + 1)", isCommand: true)
      commands.append(try command(reader))
    }
    return commands
  }

  private static func command(_ reader: JSONReader) throws(CommandError) -> RuleSet.Command {
    let members = try reader.object(allowing: [
      "match", "parameters", "name", "actions", "clear", "seed", "remove",
    ])
    if members.count == 1, let member = members.first {
      switch member.key {
      case "clear":
        guard try member.value.flag() else { throw member.value.error(expected: "true") }
        return .clear
      case "seed": return .seed(UInt64(try member.value.number()))
      case "remove": return .remove(try member.value.text())
      default: break
      }
    }
    for name in ["clear", "seed", "remove"] where members[name] != nil {
      throw reader.error("\"\(name)\" must stand alone")
    }
    guard let match = members["match"] else { throw reader.error("a rule needs \"match\"") }
    let parameters = try members["parameters"].map(Self.parameters)
    if case .text(let pattern) = match.value, members["name"] == nil, members["actions"] == nil {
      guard let parameters else {
        throw reader.error("a rule needs \"parameters\" or \"actions\"")
      }
      return .set(RuleSet.Rule(match: GlobPattern(pattern), parameters: parameters))
    }
    guard parameters != nil || members["actions"] != nil else {
      throw reader.error("a rule needs \"parameters\" or \"actions\"")
    }
    return .script(
      ScriptRule(
        name: try members["name"]?.text(),
        match: try MatchParser.match(match), parameters: parameters ?? [:],
        actions: try members["actions"].map(ActionParser.actions) ?? [
          .head(HeadChange()), .body(nil),
        ]))
  }

  private static func parameters(_ reader: JSONReader) throws(CommandError) -> [String: String?] {
    var texts: [String: String?] = [:]
    for (name, value) in try reader.anyObject() {
      guard ResponseParameters.names.contains(name) else {
        throw reader.error("unknown parameter '\(name)'")
      }
      texts.updateValue(try parameter(value), forKey: name)
    }
    var present = texts.compactMapValues { $0 }
    // Another rule may set the target.
    if present["fault"] == Fault.redirect.rawValue, present["redirect"] == nil {
      present["redirect"] = "/"
    }
    do {
      _ = try ResponseParameters(values: present)
    } catch {
      throw reader.error(error.description)
    }
    return texts
  }

  /// A JSON scalar as the text of a query; nil for null.
  private static func parameter(_ reader: JSONReader) throws(CommandError) -> String? {
    switch reader.value {
    case .null: nil
    case .flag(let flag): flag ? "1" : "0"
    case .integer(let number): String(number)
    case .fraction(let number): String(number)
    case .text(let text): text
    case .list, .object: throw reader.error(expected: "a string, a number, a Boolean or null")
    }
  }
}
