/// The rules that set parameters for paths while the origin runs; they override the query.
package struct RuleSet: Equatable, Sendable {
  /// Parameters for the paths that match a pattern.
  ///
  /// A parameter whose value is nil is unset: the query and older rules then do not set it either.
  package struct Rule: Equatable, Sendable {
    package let match: GlobPattern
    package fileprivate(set) var parameters: [String: String?]

    package init(match: GlobPattern, parameters: [String: String?]) {
      self.match = match
      self.parameters = parameters
    }
  }

  /// One request of a script or a control message.
  package enum Command: Equatable, Sendable {
    case set(Rule)
    /// Adds a script rule, and replaces an older one of the same name.
    case script(ScriptRule)
    /// Sets the seed of the random choices of script rules.
    case seed(UInt64)
    /// Removes the script rule of this name.
    case remove(String)
    /// Removes all rules and their counts.
    case clear
  }

  /// Why a whole script or control message is refused.
  package struct CommandError: Error, Equatable, Sendable, CustomStringConvertible {
    package let description: String
  }

  /// The rules, oldest first; no two have the same pattern.
  package private(set) var rules: [Rule] = []

  /// The script rules and their counts.
  package var script = Script()

  package init() {}

  /// Executes a command.
  ///
  /// A rule with the pattern of an older one is merged with it and becomes the newest.
  package mutating func apply(_ command: Command) {
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

  /// The parameters of a request by name.
  ///
  /// For each parameter, the newest matching rule that has it decides, otherwise the query.
  package func values(path: String, query: [String: String]) -> [String: String] {
    var values = query
    for rule in rules where rule.match.matches(path) {
      // A subscript assignment of nil removes the value.
      for (name, value) in rule.parameters { values[name] = value }
    }
    return values
  }
}
