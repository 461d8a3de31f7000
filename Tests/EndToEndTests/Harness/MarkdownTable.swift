import Foundation

/// The tables of a Markdown document.
struct MarkdownTable {
  /// A row other than the header.
  struct Row {
    /// The line number, from 1.
    let line: Int
    let cells: [String]
  }

  let header: [String]
  private(set) var rows: [Row] = []

  /// All tables of `text`, in order.
  static func all(in text: String) -> [MarkdownTable] {
    var tables: [MarkdownTable] = []
    var isInTable = false
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      guard line.hasPrefix("|") else {
        isInTable = false
        continue
      }
      let cells = Self.cells(line)
      if !isInTable {
        tables.append(MarkdownTable(header: cells))
        isInTable = true
      } else if !cells.allSatisfy({ $0.allSatisfy { $0 == "-" } }) {
        tables[tables.count - 1].rows.append(Row(line: index + 1, cells: cells))
      }
    }
    return tables
  }

  /// The texts between backticks.
  static func codeSpans(_ cell: String) -> [String] {
    let parts = cell.split(separator: "`", omittingEmptySubsequences: false)
    return stride(from: 1, to: parts.count, by: 2).map { String(parts[$0]) }
  }

  private init(header: [String]) { self.header = header }

  /// The cells of a line; a bar after a backslash belongs to its cell.
  private static func cells(_ line: Substring) -> [String] {
    var cells: [String] = [""]
    var isEscaped = false
    for character in line.dropFirst() {
      if character == "|", !isEscaped {
        cells.append("")
      } else {
        cells[cells.count - 1].append(character)
      }
      isEscaped = character == "\\"
    }
    // The last bar ends the row.
    return cells.dropLast().map { $0.trimmingCharacters(in: .whitespaces) }
  }
}
