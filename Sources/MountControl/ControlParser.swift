/// Parses a batch of commands: lines of words.
///
/// Spaces and tabs separate words. Within double quotes a word may contain them, and a backslash
/// escapes a quote or a backslash. Elsewhere a backslash and the character after it stay in the
/// word, for ``NamePattern`` to interpret. Lines without a word are skipped.
package enum ControlParser {
  /// Parses the bytes of one write.
  ///
  /// - Parameter bytes: lines of UTF-8; the last one may lack its newline.
  /// - Returns: the commands, in order.
  /// - Throws: why one of the lines is not a command.
  package static func commands(_ bytes: some Sequence<UInt8>) throws(ControlRefusal)
    -> [ControlCommand]
  {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .invalid("not UTF-8") }
    let isClean = text.unicodeScalars.allSatisfy {
      $0 == "\n" || $0 == "\t" || $0.properties.generalCategory != .control
    }
    guard isClean else { throw .invalid("a control character") }
    var commands: [ControlCommand] = []
    // Split by scalars: a combining character may join a newline with what follows.
    for line in text.unicodeScalars.split(separator: "\n") {
      let words = try words(of: line)
      if !words.isEmpty { commands.append(try ControlCommand(words: words)) }
    }
    return commands
  }

  /// Quotes `name` as a word.
  ///
  /// Wildcards in it keep their meaning.
  package static func word(_ name: String) -> String {
    let escaped = name.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }
    return "\"\(escaped.joined())\""
  }

  private static func words(
    of line: Substring.UnicodeScalarView
  ) throws(ControlRefusal) -> [String] {
    var words: [String] = []
    /// The word that has begun.
    var word: String?
    func append(_ scalar: Unicode.Scalar) { word = (word ?? "") + String(scalar) }
    var isQuoted = false
    var rest = line
    while let scalar = rest.popFirst() {
      switch scalar {
      case "\"":
        isQuoted.toggle()
        word = word ?? ""
      case " " where !isQuoted, "\t" where !isQuoted:
        if let word { words.append(word) }
        word = nil
      case "\\":
        guard let next = rest.popFirst() else {
          throw .invalid("a backslash at the end of a line")
        }
        if !isQuoted || next != "\"" && next != "\\" { append(scalar) }
        append(next)
      default:
        append(scalar)
      }
    }
    guard !isQuoted else { throw .invalid("a quote that is not closed") }
    if let word { words.append(word) }
    guard words.allSatisfy({ !$0.isEmpty }) else { throw .invalid("an empty name") }
    return words
  }
}
