/// A rule of a script: its conditions, parameters and actions.
package struct ScriptRule: Equatable, Sendable {
  /// Its name in the request log; nil until a script has numbered it.
  package internal(set) var name: String?
  let match: RequestMatch
  /// Parameters of the planned response, which override those of the query and of other rules; nil
  /// unsets one.
  let parameters: [String: String?]
  let actions: [ScriptAction]

  /// The parameters of a request under this rule.
  package func values(over values: [String: String]) -> [String: String] {
    var values = values
    // A subscript assignment of nil removes the value.
    for (name, value) in parameters { values[name] = value }
    return values
  }
}
