/// A text with placeholders in braces for each request: `Content-Range: bytes {first}-{last}/*`.
struct TextTemplate: Equatable, Sendable {
  enum Part: Equatable, Sendable {
    case literal(String)
    /// In decimal digits.
    case number(Expression)
    /// In hexadecimal digits, like the size of a chunk.
    case hexadecimal(Expression)
    /// As an HTTP date, from seconds since 1970.
    case date(Expression)
    case word(Word)
    /// A field of the request by lower-case name; empty if it is missing.
    case field(String)
  }

  /// Texts of the request and of the planned response.
  enum Word: String, CaseIterable, Sendable {
    /// The entity tag of the planned response with its quotes; empty if it has none.
    case etag
    /// The `Last-Modified` of the planned response; empty if it has none.
    case modified
    /// The target of the request as sent.
    case target
    case path
    case method
    /// The `Host` field.
    case host
  }

  let parts: [Part]

  /// Reads a text; `{{` and `}}` stand for one brace each.
  init(parsing text: String) throws(ScriptError) {
    var parts: [Part] = []
    var literal: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "}"), rest.first == byte { rest.removeFirst() }
      guard byte == UInt8(ascii: "{"), rest.first != byte else {
        if byte == UInt8(ascii: "{") { rest.removeFirst() }
        literal.append(byte)
        continue
      }
      guard let end = rest.firstIndex(of: UInt8(ascii: "}")) else {
        throw ScriptError(
          description: "a brace is not closed in '\(text)'; write {{ for one that stands for itself"
        )
      }
      if !literal.isEmpty { parts.append(.literal(String(decoding: literal, as: UTF8.self))) }
      literal = []
      parts.append(try Self.part(String(decoding: rest[..<end], as: UTF8.self)))
      rest = rest[(end + 1)...]
    }
    if !literal.isEmpty { parts.append(.literal(String(decoding: literal, as: UTF8.self))) }
    self.parts = parts
  }

  /// The text for a request.
  func text(in context: inout ScriptContext) throws(ScriptError) -> String {
    var text = ""
    for part in parts {
      switch part {
      case .literal(let literal): text += literal
      case .number(let expression): text += String(try expression.value(in: &context))
      case .hexadecimal(let expression):
        text += String(try expression.value(in: &context), radix: 16)
      case .date(let expression):
        text += HTTPDate.field(seconds: try expression.value(in: &context))
      case .word(let word): text += context.text(of: word)
      case .field(let name): text += context.request.fields[name] ?? ""
      }
    }
    return text
  }

  private static func part(_ text: String) throws(ScriptError) -> Part {
    if let word = Word(rawValue: text) { return .word(word) }
    if let argument = argument(of: "field", text) { return .field(argument.lowercased()) }
    if let argument = argument(of: "hex", text) {
      return .hexadecimal(try Expression(parsing: argument))
    }
    if let argument = argument(of: "date", text) {
      return .date(try Expression(parsing: argument))
    }
    return .number(try Expression(parsing: text))
  }

  private static func argument(of function: String, _ text: String) -> Substring? {
    guard text.hasPrefix(function + "("), text.hasSuffix(")") else { return nil }
    return text.dropFirst(function.count + 1).dropLast()
  }
}

extension ScriptContext {
  fileprivate func text(of word: TextTemplate.Word) -> String {
    switch word {
    case .etag: planned.head?["ETag"] ?? ""
    case .modified: planned.head?["Last-Modified"] ?? ""
    case .target: request.target
    case .path: request.path
    case .method: request.method
    case .host: request.fields["host"] ?? ""
    }
  }
}
