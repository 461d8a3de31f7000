import TextFormat

/// Renders the progress of files as lines for a terminal.
package struct ProgressScreen: Sendable, Equatable {
  /// The width of the terminal.
  package var columns: Int

  /// The height of the terminal.
  package var rows: Int

  /// Whether the terminal shows more than ASCII.
  package var isUTF8: Bool

  package init(columns: Int, rows: Int, isUTF8: Bool) {
    self.columns = columns
    self.rows = rows
    self.isUTF8 = isUTF8
  }

  /// The lines for a snapshot: one for each file, and a total if there are several.
  ///
  /// If not all files fit, only those that run, have failed or are paused are shown, in this order.
  /// A line before the last one counts the others (`and 12 finished, 40 queued`).
  ///
  /// - Parameter snapshot: the files at one moment.
  /// - Returns: at most `rows - 1` lines, because the cursor stays below them; none is wider than
  ///   `columns`.
  package func lines(of snapshot: DisplaySnapshot) -> [DisplayLine] {
    let room = rows - 1
    guard room > 0, columns > 0, !snapshot.items.isEmpty else { return [] }
    var items = snapshot.items
    var rest: String?
    if items.count > 1 && items.count + 1 > room {
      (items, rest) = mostUrgent(of: snapshot, count: max(0, room - 2))
    }
    var cells = items.map { ProgressCells(of: $0, isUTF8: isUTF8) }
    if snapshot.items.count > 1 {
      var total = ProgressCells(of: snapshot.totals)
      total.isTotal = true
      cells.append(total)
    }

    let layout = ProgressLayout(of: cells, columns: columns, isUTF8: isUTF8)
    var lines = cells.map { layout.line(of: $0, at: snapshot.elapsed) }
    if let rest {
      let ellipsis = isUTF8 ? "…" : "..."
      lines.insert(
        DisplayLine(cutAtEnd(rest, to: columns, ellipsis: ellipsis)), at: lines.count - 1)
    }
    return lines.suffix(room)
  }

  /// The items to show if there is not room for all, and a text about the others.
  private func mostUrgent(of snapshot: DisplaySnapshot, count: Int) -> ([DisplayItem], String) {
    let (items, totals) = (snapshot.items, snapshot.totals)
    var shown: [DisplayItem] = []
    /// Shows items of a group that fit, among some indices; returns how many do not.
    func show(_ group: Group, _ groupCount: Int, among indices: some Sequence<Int>) -> Int {
      let room = min(count - shown.count, groupCount)
      guard room > 0 else { return groupCount }
      let part = indices.lazy.filter { Group(items[$0].state) == group }.prefix(room)
      let before = shown.count
      for index in part { shown.append(items[index]) }
      return groupCount - (shown.count - before)
    }
    let active = show(.active, totals.activeCount, among: snapshot.changing)
    let failed = show(.failed, totals.failedCount, among: snapshot.failed)
    let cancelled = show(.cancelled, totals.cancelledCount, among: items.indices)
    let paused = show(.paused, totals.pausedCount, among: items.indices)
    // Successes come first, as in the summary at the end.
    let counts: [(Group, Int)] = [
      (.active, active), (.finished, totals.finishedCount), (.failed, failed),
      (.cancelled, cancelled), (.paused, paused), (.queued, totals.queuedCount),
    ]
    let texts = counts.filter { $0.1 > 0 }.map { "\($0.1) \($0.0.rawValue)" }
    return (shown, "and " + texts.joined(separator: ", "))
  }

  /// The groups of items, the most urgent first.
  private enum Group: String {
    case active
    case failed
    case cancelled
    case paused
    /// Never shown individually if there is not room for all, as `finished`.
    case queued
    case finished

    init(_ state: DisplayItem.State) {
      self =
        switch state {
        case .running, .connecting, .waiting: .active
        case .failed: .failed
        case .cancelled: .cancelled
        case .paused: .paused
        case .queued: .queued
        case .finished: .finished
        }
    }
  }
}
