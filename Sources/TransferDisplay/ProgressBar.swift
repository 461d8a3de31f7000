/// The bar of one line, in brackets.
package struct ProgressBar {
  /// The columns of the whole bar with its brackets, at least 3.
  let width: Int

  /// Whether the terminal shows block elements, which divide each column by eight.
  let isUTF8: Bool

  package init(width: Int, isUTF8: Bool) {
    self.width = width
    self.isUTF8 = isUTF8
  }

  private var innerWidth: Int { max(1, width - 2) }

  /// The bar of a file of known length.
  ///
  /// - Parameter fraction: how much is done, 0 to 1; only 1 fills the bar.
  /// - Returns: text of `width` columns.
  package func filled(fraction: Double) -> String {
    let fraction = fraction.isNaN ? 0 : min(1, max(0, fraction))
    return isUTF8 ? blocks(fraction: fraction) : arrow(fraction: fraction)
  }

  /// The bar of a file of unknown length: a mark that moves back and forth, one column in 0.1 s.
  ///
  /// - Parameter seconds: the time that determines the position of the mark.
  /// - Returns: text of `width` columns.
  package func moving(at seconds: Double) -> String {
    let mark = String((isUTF8 ? "███" : "<=>").prefix(innerWidth))
    let span = innerWidth - mark.count
    // The period of the movement; in a bar as wide as the mark, the mark cannot move.
    let period = max(1, 2 * span)
    let step = Int(clampedSeconds(seconds) * 10) % period
    let offset = step <= span ? step : period - step
    return "[" + spaces(offset) + mark + spaces(span - offset) + "]"
  }

  /// A rotating sign, for lines without room for a bar.
  static func spinner(at seconds: Double) -> String {
    let signs = ["|", "/", "-", "\\"]
    return signs[Int(clampedSeconds(seconds) * 10) % signs.count]
  }

  private func arrow(fraction: Double) -> String {
    let count = Int(fraction * Double(innerWidth))
    let line = String(repeating: "=", count: count)
    guard count < innerWidth else { return "[" + line + "]" }
    return "[" + line + ">" + spaces(innerWidth - count - 1) + "]"
  }

  private func blocks(fraction: Double) -> String {
    let eighths = Int(fraction * Double(innerWidth * 8))
    let full = eighths / 8
    // U+2588 is the full block, U+2589 seven eighths of it, U+258F one.
    let parts = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
    let part = parts[eighths % 8]
    return "[" + String(repeating: "█", count: full) + part
      + spaces(innerWidth - full - part.count) + "]"
  }

  private func spaces(_ count: Int) -> String { String(repeating: " ", count: count) }
}

/// Invalid times must not stop the display.
private func clampedSeconds(_ seconds: Double) -> Double {
  seconds.isNaN ? 0 : min(1e9, max(0, seconds))
}
