import TextFormat

/// The columns of one rendering and their widths.
///
/// They are the same for all lines, so that the figures are aligned. If the terminal is too narrow,
/// the bar is dropped first, then the connections, ETA, total, speed and bytes; the name and the
/// percentage stay.
struct ProgressLayout {
  /// The columns that can be dropped, in that order.
  private enum Column: CaseIterable {
    case bar
    case connections
    case timeLeft
    case total
    case speed
    case bytes
  }

  /// The columns of a percentage: `100%`.
  private static let percentWidth = 4
  /// A narrower bar says less than the percentage.
  private static let narrowestBar = 7
  /// The bar gets this width before names get their full width.
  private static let usefulBar = 12
  /// A wider bar is harder to read against the figures on its right.
  private static let widestBar = 40
  /// Names are not cut below this width to make room for other columns.
  private static let shortestName = 8

  private let columns: Int
  private let isUTF8: Bool
  private let ellipsis: String
  private let elision: NameElision
  private var shown = Set(Column.allCases)
  /// Whether there is only room for either a name or a percentage.
  private var showsOneFieldOnly = false
  private var nameWidth = 0
  private var barWidth = 0
  private var percentWidth = 0
  private var amountWidth = 0
  private var speedWidth = 0
  private var timeLeftWidth = 0
  private var connectionsWidth = 0

  /// Lays out the lines for a terminal.
  ///
  /// - Parameters:
  ///   - cells: the texts of all lines.
  ///   - columns: the width of the terminal, at least 1.
  ///   - isUTF8: whether the terminal shows more than ASCII.
  init(of cells: [ProgressCells], columns: Int, isUTF8: Bool) {
    elision = NameElision(
      cells.filter { !$0.isTotal }.map(\.name), ellipsis: isUTF8 ? "…" : "...")
    self.columns = columns
    self.isUTF8 = isUTF8
    ellipsis = isUTF8 ? "…" : "..."
    let longestName = cells.map { displayWidth($0.name) }.max() ?? 0
    let nameFloor = min(longestName, max(Self.shortestName, columns / 5))
    let figures = cells.compactMap(\.figures)
    let hasPercent = cells.contains { $0.figures != nil && !$0.percent.isEmpty }
    speedWidth = figures.map(\.speed.utf8.count).max() ?? 0
    timeLeftWidth = figures.map(\.timeLeft.utf8.count).max() ?? 0
    connectionsWidth = figures.map(\.connections.utf8.count).max() ?? 0

    let dropOrder = Column.allCases
    for droppedCount in 0...dropOrder.count {
      shown = Set(dropOrder.dropFirst(droppedCount))
      // Without a bar, the column of the percentage shows that a file of unknown length moves.
      percentWidth = hasPercent ? Self.percentWidth : shown.contains(.bar) ? 0 : 1
      if figures.isEmpty { percentWidth = 0 }
      amountWidth =
        figures.map { $0.amount(withTotal: shown.contains(.total)).utf8.count }.max() ?? 0
      barWidth = shown.contains(.bar) ? Self.narrowestBar : 0
      nameWidth = nameFloor
      if usedWidth(of: figures) <= columns { break }
    }
    distributeSpare(columns - usedWidth(of: figures), longestName: longestName)
  }

  /// Puts the texts of one line into the columns.
  ///
  /// - Parameters:
  ///   - cells: the texts of the line.
  ///   - seconds: the time, for moving parts.
  /// - Returns: a line no wider than the terminal, without spaces at its end.
  func line(of cells: ProgressCells, at seconds: Double) -> DisplayLine {
    let text =
      switch cells.detail {
      case .figures(let figures): figuresLine(of: cells, figures, at: seconds)
      case .text(let detail): textLine(of: cells, detail)
      }
    return DisplayLine(trimmed(text), tone: cells.tone)
  }

  // MARK: - Widths

  /// The desired columns of all figures: at least their usual width, so that the bar's width does
  /// not change with every digit.
  private func usedWidth(of figures: [ProgressCells.Figures]) -> Int {
    var width = nameWidth
    if percentWidth > 0 { width += 2 + percentWidth }
    if shown.contains(.bar) { width += (percentWidth > 0 ? 1 : 2) + barWidth }
    guard !figures.isEmpty else { return width }
    if shown.contains(.bytes) {
      let usual = figures.map { figure in
        let total = shown.contains(.total) ? figure.total.utf8.count : 0
        return "43.2 MiB".utf8.count + (total > 0 ? 1 + total : 0)
      }
      width += (shown.contains(.bar) ? 1 : 2) + max(amountWidth, usual.max() ?? 0)
    }
    if shown.contains(.speed) { width += 2 + max(speedWidth, "98.2 MiB/s".utf8.count) }
    if shown.contains(.timeLeft), timeLeftWidth > 0 {
      width += 2 + max(timeLeftWidth, "ETA 42s".utf8.count)
    }
    if shown.contains(.connections), connectionsWidth > 0 {
      width += 2 + max(connectionsWidth, "16 conn".utf8.count)
    }
    return width
  }

  private mutating func distributeSpare(_ spare: Int, longestName: Int) {
    guard spare >= 0 else {
      // Nothing is left to drop: the name gets what the percentage leaves. A name of less than
      // three columns would be useless.
      showsOneFieldOnly = nameWidth + spare < min(3, nameWidth)
      nameWidth = max(0, nameWidth + spare)
      return
    }
    var spare = spare
    func take(_ wanted: Int) -> Int {
      let taken = min(spare, max(0, wanted))
      spare -= taken
      return taken
    }
    if shown.contains(.bar) { barWidth += take(Self.usefulBar - barWidth) }
    nameWidth += take(longestName - nameWidth)
    if shown.contains(.bar) { barWidth += take(Self.widestBar - barWidth) }
  }

  // MARK: - Lines

  private func figuresLine(
    of cells: ProgressCells, _ figures: ProgressCells.Figures, at seconds: Double
  ) -> String {
    var percent = cells.percent
    if percent.isEmpty && !shown.contains(.bar) { percent = ProgressBar.spinner(at: seconds) }
    if showsOneFieldOnly {
      return percent.utf8.count <= columns ? percent : name(cells.name, width: columns)
    }
    var line = padded(name(cells.name, width: nameWidth), to: nameWidth)
    if percentWidth > 0 { line += "  " + padded(percent, to: percentWidth, right: true) }
    if shown.contains(.bar) {
      let bar = ProgressBar(width: barWidth, isUTF8: isUTF8)
      line += percentWidth > 0 ? " " : "  "
      line += figures.fraction.map(bar.filled(fraction:)) ?? bar.moving(at: seconds)
    }
    if shown.contains(.bytes) {
      let amount = figures.amount(withTotal: shown.contains(.total))
      line += (shown.contains(.bar) ? " " : "  ") + padded(amount, to: amountWidth)
    }
    if shown.contains(.speed) { line += "  " + padded(figures.speed, to: speedWidth, right: true) }
    if shown.contains(.timeLeft), timeLeftWidth > 0 {
      line += "  " + padded(figures.timeLeft, to: timeLeftWidth)
    }
    if shown.contains(.connections), connectionsWidth > 0 {
      line += "  " + padded(figures.connections, to: connectionsWidth, right: true)
    }
    return line
  }

  private func textLine(of cells: ProgressCells, _ detail: String) -> String {
    // The text may take half of the line from the name, if it needs it.
    let wanted = min(displayWidth(detail), columns / 2)
    var parts = [padded(cells.percent, to: Self.percentWidth, right: true), detail]
    var nameRoom = columns - 2 - Self.percentWidth - 2 - wanted
    if cells.percent.isEmpty || nameRoom < Self.shortestName {
      // A finished file needs no words, the others no percentage.
      parts = [cells.tone == .finished ? cells.percent : detail]
      nameRoom = columns - 2 - min(displayWidth(parts[0]), columns / 2)
    }
    guard nameRoom >= 3 else { return name(cells.name, width: columns) }
    nameRoom = min(nameRoom, max(nameWidth, Self.shortestName))
    var line = padded(name(cells.name, width: nameRoom), to: min(nameWidth, nameRoom))
    for part in parts {
      let room = columns - displayWidth(line) - 2
      line += "  " + cutAtEnd(part, to: room, ellipsis: ellipsis)
    }
    return line
  }

  private func name(_ name: String, width: Int) -> String {
    elision.shortened(name, to: width)
  }

  private func trimmed(_ text: String) -> String {
    text.lastIndex { $0 != " " }.map { String(text[...$0]) } ?? ""
  }
}
