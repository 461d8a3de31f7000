/// A JSON value and its place, which each error names.
struct JSONReader {
  typealias CommandError = RuleSet.CommandError

  let value: JSONValue
  /// For example, `rule 2: actions[3].delay`; empty for a message of one command.
  let place: String
  /// Whether the value is a whole command.
  var isCommand = false

  /// The error for a value of a wrong kind.
  func error(expected: String) -> CommandError { error("expected \(expected)") }

  /// An error at this place.
  func error(_ text: String) -> CommandError {
    CommandError(description: place.isEmpty ? text : "\(place): \(text)")
  }

  /// The members of an object; a name outside `names` is an error.
  func object(allowing names: Set<String>) throws(CommandError) -> [String: JSONReader] {
    let members = try anyObject()
    for name in members.keys.sorted() where !names.contains(name) {
      throw error("unknown member '\(name)', allowed: \(names.sorted().joined(separator: ", "))")
    }
    return members
  }

  /// The members of an object with any names.
  func anyObject() throws(CommandError) -> [String: JSONReader] {
    guard case .object(let members) = value else { throw error(expected: "an object") }
    var readers: [String: JSONReader] = [:]
    let separator = place.isEmpty ? "" : isCommand ? ": " : "."
    for (name, value) in members {
      readers[name] = JSONReader(value: value, place: place + separator + name)
    }
    return readers
  }

  /// The elements of an array.
  func list() throws(CommandError) -> [JSONReader] {
    guard case .list(let values) = value else { throw error(expected: "an array") }
    return values.enumerated().map { JSONReader(value: $1, place: "\(place)[\($0)]") }
  }

  func text() throws(CommandError) -> String {
    guard case .text(let text) = value else { throw error(expected: "a string") }
    return text
  }

  func flag() throws(CommandError) -> Bool {
    guard case .flag(let flag) = value else { throw error(expected: "true or false") }
    return flag
  }

  /// A whole number that is not negative and at least `minimum`.
  func number(from minimum: Int64 = 0) throws(CommandError) -> Int64 {
    guard case .integer(let number) = value, number >= minimum else {
      throw error(expected: "a whole number from \(minimum)")
    }
    return number
  }

  /// A number from 0 to 1.
  func probability() throws(CommandError) -> Double {
    let number: Double? =
      switch value {
      case .integer(let number): Double(number)
      case .fraction(let number): number
      default: nil
      }
    guard let number, (0...1).contains(number) else {
      throw error(expected: "a number from 0 to 1")
    }
    return number
  }

  /// A number, or an expression that computes one.
  func expression() throws(CommandError) -> Expression {
    switch value {
    case .integer(let number): return .number(number)
    case .text(let text):
      do {
        return try Expression(parsing: text)
      } catch {
        throw self.error(error.description)
      }
    default: throw error(expected: "a number or an expression")
    }
  }

  func template() throws(CommandError) -> TextTemplate {
    let text = try text()
    do {
      return try TextTemplate(parsing: text)
    } catch {
      throw self.error(error.description)
    }
  }

  /// A string or an array of strings.
  func texts() throws(CommandError) -> [String] {
    if case .text(let text) = value { return [text] }
    var texts: [String] = []
    for element in try list() { texts.append(try element.text()) }
    return texts
  }
}
