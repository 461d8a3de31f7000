import FoundationEssentials

/// The rules that set parameters for paths while the origin runs; they override the query.
public struct RuleSet: Equatable, Sendable {
  /// Parameters for the paths that fit a pattern.
  ///
  /// A parameter whose value is nil is taken back: the query and older rules then do not set it
  /// either.
  public struct Rule: Equatable, Sendable {
    public let match: GlobPattern
    public fileprivate(set) var parameters: [String: String?]

    public init(match: GlobPattern, parameters: [String: String?]) {
      self.match = match
      self.parameters = parameters
    }
  }

  /// One thing that a script or the control resource asks for.
  public enum Command: Equatable, Sendable {
    case set(Rule)
    case clear
  }

  /// Why a script or a control message is refused as a whole.
  public struct CommandError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
  }

  /// The rules, oldest first; no two have the same pattern.
  public private(set) var rules: [Rule] = []

  public init() {}

  /// Carries out a command.
  ///
  /// A rule with the pattern of an older one is merged with it and becomes the newest.
  public mutating func apply(_ command: Command) {
    switch command {
    case .clear: rules = []
    case .set(var rule):
      if let index = rules.firstIndex(where: { $0.match == rule.match }) {
        let older = rules.remove(at: index)
        rule.parameters = older.parameters.merging(rule.parameters) { $1 }
      }
      rules.append(rule)
    }
  }

  /// The parameters by name that hold for a request: for each, the newest matching rule that names
  /// it decides, else the query.
  public func values(path: String, query: [String: String]) -> [String: String] {
    var values = query
    for rule in rules where rule.match.matches(path) {
      // Subscript assignment of nil removes.
      for (name, value) in rule.parameters { values[name] = value }
    }
    return values
  }

  /// Reads commands from JSON: one object, or an array of them.
  ///
  /// An object is `{"match": GLOB, "parameters": {NAME: VALUE…}}` or `{"clear": true}`. A value is
  /// a string, a number, a Boolean or null. Unknown names and bad values are errors: a misspelt
  /// fault must not pass as a test without faults.
  public static func commands(json: [UInt8]) throws(CommandError) -> [Command] {
    let data = Data(json)
    let isArray = json.first { $0 > 0x20 } == UInt8(ascii: "[")
    let messages: [Message]
    do {
      let decoder = JSONDecoder()
      messages =
        isArray
        ? try decoder.decode([Message].self, from: data)
        : [try decoder.decode(Message.self, from: data)]
    } catch {
      throw CommandError(description: "not the JSON of a rule: \(error)")
    }
    var commands: [Command] = []
    for message in messages { commands.append(try message.command()) }
    return commands
  }

  private struct Message: Decodable {
    var match: String?
    var parameters: [String: Value]?
    var clear: Bool?

    func command() throws(CommandError) -> Command {
      if let clear {
        guard clear, match == nil, parameters == nil else {
          throw CommandError(description: #""clear" must be true and stand alone"#)
        }
        return .clear
      }
      guard let match, let parameters else {
        throw CommandError(description: #"a rule needs "match" and "parameters", or "clear""#)
      }
      let texts = parameters.mapValues(\.text)
      for name in texts.keys.sorted() where !ResponseParameters.names.contains(name) {
        throw CommandError(description: "unknown parameter '\(name)'")
      }
      do {
        var present = texts.compactMapValues { $0 }
        // The target may come from another rule.
        if present["fault"] == Fault.redirect.rawValue, present["redirect"] == nil {
          present["redirect"] = "/"
        }
        _ = try ResponseParameters(values: present)
      } catch {
        throw CommandError(description: error.description)
      }
      return .set(Rule(match: GlobPattern(match), parameters: texts))
    }
  }

  /// A JSON scalar as the text that a query would have for it.
  private struct Value: Decodable {
    let text: String?

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        text = nil
      } else if let flag = try? container.decode(Bool.self) {
        text = flag ? "1" : "0"
      } else if let number = try? container.decode(Int64.self) {
        text = String(number)
      } else if let number = try? container.decode(Double.self) {
        text = String(number)
      } else {
        text = try container.decode(String.self)
      }
    }
  }
}
