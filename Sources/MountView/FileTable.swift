import MountStatus
import TextFormat
import TransferDisplay

/// The table of files: which columns fit, and the line of a file.
///
/// The name comes last. Only a name may contain characters whose width or direction differs between
/// terminals.
struct FileTable: Sendable {
  /// The columns before the name, in the order in which they are dropped if there is no room.
  private enum Column: CaseIterable {
    case retries, cached, bar, connections, timeLeft, length, speed, percent, state

    /// The columns in the order of the screen.
    static let shown: [Column] = [
      .state, .bar, .percent, .cached, .length, .speed, .timeLeft, .connections, .retries,
    ]

    var title: String {
      switch self {
      case .state: "STATE"
      case .bar: "PROGRESS"
      case .percent: "%"
      case .cached: "CACHED"
      case .length: "SIZE"
      case .speed: "SPEED"
      case .timeLeft: "ETA"
      case .connections: "CON"
      case .retries: "RETRY"
      }
    }

    /// The width of its widest value or title; the bar can grow.
    ///
    /// With `isShort`, bytes are shown as `5.2M`.
    func width(isShort: Bool) -> Int {
      switch self {
      case .state: 11
      case .bar: 8
      case .percent: 4
      case .cached: isShort ? 6 : 10
      case .length: isShort ? 5 : 10
      case .speed: isShort ? 7 : 12
      case .timeLeft: 6
      case .connections: 3
      case .retries: 5
      }
    }

    /// The width that names need before there is room for the column.
    var usefulName: Int { self == .retries || self == .cached ? 32 : 16 }

    var isRight: Bool { self != .state && self != .bar }
  }

  private let type: Typesetting
  private let columns: [Column]
  private let barWidth: Int
  /// Whether bytes are shown in the short form, which leaves more room for names.
  private let isShort: Bool

  /// From this width on, names have enough room beside the long form.
  private static let wideColumns = 100
  /// The width that names get before the bar grows.
  private static let ampleName = 40
  private static let widestBar = 30
  /// In seconds: times of 100 days and more are wider than their column.
  private static let longestTime = 100.0 * 86_400 - 1

  init(_ type: Typesetting) {
    self.type = type
    let isShort = type.columns < Self.wideColumns
    self.isShort = isShort
    var dropped: Set<Column> = []
    func used() -> Int {
      // The mark of the selected file and a space after each column.
      Column.shown.reduce(1) { $0 + (dropped.contains($1) ? 0 : $1.width(isShort: isShort) + 1) }
    }
    for column in Column.allCases where used() + column.usefulName > type.columns {
      dropped.insert(column)
    }
    columns = Column.shown.filter { !dropped.contains($0) }
    let spare = type.columns - used() - Self.ampleName
    let bar = Column.bar.width(isShort: isShort)
    barWidth = bar + min(Self.widestBar - bar, max(0, spare))
  }

  /// The line above the files.
  var titles: StyledLine {
    let cells = columns.map { cell($0.title, $0) }
    return StyledLine(" " + (cells + ["NAME"]).joined(separator: " "), .faint)
  }

  /// The line of a file.
  ///
  /// - Parameters:
  ///   - file: the file.
  ///   - isSelected: whether the keys act on it.
  ///   - seconds: the time, for bars of files of unknown length.
  /// - Returns: a line as wide as the terminal if it is selected, otherwise not wider.
  func line(of file: FileStatus, isSelected: Bool, at seconds: Double) -> StyledLine {
    var line = StyledLine(isSelected ? ">" : " ")
    for column in columns {
      line.append(cell(value(of: column, file, at: seconds), column), style(of: column, file))
      line.append(" ")
    }
    let room = max(1, type.columns - line.width)
    line.append(cutInMiddle(type.shown(file.name), to: room, ellipsis: type.ellipsis))
    guard isSelected else { return line }
    return StyledLine(padded(line.text, to: type.columns), .selected)
  }

  private func cell(_ text: String, _ column: Column) -> String {
    let width = column == .bar ? barWidth : column.width(isShort: isShort)
    return padded(cutAtEnd(text, to: width, ellipsis: ""), to: width, right: column.isRight)
  }

  private func style(of column: Column, _ file: FileStatus) -> LineStyle {
    switch column {
    case .state: file.state.style
    case .bar: file.state == .complete ? .faint : .good
    case .retries: file.retries > 0 ? .warning : .plain
    default: .plain
    }
  }

  private func value(of column: Column, _ file: FileStatus, at seconds: Double) -> String {
    switch column {
    case .state: return file.state.rawValue
    case .bar: return bar(of: file, at: seconds)
    case .percent: return file.percentText ?? "?"
    case .cached: return bytes(file.cachedBytes)
    case .length: return file.length.map(bytes) ?? "?"
    case .speed:
      return file.speedBytesPerSecond > 0 ? bytes(file.speedBytesPerSecond) + "/s" : "-"
    case .timeLeft:
      guard let seconds = file.etaSeconds else { return "-" }
      return seconds < Self.longestTime ? humanDuration(seconds: seconds) : ">99d"
    case .connections: return "\(file.connections)"
    case .retries: return "\(file.retries)"
    }
  }

  private func bytes(_ count: Int64) -> String { isShort ? shortBytes(count) : humanBytes(count) }

  private func bar(of file: FileStatus, at seconds: Double) -> String {
    let bar = ProgressBar(width: barWidth, isUTF8: type.isUTF8)
    if file.length != nil { return bar.filled(fraction: file.fraction) }
    return file.connections > 0 ? bar.moving(at: seconds) : ""
  }
}
