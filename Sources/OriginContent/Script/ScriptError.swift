/// What makes an expression or a text unusable, or a script end early: the answer is then 500.
struct ScriptError: Error, Equatable, CustomStringConvertible {
  let description: String
}
