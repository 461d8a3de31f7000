/// A terminal's screen: the text that a user sees of a command's output.
///
/// It supports what progress displays use: CR, LF, backspace, tabulator, cursor movement, erasing,
/// and lines that wrap. It ignores colours and modes. As in xterm, a character in the last column
/// leaves the cursor there until the next one wraps, and a resize cuts lines without joining them.
struct ScreenModel {
  private(set) var columns: Int
  private(set) var rows: Int
  /// The position of the next character, both from 0.
  private(set) var cursor = (row: 0, column: 0)
  /// The lines that have left the screen at its top, oldest first.
  private(set) var scrolledOff: [String] = []
  private var cells: [[Cell]]
  /// Whether the last column is filled, so the next character goes to the next line.
  private var isWrapPending = false
  private var parser = ControlSequenceParser()
  /// The first bytes of an incomplete character.
  private var incompleteCharacter: [UInt8] = []

  /// One cell of the screen: a character with its combining marks, or nil.
  ///
  /// A nil cell is the right half of a wide character.
  private typealias Cell = String?

  init(columns: Int, rows: Int) {
    precondition(columns > 1 && rows > 0)
    self.columns = columns
    self.rows = rows
    cells = Array(repeating: Array(repeating: " ", count: columns), count: rows)
  }

  /// The visible lines from the top, without the blanks at their ends.
  var lines: [String] { cells.map(Self.text) }

  /// All lines, including those that have scrolled off, without blank lines at the end.
  var transcript: [String] {
    var all = scrolledOff + lines
    while all.last == "" { all.removeLast() }
    return all
  }

  /// Shows text.
  mutating func write(_ text: String) {
    write(Array(text.utf8)[...])
  }

  /// Shows bytes of UTF-8; a character may be split between two calls.
  mutating func write(_ bytes: ArraySlice<UInt8>) {
    let all = incompleteCharacter + bytes
    let complete = Self.lengthWithoutIncompleteCharacter(all)
    incompleteCharacter = Array(all[complete...])
    // Iterate over scalars: CR LF is one `Character`.
    for scalar in String(decoding: all[..<complete], as: UTF8.self).unicodeScalars {
      if let action = parser.parse(scalar) { perform(action) }
    }
  }

  /// Changes the size: lines are cut or padded at the right, and excess lines leave at the top.
  mutating func resize(columns newColumns: Int, rows newRows: Int) {
    precondition(newColumns > 1 && newRows > 0)
    while rows > newRows, cursor.row >= newRows {
      scrolledOff.append(Self.text(of: cells.removeFirst()))
      cursor.row -= 1
      rows -= 1
    }
    cells = cells.prefix(newRows).map { line in
      Array(line.prefix(newColumns)) + Array(repeating: " ", count: max(newColumns - columns, 0))
    }
    columns = newColumns
    rows = newRows
    while cells.count < rows { cells.append(blankLine) }
    cursor.column = min(cursor.column, columns - 1)
    isWrapPending = false
  }

  private mutating func perform(_ action: ControlSequenceParser.Action) {
    switch action {
    case .show(let scalar): show(scalar)
    case .carriageReturn: move(toColumn: 0)
    case .lineFeed: lineFeed()
    case .backspace: move(toColumn: cursor.column - 1)
    case .tabulator: move(toColumn: (cursor.column / 8 + 1) * 8)
    case .up(let count): move(toRow: cursor.row - count)
    case .down(let count): move(toRow: cursor.row + count)
    case .right(let count): move(toColumn: cursor.column + count)
    case .left(let count): move(toColumn: cursor.column - count)
    case .column(let column): move(toColumn: column)
    case .position(let row, let column):
      move(toRow: row)
      move(toColumn: column)
    case .eraseLine(let part): eraseLine(part)
    case .eraseScreen(let part): eraseScreen(part)
    }
  }

  private mutating func show(_ scalar: Unicode.Scalar) {
    let width = scalar.columnCount
    if width == 0 {
      combine(scalar)
      return
    }
    if isWrapPending || cursor.column + width > columns {
      cursor.column = 0
      isWrapPending = false
      lineFeed()
    }
    cells[cursor.row][cursor.column] = String(scalar)
    if width == 2 { cells[cursor.row][cursor.column + 1] = nil }
    if cursor.column + width < columns {
      cursor.column += width
    } else {
      cursor.column = columns - 1
      isWrapPending = true
    }
  }

  /// Adds a combining mark to the character before the cursor.
  private mutating func combine(_ scalar: Unicode.Scalar) {
    var column = isWrapPending ? cursor.column : cursor.column - 1
    while column > 0, cells[cursor.row][column] == nil { column -= 1 }
    guard column >= 0, let character = cells[cursor.row][column] else { return }
    cells[cursor.row][column] = character + String(scalar)
  }

  private mutating func lineFeed() {
    isWrapPending = false
    if cursor.row + 1 < rows {
      cursor.row += 1
    } else {
      scrolledOff.append(Self.text(of: cells.removeFirst()))
      cells.append(blankLine)
    }
  }

  private mutating func move(toRow row: Int) {
    cursor.row = min(max(row, 0), rows - 1)
    isWrapPending = false
  }

  private mutating func move(toColumn column: Int) {
    cursor.column = min(max(column, 0), columns - 1)
    isWrapPending = false
  }

  private mutating func eraseLine(_ part: ControlSequenceParser.Part) {
    let range =
      switch part {
      case .toEnd: cursor.column..<columns
      case .toStart: 0..<(cursor.column + 1)
      case .all: 0..<columns
      }
    for column in range { cells[cursor.row][column] = " " }
    isWrapPending = false
  }

  private mutating func eraseScreen(_ part: ControlSequenceParser.Part) {
    let otherRows =
      switch part {
      case .toEnd: (cursor.row + 1)..<rows
      case .toStart: 0..<cursor.row
      case .all: 0..<rows
      }
    eraseLine(part)
    for row in otherRows { cells[row] = blankLine }
  }

  private var blankLine: [Cell] { Array(repeating: " ", count: columns) }

  private static func text(of line: [Cell]) -> String {
    var text = line.compactMap { $0 }.joined()
    while text.last == " " { text.removeLast() }
    return text
  }

  /// The number of bytes before an incomplete character at the end.
  private static func lengthWithoutIncompleteCharacter(_ bytes: [UInt8]) -> Int {
    for distance in 1...3 where distance <= bytes.count {
      let byte = bytes[bytes.count - distance]
      // The first byte of a character determines its length; the others begin with the bits 10.
      if byte & 0xc0 == 0x80 { continue }
      let byteCount = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
      return byteCount > distance ? bytes.count - distance : bytes.count
    }
    return bytes.count
  }
}

extension Unicode.Scalar {
  /// The number of cells that a character occupies: 0, 1 or 2 (Unicode Annex 11, main blocks).
  fileprivate var columnCount: Int {
    switch properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: break
    }
    switch value {
    case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff,
      0xfe30...0xfe6f, 0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1f64f, 0x1f900...0x1f9ff,
      0x20000...0x3fffd:
      return 2
    default: return 1
    }
  }
}
