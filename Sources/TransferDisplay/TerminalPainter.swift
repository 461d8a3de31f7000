import TextFormat

/// Converts successive renderings into the bytes that draw them over each other on a terminal.
///
/// It remembers what it drew and leaves the cursor at the start of the row below. Write each result
/// at once and completely. Nothing else may write to the terminal in between, except text above
/// through ``printAbove(_:columns:)``.
package struct TerminalPainter: Sendable {
  /// At most 10 redraws a second: people cannot read more, and more cost time over slow
  /// connections.
  package static let shortestInterval = 0.1

  /// Whether lines about success or failure are coloured.
  private let color: Bool

  /// Whether the terminal shows more than ASCII.
  private let isUTF8: Bool

  /// The lines that are on the terminal above the cursor.
  private var drawn: [DisplayLine] = []

  private var lastDraw: Double?

  package init(color: Bool, isUTF8: Bool) {
    self.color = color
    self.isUTF8 = isUTF8
  }

  /// Decides whether to redraw now.
  ///
  /// - Parameter now: seconds of a clock that never goes back.
  /// - Returns: whether a redraw is due; if so, the next one is due after ``shortestInterval``.
  package mutating func shouldDraw(now: Double) -> Bool {
    if let lastDraw, now - lastDraw < Self.shortestInterval { return false }
    lastDraw = now
    return true
  }

  /// Replaces the previous lines by `lines`.
  ///
  /// - Parameters:
  ///   - lines: the new rendering, with fewer lines than the terminal has rows; wider lines are
  ///     cut.
  ///   - permanent: lines to leave above, of any width.
  ///   - columns: the current width of the terminal, at least 1. If it has shrunk, the terminal has
  ///     wrapped the previous lines, as most do.
  /// - Returns: the bytes for the terminal.
  package mutating func draw(
    _ lines: [DisplayLine], above permanent: [DisplayLine] = [], columns: Int
  ) -> [UInt8] {
    let columns = max(1, columns)
    var output = ""
    let rowCount = drawn.reduce(0) { $0 + Self.rowCount(of: $1.text, columns: columns) }
    // The user's typing has moved the cursor in its row.
    if rowCount > 0 { output += "\r\u{1B}[\(rowCount)A" }
    if !permanent.isEmpty {
      output += "\u{1B}[J"
      for line in permanent { output += styled(line) + "\r\n" }
    }
    drawn = lines.map { DisplayLine(fitted($0.text, columns: columns), tone: $0.tone) }
    for line in drawn {
      // After the last column the cursor still stands on it, and clearing would erase the last
      // character.
      if displayWidth(line.text) < columns {
        output += styled(line) + "\u{1B}[K\r\n"
      } else {
        output += "\u{1B}[K" + styled(line) + "\r\n"
      }
    }
    if rowCount > 0 { output += "\u{1B}[J" }
    return Array(output.utf8)
  }

  /// Prints `lines` above the previous lines, where they stay.
  ///
  /// - Parameters:
  ///   - lines: the lines to print, of any width.
  ///   - columns: the current width of the terminal, at least 1.
  /// - Returns: the bytes for the terminal.
  package mutating func printAbove(_ lines: [DisplayLine], columns: Int) -> [UInt8] {
    draw(drawn, above: lines, columns: columns)
  }

  /// Removes the previous lines.
  ///
  /// - Parameter columns: the current width of the terminal, at least 1.
  /// - Returns: the bytes for the terminal.
  package mutating func clear(columns: Int) -> [UInt8] {
    draw([], columns: columns)
  }

  /// How many rows a line takes on a terminal that wraps it.
  private static func rowCount(of text: String, columns: Int) -> Int {
    var rowCount = 1
    var used = 0
    for width in text.lazy.flatMap(columnCounts(of:)) {
      // A wide character cannot be divided, so it moves to the next row.
      if used + width > columns && used > 0 {
        rowCount += 1
        used = 0
      }
      used += width
    }
    return rowCount
  }

  private func fitted(_ text: String, columns: Int) -> String {
    let shown = displayable(text, isUTF8: isUTF8)
    return cutAtEnd(shown, to: columns, ellipsis: isUTF8 ? "…" : "...")
  }

  private func styled(_ line: DisplayLine) -> String {
    let text = displayable(line.text, isUTF8: isUTF8)
    guard color else { return text }
    switch line.tone {
    case .normal: return text
    case .finished: return "\u{1B}[32m\(text)\u{1B}[0m"
    case .failed: return "\u{1B}[31m\(text)\u{1B}[0m"
    }
  }
}
