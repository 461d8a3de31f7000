/// Turns successive renderings into the bytes that draw them over each other on a terminal.
///
/// It remembers what it drew and leaves the cursor at the beginning of the row below. Each result
/// is to be written at once and whole; nobody else may write to the terminal in between, but for
/// text that goes above by ``printAbove(_:columns:)``.
package struct TerminalPainter: Sendable {
  /// No more than 10 redraws a second: more cannot be read, and cost time over slow lines.
  package static let shortestInterval = 0.1

  /// Whether lines that tell of success or failure are coloured.
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

  /// Replaces the former lines by `lines`.
  ///
  /// - Parameters:
  ///   - lines: the new rendering, fewer lines than the terminal has rows; what is wider than the
  ///     terminal is cut.
  ///   - permanent: lines to be left above, of any width.
  ///   - columns: the width of the terminal now, at least 1. When it has become smaller, the
  ///     terminal has wrapped the former lines, as most do.
  /// - Returns: the bytes for the terminal.
  package mutating func draw(
    _ lines: [DisplayLine], above permanent: [DisplayLine] = [], columns: Int
  ) -> [UInt8] {
    let columns = max(1, columns)
    var output = ""
    let rowCount = drawn.reduce(0) { $0 + Self.rowCount(of: $1.text, columns: columns) }
    // What the user typed has moved the cursor in its row.
    if rowCount > 0 { output += "\r\u{1B}[\(rowCount)A" }
    if !permanent.isEmpty {
      output += "\u{1B}[J"
      for line in permanent { output += styled(line) + "\r\n" }
    }
    drawn = lines.map { DisplayLine(fitted($0.text, columns: columns), tone: $0.tone) }
    for line in drawn {
      // After the last column the cursor still stands on it, and would clear what was just written.
      if displayWidth(line.text) < columns {
        output += styled(line) + "\u{1B}[K\r\n"
      } else {
        output += "\u{1B}[K" + styled(line) + "\r\n"
      }
    }
    if rowCount > 0 { output += "\u{1B}[J" }
    return Array(output.utf8)
  }

  /// Puts `lines` above the former lines, where they stay.
  ///
  /// - Parameters:
  ///   - lines: the lines to stay, of any width.
  ///   - columns: the width of the terminal now, at least 1.
  /// - Returns: the bytes for the terminal.
  package mutating func printAbove(_ lines: [DisplayLine], columns: Int) -> [UInt8] {
    draw(drawn, above: lines, columns: columns)
  }

  /// Removes the former lines.
  ///
  /// - Parameter columns: the width of the terminal now, at least 1.
  /// - Returns: the bytes for the terminal.
  package mutating func clear(columns: Int) -> [UInt8] {
    draw([], columns: columns)
  }

  /// How many rows a line takes on a terminal that wraps it.
  private static func rowCount(of text: String, columns: Int) -> Int {
    var rowCount = 1
    var used = 0
    for width in text.lazy.flatMap(columnCounts(of:)) {
      // A wide character is not divided: it goes to the next row as a whole.
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
