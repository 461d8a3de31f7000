import MountStatus
import TextFormat
import TransferDisplay

extension StatusView {
  /// The screen for a terminal of this size.
  ///
  /// - Parameters:
  ///   - columns: the width of the terminal, at least 1.
  ///   - rows: its height, at least 1.
  ///   - isUTF8: whether it shows more than ASCII.
  /// - Returns: exactly `rows` lines, none wider than `columns`.
  package mutating func screen(columns: Int, rows: Int, isUTF8: Bool) -> Screen {
    let columns = max(1, columns)
    let rows = max(1, rows)
    let type = Typesetting(columns: columns, isUTF8: isUTF8)
    if mode == .help { return Self.screen(HelpPage.lines(rows: rows), rows: rows, type) }

    let plan = RowPlan(rows: rows, showsDetails: showsDetails)
    var lines = header(type)
    // The sums matter most: they remain on a screen of one row.
    if plan.headerCount < 3 { lines.swapAt(0, min(1, lines.count - 1)) }
    lines = Array(lines.prefix(plan.headerCount))
    lines += warnings(type).prefix(plan.warningCount)
    let tableCount = max(
      0,
      rows - lines.count - plan.titleCount - plan.ruleCount - plan.detailCount - plan.footerCount)
    scroll(visibleRowCount: tableCount)
    if plan.titleCount > 0 || tableCount > 0 {
      let table = FileTable(type)
      if plan.titleCount > 0 { lines.append(table.titles) }
      lines += tableLines(table, type, count: tableCount)
    }
    if plan.ruleCount > 0 { lines.append(rule(type)) }
    if plan.detailCount > 0 {
      let details = selectedFile.map { FileDetails.lines(of: $0, type) } ?? []
      lines += padded(Array(details.prefix(plan.detailCount)), to: plan.detailCount)
    }
    var cursor: Screen.Position?
    let foot = footer(type)
    // The user must see a question to answer it.
    if plan.footerCount > 0 || mode != .files {
      lines = padded(Array(lines.prefix(rows - 1)), to: rows - 1) + [foot]
      if mode != .files {
        cursor = Screen.Position(row: rows - 1, column: min(foot.width, columns - 1))
      }
    }
    var screen = Self.screen(lines, rows: rows, type)
    screen.cursor = cursor
    return screen
  }

  /// Divides the rows of the screen.
  private struct RowPlan {
    let headerCount: Int
    let warningCount: Int
    let titleCount: Int
    let ruleCount: Int
    let detailCount: Int
    let footerCount: Int

    /// Of 24 rows, half are for files.
    init(rows: Int, showsDetails: Bool) {
      footerCount = rows >= 3 ? 1 : 0
      headerCount = rows >= 12 ? 3 : rows >= 7 ? 2 : 1
      warningCount = rows >= 3 ? max(1, rows / 8) : 0
      titleCount = rows >= 6 ? 1 : 0
      ruleCount = rows >= 9 ? 1 : 0
      detailCount = !showsDetails ? 0 : rows >= 40 ? 9 : rows >= 22 ? 6 : rows >= 15 ? 3 : 0
    }
  }

  /// Keeps the selected file visible.
  private mutating func scroll(visibleRowCount count: Int) {
    visibleRowCount = max(1, count)
    firstVisibleRow = min(firstVisibleRow, max(0, shown.count - visibleRowCount), selectedRow)
    firstVisibleRow = max(firstVisibleRow, selectedRow - visibleRowCount + 1)
  }

  private static func screen(_ lines: [StyledLine], rows: Int, _ type: Typesetting) -> Screen {
    Screen(
      lines: padded(Array(lines.prefix(rows)), to: rows).map {
        $0.fitted(to: type.columns, ellipsis: type.ellipsis)
      })
  }

  // MARK: - Parts

  private func header(_ type: Typesetting) -> [StyledLine] {
    var title = StyledLine()
    title.append("httpfs", .strong)
    let uptime =
      report.map { "up " + humanDuration(seconds: $0.uptimeSeconds.rounded(.down)) } ?? ""
    let room = type.columns - "httpfs  ".count - uptime.count - 2
    title.append(
      "  " + cutInMiddle(type.shown(mountpoint), to: max(8, room), ellipsis: type.ellipsis))
    let gap = type.columns - title.width - uptime.count
    if gap > 0 { title.append(String(repeating: " ", count: gap) + uptime, .faint) }
    guard let report else {
      return [title, StyledLine("waiting for the mount\(type.ellipsis)", .faint), StyledLine()]
    }
    return [title, sums(report, type), CountLine(report.totals, sums).line(columns: type.columns)]
  }

  /// The bar of all files: `[████    ]  50%  50 MiB of 100 MiB  5.2 MiB/s  ETA 10s`.
  private func sums(_ report: StatusReport, _ type: Typesetting) -> StyledLine {
    let totals = report.totals
    let percent =
      totals.length > 0 ? percentText(of: totals.cachedBytes, in: totals.length) : "0%"
    var figures = "\(humanBytes(totals.cachedBytes)) of \(humanBytes(totals.length))"
    if totals.speedBytesPerSecond > 0 {
      figures += "  \(speedText(bytesPerSecond: totals.speedBytesPerSecond))"
      if let limit = report.rateLimitBytesPerSecond { figures += " of \(humanBytes(limit))/s" }
      if let seconds = sums.etaSeconds { figures += "  ETA \(humanDuration(seconds: seconds))" }
    } else if let limit = report.rateLimitBytesPerSecond {
      figures += "  at most \(humanBytes(limit))/s"
    }
    var line = StyledLine()
    // The width that the figures usually leave, so that it does not change with every digit.
    let limitWidth = report.rateLimitBytesPerSecond == nil ? 0 : " of 999.9 MiB/s".count
    let barWidth = min(60, type.columns - 52 - limitWidth)
    if barWidth >= 8 {
      let fraction = Double(max(0, totals.cachedBytes)) / Double(max(1, totals.length))
      let bar = ProgressBar(width: barWidth, isUTF8: type.isUTF8)
      line.append(bar.filled(fraction: totals.length > 0 ? fraction : 0), .good)
      line.append(" ")
    }
    line.append(TextFormat.padded(percent, to: 4, right: true) + "  " + figures, .strong)
    return line
  }

  /// Important warnings, the most urgent first.
  private func warnings(_ type: Typesetting) -> [StyledLine] {
    var lines: [StyledLine] = []
    if let unansweredSeconds {
      lines.append(StyledLine("the mount does not answer for \(unansweredSeconds) s", .bad))
    }
    if let failure { lines.append(StyledLine(type.shown(failure), .bad)) }
    guard let report else { return lines }
    if let error = report.cache.error {
      lines.append(
        StyledLine("the cache fails, files are read without it: \(type.shown(error))", .bad))
    }
    if let line = report.list?.textLine { lines.append(StyledLine(type.shown(line), .bad)) }
    for listing in (report.failedListings ?? []).prefix(3) {
      lines.append(
        StyledLine(
          type.shown(listing.textLine), listing.showsEarlierNames ? .warning : .bad))
    }
    if !report.verifiesServers {
      lines.append(
        StyledLine("https servers are NOT verified: what they send may be anybody's", .bad))
    }
    if report.totals.damagedBytes > 0 {
      let text =
        "\(humanBytes(report.totals.damagedBytes)) of the cache were damaged: fetched again"
      lines.append(StyledLine(text, .warning))
    }
    return lines
  }

  private func tableLines(_ table: FileTable, _ type: Typesetting, count: Int) -> [StyledLine] {
    guard let report else { return padded([], to: count) }
    let rows = shown.indices.clamped(to: firstVisibleRow..<(firstVisibleRow + count))
    var lines = rows.map { row in
      table.line(
        of: report.files[shown[row]], isSelected: row == selectedRow, at: report.uptimeSeconds)
    }
    if lines.isEmpty, count > 0 {
      let text =
        report.files.isEmpty
        ? "no files" : "no file is shown: Esc clears the filter, a shows those that rest"
      lines.append(StyledLine("  " + text, .faint))
    }
    return padded(lines, to: count)
  }

  /// The line below the table: `── 1-12 of 10000 ── by activity ── filter: iso ──`.
  private func rule(_ type: Typesetting) -> StyledLine {
    let dash = type.isUTF8 ? "─" : "-"
    let last = min(shown.count, firstVisibleRow + visibleRowCount)
    var parts = [shown.isEmpty ? "0" : "\(firstVisibleRow + 1)-\(last) of \(shown.count)"]
    parts.append("by \(selection.order.rawValue)")
    if selection.onlyActive { parts.append("only active") }
    if !selection.filter.isEmpty { parts.append("filter: \(type.shown(selection.filter))") }
    var text = dash + dash
    for part in parts { text += " \(part) " + dash + dash }
    let rest = type.columns - displayWidth(text)
    return StyledLine(text + String(repeating: dash, count: max(0, rest)), .faint)
  }

  private func footer(_ type: Typesetting) -> StyledLine {
    func typed(_ label: String, _ text: String) -> StyledLine {
      // Shows the end of the text, where the cursor is.
      let text = type.shown(text)
      let room = type.columns - displayWidth(label) - 1
      guard displayWidth(text) > room else { return StyledLine(label + text, .strong) }
      var end = Substring(text)
      while !end.isEmpty, displayWidth(String(end)) > max(0, room) { end = end.dropFirst() }
      return StyledLine(label + end, .strong)
    }
    switch mode {
    case .filter: return typed("filter: ", selection.filter)
    case .question(.connections, let answer):
      return typed("connections per file (1 to 64, auto): ", answer)
    case .question(.rateLimit, let answer):
      return typed("bytes per second (as 10M, 0: no limit): ", answer)
    case .eviction(let name):
      let room = max(8, type.columns - "evict the cached bytes of ? y/n ".count)
      let shown = cutInMiddle(type.shown(name), to: room, ellipsis: type.ellipsis)
      return StyledLine("evict the cached bytes of \(shown)? y/n ", .warning)
    case .files, .help: break
    }
    if let notice {
      return StyledLine(type.shown(notice.text), notice.isFailure ? .bad : .strong)
    }
    return HelpPage.hints(columns: type.columns)
  }
}

/// Appends empty lines, so that there are `count`.
private func padded(_ lines: [StyledLine], to count: Int) -> [StyledLine] {
  lines + Array(repeating: StyledLine(), count: max(0, count - lines.count))
}
