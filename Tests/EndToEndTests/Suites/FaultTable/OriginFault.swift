import Foundation

/// A fault of the origin: a `fault` parameter, or the actions of a script.
struct OriginFault: CustomStringConvertible {
  private enum Form {
    case parameters([String: String])
    case script(match: [String: Any], actions: Any)
  }

  private let form: Form
  let description: String

  /// The name of every script's rule, which identifies its answers in the log.
  private static let rule = "fault"

  /// A fault by the parameters of docs/ORIGIN.md.
  init(_ parameters: [String: String]) {
    form = .parameters(parameters)
    description = parameters.map { "\($0)=\($1)" }.sorted().joined(separator: "&")
  }

  /// A fault by a script: the requests that it matches and its actions, as JSON (docs/ORIGIN.md).
  init(match: String = "{}", actions: String) throws {
    let match = try JSONSerialization.jsonObject(with: Data(match.utf8))
    form = .script(
      match: match as? [String: Any] ?? [:],
      actions: try JSONSerialization.jsonObject(with: Data(actions.utf8)))
    description = actions
  }

  /// The message to the origin that creates the fault for `pattern`, in at most `times` responses
  /// of each resource.
  func message(pattern: String = "*", times: Int? = nil) -> [String: Any] {
    switch form {
    case .parameters(var parameters):
      if let times { parameters["fault-count"] = String(times) }
      return ["match": pattern, "parameters": parameters]
    case .script(var match, let actions):
      match["path"] = pattern
      if let times { match["times"] = times }
      return ["name": Self.rule, "match": match, "actions": actions]
    }
  }

  /// Whether a response had this fault.
  func isMet(by request: LoggedRequest) -> Bool {
    switch form {
    case .parameters(let parameters): request.fault == parameters["fault"] ?? "status"
    case .script: request.rule == Self.rule
    }
  }
}
