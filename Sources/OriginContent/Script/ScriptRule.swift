/// A rule of a script: for which requests, with which parameters, what is done.
public struct ScriptRule: Equatable, Sendable {
  /// What the request log calls it; nil until a script has given it a number.
  public internal(set) var name: String?
  let match: RequestMatch
  /// Parameters of the planned response, in the place of those of the query and of other rules; nil
  /// takes one back.
  let parameters: [String: String?]
  let actions: [ScriptAction]

  /// The parameters that a request has under this rule.
  public func values(over values: [String: String]) -> [String: String] {
    var values = values
    // Subscript assignment of nil removes.
    for (name, value) in parameters { values[name] = value }
    return values
  }
}
