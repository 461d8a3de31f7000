/// Reads expressions by recursive descent.
struct ExpressionParser {
  /// The maximum nesting of parentheses and signs, which recurse on a small stack.
  private static let depthLimit = 16

  private let text: String
  private var rest: Substring.UTF8View
  private var depth = 0

  init(_ text: some StringProtocol) {
    let text = String(text)
    self.text = text
    rest = text[...].utf8
  }

  /// Reads an expression that ends with the text.
  mutating func whole() throws(ScriptError) -> Expression {
    let expression = try sum()
    guard nextByte == nil else { throw error() }
    return expression
  }

  private mutating func sum() throws(ScriptError) -> Expression {
    var result = try product()
    while let operation = take(oneOf: [.add, .subtract]) {
      result = .operation(operation, result, try product())
    }
    return result
  }

  private mutating func product() throws(ScriptError) -> Expression {
    var result = try operand()
    while let operation = take(oneOf: [.multiply, .divide, .remainder]) {
      result = .operation(operation, result, try operand())
    }
    return result
  }

  private mutating func operand() throws(ScriptError) -> Expression {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.depthLimit else {
      throw ScriptError(description: "an expression nested deeper than \(Self.depthLimit)")
    }
    if take(UInt8(ascii: "-")) { return .operation(.subtract, .number(0), try operand()) }
    if take(UInt8(ascii: "(")) {
      let expression = try sum()
      guard take(UInt8(ascii: ")")) else { throw error() }
      return expression
    }
    let word = takeWord()
    if word.utf8.first.map({ (0x30...0x39).contains($0) }) == true {
      guard let number = ByteText.byteCount(word) else { throw error() }
      return .number(number)
    }
    if let variable = Expression.Variable(rawValue: word) { return .variable(variable) }
    if let function = Expression.Operator.functions.first(where: { $0.rawValue == word }) {
      guard take(UInt8(ascii: "(")) else { throw error() }
      let left = try sum()
      guard take(UInt8(ascii: ",")) else { throw error() }
      let right = try sum()
      guard take(UInt8(ascii: ")")) else { throw error() }
      return .operation(function, left, right)
    }
    guard word.isEmpty else {
      let names = Expression.Variable.allCases.map(\.rawValue).joined(separator: ", ")
      throw ScriptError(
        description: "unknown name '\(word)' in '\(text)', allowed: \(names), min, max, random")
    }
    throw error()
  }

  /// The next byte that is not blank; nil at the end.
  private var nextByte: UInt8? { rest.first { $0 != 0x20 && $0 != 0x09 } }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard nextByte == byte, let index = rest.firstIndex(of: byte) else { return false }
    rest = rest[rest.index(after: index)...]
    return true
  }

  private mutating func take(oneOf operators: [Expression.Operator]) -> Expression.Operator? {
    operators.first { $0.rawValue.utf8.first.map { take($0) } ?? false }
  }

  private mutating func takeWord() -> String {
    rest = rest.drop { $0 == 0x20 || $0 == 0x09 }
    let word = rest.prefix {
      (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
    }
    rest = rest[word.endIndex...]
    return String(word) ?? ""
  }

  private func error() -> ScriptError {
    let place = String(rest) ?? ""
    return ScriptError(
      description: place.isEmpty
        ? "the expression '\(text)' ends early"
        : "the expression '\(text)' makes no sense from '\(place)' on")
  }
}

extension Expression {
  /// Reads an expression, such as `min(first + 4k, last)`.
  init(parsing text: some StringProtocol) throws(ScriptError) {
    var parser = ExpressionParser(text)
    self = try parser.whole()
  }
}
