/// What a script makes of a planned head.
struct HeadChange: Equatable, Sendable {
  struct Field: Equatable, Sendable {
    let name: String
    /// The value in the place of the planned one; nil takes the field away.
    let value: TextTemplate?
  }

  var status: Expression?
  var reason: TextTemplate?
  /// In the order of names.
  var fields: [Field] = []
  /// Lines after the fields, as they are: a field that is there already, a folded line, garbage.
  var lines: [TextTemplate] = []
  /// How many bytes of the head are sent; nil for all, and without effect on the answer to an
  /// upload.
  var cut: Expression?

  /// The head with all changes but the cut.
  func applied(
    to head: ResponseHead, in context: inout ScriptContext
  ) throws(ScriptError) -> ResponseHead {
    var head = head
    if let status {
      let number = try status.value(in: &context)
      guard (0...999_999).contains(number) else {
        throw ScriptError(description: "\(number) is no status")
      }
      head.status = Int(number)
    }
    head.reason = try reason?.text(in: &context)
    for field in fields {
      head.replace(field.name, try field.value?.text(in: &context))
    }
    for line in lines { head.rawLines.append(try line.text(in: &context)) }
    return head
  }
}
