/// Why an expression or a text is invalid, or why a script ends early: the response is then 500.
struct ScriptError: Error, Equatable, CustomStringConvertible {
  let description: String
}
