/// Converts screens into the bytes that draw them; only changed lines are written.
///
/// The terminal must show its alternate screen, and nothing else may write to it.
package struct ScreenPainter: Sendable {
  /// Prepares a terminal for the first screen: alternate screen, no wrapping of lines.
  package static let enter = "\u{1B}[?1049h\u{1B}[?7l\u{1B}[?25l\u{1B}[0m\u{1B}[2J"

  /// Restores the terminal.
  ///
  /// The cursor goes to the bottom first, for terminals without an alternate screen.
  package static let leave = "\u{1B}[0m\u{1B}[?7h\u{1B}[?25h\u{1B}[999;1H\u{1B}[?1049l"

  /// Whether to show styles by colours, not only by weight.
  private let color: Bool

  /// What the terminal shows; nil if unknown.
  private var drawn: Screen?

  package init(color: Bool) { self.color = color }

  /// Forces the next screen to be drawn completely.
  package mutating func forget() { drawn = nil }

  /// Draws a screen over the last one.
  ///
  /// - Returns: the bytes for the terminal, to write at once and completely; none if nothing
  ///   changed.
  package mutating func draw(_ screen: Screen) -> [UInt8] {
    guard screen != drawn else { return [] }
    let old = drawn?.lines.count == screen.lines.count ? drawn : nil
    var output = "\u{1B}[?25l"
    if old == nil { output += "\u{1B}[0m\u{1B}[2J" }
    for (row, line) in screen.lines.enumerated() where old?.lines[row] != line {
      output += "\u{1B}[\(row + 1);1H"
      // Before the text: after the last column, clearing would erase the last character.
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
