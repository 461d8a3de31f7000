import TextFormat

/// A line for people, on a terminal or in a log.
package struct DisplayLine: Sendable, Equatable {
  /// The meaning of a line, for terminals that show colours.
  package enum Tone: Sendable, Equatable {
    case normal
    case finished
    case failed
  }

  /// The text, without control characters.
  package let text: String

  package let tone: Tone

  /// A line whose control characters are escaped, including those in `text`.
  package init(_ text: String, tone: Tone = .normal) {
    self.text = displayable(text)
    self.tone = tone
  }
}
