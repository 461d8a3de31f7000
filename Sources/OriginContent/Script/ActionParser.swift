import FoundationEssentials

/// Reads the actions of a rule.
///
/// An action is an object with one member for its verb, or only the name of a verb that needs no
/// arguments.
struct ActionParser {
  typealias CommandError = RuleSet.CommandError

  /// The verbs, each with the members that may accompany it.
  private static let verbs: [String: Set<String>] = [
    "head": [], "body": [], "text": [], "hex": [], "base64": [], "content": ["version"],
    "delay": [], "rate": [], "read": [], "choose": [], "repeat": ["actions"],
  ]

  /// The verbs that need no members.
  private static let bare: [String: ScriptAction] = [
    "head": .head(HeadChange()), "body": .body(nil), "content": wholeContent, "read": .read(nil),
    "stall": .stall, "close": .close, "reset": .reset,
  ]

  private static let wholeContent = ScriptAction.content(
    first: .variable(.first), last: .variable(.last), version: nil)

  /// Reads a sequence; only the last action may end a response.
  static func actions(_ reader: JSONReader) throws(CommandError) -> [ScriptAction] {
    var actions: [ScriptAction] = []
    for element in try reader.list() {
      if let last = actions.last, last.isEnd {
        throw element.error("nothing can come after \"\(last)\"")
      }
      actions.append(try action(element))
    }
    return actions
  }

  private static func action(_ reader: JSONReader) throws(CommandError) -> ScriptAction {
    if case .text(let name) = reader.value {
      guard let action = bare[name] else {
        throw reader.error(
          "unknown action '\(name)', allowed without a value: "
            + bare.keys.sorted().joined(separator: ", "))
      }
      return action
    }
    let members = try reader.anyObject()
    let names = members.keys.filter { verbs[$0] != nil }
    guard names.count == 1, let verb = names.first, let argument = members[verb] else {
      throw reader.error(
        "an action needs exactly one of " + verbs.keys.sorted().joined(separator: ", "))
    }
    _ = try reader.object(allowing: (verbs[verb] ?? []).union([verb]))
    switch verb {
    case "head": return .head(try headChange(argument))
    case "body": return .body(try argument.expression())
    case "text": return .text(try argument.template())
    case "hex", "base64": return .bytes(try bytes(argument, isHexadecimal: verb == "hex"))
    case "content": return try content(argument, version: members["version"])
    case "delay": return .delay(try argument.expression())
    case "rate":
      return .rate(argument.value == .null ? nil : try argument.expression())
    case "read": return .read(try argument.expression())
    case "choose":
      var alternatives: [[ScriptAction]] = []
      for element in try argument.list() { alternatives.append(try actions(element)) }
      guard !alternatives.isEmpty else { throw argument.error(expected: "an alternative") }
      return .choose(alternatives)
    default:
      guard let body = members["actions"] else {
        throw reader.error("\"repeat\" needs \"actions\"")
      }
      let repeated = try actions(body)
      guard !repeated.isEmpty else { throw body.error(expected: "an action") }
      return .repetition(try argument.expression(), repeated)
    }
  }

  private static func headChange(_ reader: JSONReader) throws(CommandError) -> HeadChange {
    let members = try reader.object(allowing: ["status", "reason", "set", "add", "cut"])
    var change = HeadChange()
    if let status = members["status"] { change.status = try status.expression() }
    if let reason = members["reason"] { change.reason = try reason.template() }
    if let fields = try members["set"]?.anyObject() {
      for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
        let template = value.value == .null ? nil : try value.template()
        change.fields.append(HeadChange.Field(name: name, value: template))
      }
    }
    if let lines = members["add"] {
      for line in try lines.list() { change.lines.append(try line.template()) }
    }
    if let cut = members["cut"] { change.cut = try cut.expression() }
    return change
  }

  /// The first and the last byte, both included.
  private static func content(
    _ reader: JSONReader, version: JSONReader?
  ) throws(CommandError) -> ScriptAction {
    let ends = try reader.list()
    guard ends.count == 2 else { throw reader.error(expected: "[FIRST, LAST]") }
    return .content(
      first: try ends[0].expression(), last: try ends[1].expression(),
      version: try version?.expression())
  }

  private static func bytes(
    _ reader: JSONReader, isHexadecimal: Bool
  ) throws(CommandError) -> [UInt8] {
    let text = try reader.text()
    let bytes =
      isHexadecimal ? ByteText.hexDecoded(text) : Data(base64Encoded: text).map { Array($0) }
    guard let bytes else {
      throw reader.error(
        expected: isHexadecimal ? "pairs of hexadecimal digits" : "base64 with its padding")
    }
    return bytes
  }
}
