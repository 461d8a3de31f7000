import TextFormat

/// A terminal that interprets the painter's output.
///
/// It wraps lines, and rewraps them when its width changes, like common terminals.
///
/// After a character in the last column, the cursor stays on it until the next one arrives. To
/// clear the end of the line then clears that character (as on a VT100).
struct TinyTerminal {
  private struct Row {
    /// One element for each column in use; nil for a character's columns after the first.
    var cells: [Character?] = []
    /// Whether the row was filled and its line continues in the next one.
    var goesOn = false
  }

  private(set) var columns: Int
  /// The number of visible rows: the cursor cannot move to rows above.
  private let height: Int
  private var rows: [Row] = [Row()]
  private var row = 0
  private var column = 0
  private(set) var unknownSequences: [String] = []
  /// The number of lines that were wrapped while they were written.
  private(set) var wrapCount = 0

  init(columns: Int, height: Int) {
    self.columns = columns
    self.height = height
  }

  /// All lines from the first on, with the rows of a line joined, except an empty line with the
  /// cursor.
  var lines: [String] {
    var lines: [String] = []
    var line = ""
    for row in rows {
      line += String(row.cells.compactMap(\.self))
      if row.goesOn { continue }
      lines.append(Self.trimmed(line))
      line = ""
    }
    return lines.last == "" ? lines.dropLast() : lines
  }

  /// The text as this terminal keeps it: without zero-width characters, and without spaces at the
  /// end.
  static func trimmed(_ text: String) -> String {
    var characters = text.filter { displayWidth($0) > 0 }
    while characters.last == " " { characters.removeLast() }
    return characters
  }

  // MARK: - Output

  mutating func write(_ bytes: [UInt8]) {
    var scalars = String(decoding: bytes, as: UTF8.self).unicodeScalars[...]
    while let first = scalars.first {
      if first == "\u{1B}" {
        let end =
          scalars.dropFirst(2).firstIndex { $0.properties.isAlphabetic } ?? scalars.startIndex
        escape(String(scalars[...end]))
        scalars = scalars[scalars.index(after: end)...]
      } else if first == "\r" {
        column = 0
        scalars.removeFirst()
      } else if first == "\n" {
        lineFeed()
        scalars.removeFirst()
      } else {
        let text = scalars.prefix { !["\u{1B}", "\r", "\n"].contains($0) }
        for character in String(text) { put(character) }
        scalars = scalars[text.endIndex...]
      }
    }
  }

  private mutating func escape(_ sequence: String) {
    let parameter = Int(sequence.dropFirst(2).dropLast())
    switch sequence.last {
    case "A":
      row = max(max(0, rows.count - height), row - (parameter ?? 1))
      column = min(column, columns - 1)
    case "K":
      clearToEndOfLine()
    case "J":
      clearToEndOfLine()
      rows.removeSubrange((row + 1)...)
    case "m":
      break
    default:
      unknownSequences.append(sequence)
    }
  }

  private mutating func clearToEndOfLine() {
    column = min(column, columns - 1)
    if rows[row].cells.count > column { rows[row].cells.removeSubrange(column...) }
    rows[row].goesOn = false
  }

  private mutating func lineFeed() {
    row += 1
    column = min(column, columns - 1)
    if row == rows.count { rows.append(Row()) }
  }

  private mutating func put(_ character: Character) {
    for (part, width) in columnCounts(of: character).enumerated() {
      if column + width > columns {
        rows[row].goesOn = true
        wrapCount += 1
        lineFeed()
        column = 0
      }
      while rows[row].cells.count < column + width { rows[row].cells.append(" ") }
      rows[row].cells[column] = part == 0 ? character : nil
      if width == 2 { rows[row].cells[column + 1] = nil }
      column += width
    }
  }

  // MARK: - Resizing

  mutating func resize(columns: Int) {
    var old = TinyTerminal(columns: columns, height: .max)
    var cursor = (row: 0, column: 0)
    for (index, row) in rows.enumerated() {
      var position = 0
      for character in row.cells {
        if index == self.row && position == self.column { cursor = (old.row, old.column) }
        if let character { old.put(character) }
        position += 1
      }
      if index == self.row && self.column >= position { cursor = (old.row, old.column) }
      if !row.goesOn && index < rows.count - 1 {
        old.lineFeed()
        old.column = 0
      }
    }
    self.columns = columns
    rows = old.rows
    (row, column) = cursor
  }
}
