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
    /// A rule that says what is done, in the place of an older one of its name.
    case script(ScriptRule)
    /// What the random choices of script rules depend on.
    case seed(UInt64)
    /// The script rule of this name goes.
    case remove(String)
    /// All rules go, and what they counted.
    case clear
  }

  /// Why a script or a control message is refused as a whole.
  public struct CommandError: Error, Equatable, Sendable, CustomStringConvertible {
    public let description: String
  }

  /// The rules, oldest first; no two have the same pattern.
  public private(set) var rules: [Rule] = []

  /// The rules that say what is done, and what they have counted.
  public var script = Script()

  public init() {}

  /// Carries out a command.
  ///
  /// A rule with the pattern of an older one is merged with it and becomes the newest.
  public mutating func apply(_ command: Command) {
    switch command {
    case .clear:
      rules = []
      script = Script()
    case .script(let rule): script.add(rule)
    case .seed(let seed): script.seed = seed
    case .remove(let name): script.remove(name)
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

  /// Reads commands from JSON: one object, or an array of them; docs/ORIGIN.md describes them.
  ///
  /// Unknown names and bad values are errors, which say where: a misspelt fault must not pass as a
  /// test without faults.
  public static func commands(json: [UInt8]) throws(CommandError) -> [Command] {
    try CommandParser.commands(json: json)
  }
}
