/// The changes of a script to a planned head.
struct HeadChange: Equatable, Sendable {
  struct Field: Equatable, Sendable {
    let name: String
    /// The value that replaces the planned one; nil removes the field.
    let value: TextTemplate?
  }

  var status: Expression?
  var reason: TextTemplate?
  /// In alphabetical order of their names.
  var fields: [Field] = []
  /// Raw lines after the fields: a duplicate field, a folded line, garbage.
  var lines: [TextTemplate] = []
  /// How many bytes of the head are sent; nil for all.
  ///
  /// Has no effect on the response to an upload.
  var cut: Expression?

  /// The head with all changes except the cut.
  func applied(
    to head: ResponseHead, in context: inout ScriptContext
  ) throws(ScriptError) -> ResponseHead {
    var head = head
    if let status {
      let number = try status.value(in: &context)
      guard (0...999_999).contains(number) else {
        throw ScriptError(description: "\(number) is not a status")
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
