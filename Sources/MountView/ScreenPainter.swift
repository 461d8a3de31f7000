/// Turns screens into the bytes that draw them, of which only changed lines are written.
///
/// The terminal is to show its alternate screen, and nobody else may write to it.
package struct ScreenPainter: Sendable {
  /// What a terminal needs before the first screen: the alternate screen, no wrapping of lines.
  package static let enter = "\u{1B}[?1049h\u{1B}[?7l\u{1B}[?25l\u{1B}[0m\u{1B}[2J"

  /// What gives the terminal back as it was.
  ///
  /// The cursor goes down first, for terminals that have no alternate screen.
  package static let leave = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[999;1H\u{1B}[?1049l"

  /// Whether styles are shown by colours, not by weight alone.
  private let color: Bool

  /// What the terminal shows; nil where that is not known.
  private var drawn: Screen?

  package init(color: Bool) { self.color = color }

  /// Has the next screen drawn as a whole.
  package mutating func forget() { drawn = nil }

  /// Draws a screen over the last one.
  ///
  /// - Returns: the bytes for the terminal, to be written at once and whole; none where nothing has
  ///   changed.
  package mutating func draw(_ screen: Screen) -> [UInt8] {
    guard screen != drawn else { return [] }
    let old = drawn?.lines.count == screen.lines.count ? drawn : nil
    var output = "\u{1B}[?25l"
    if old == nil { output += "\u{1B}[0m\u{1B}[2J" }
    for (row, line) in screen.lines.enumerated() where old?.lines[row] != line {
      output += "\u{1B}[\(row + 1);1H"
      // Before the text: after the last column it would clear what was just written.
      if old != nil { output += "\u{1B}[2K" }
      for piece in line.pieces { output += styled(piece) }
    }
    if let cursor = screen.cursor {
      output += "\u{1B}[\(cursor.row + 1);\(cursor.column + 1)H\u{1B}[?25h"
    }
    drawn = screen
    return Array(output.utf8)
  }

  private func styled(_ piece: StyledLine.Piece) -> String {
    guard let code = code(of: piece.style) else { return piece.text }
    return "\u{1B}[\(code)m\(piece.text)\u{1B}[0m"
  }

  private func code(of style: LineStyle) -> String? {
    switch style {
    case .plain: nil
    case .strong: "1"
    case .faint: "2"
    case .selected: "7"
    case .good: color ? "32" : nil
    case .warning: color ? "33" : "1"
    case .bad: color ? "1;31" : "1"
    }
  }
}
