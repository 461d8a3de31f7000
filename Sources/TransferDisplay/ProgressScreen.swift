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
      (items, rest) = mostUrgent(of: items, count: max(0, room - 2))
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
  private func mostUrgent(of items: [DisplayItem], count: Int) -> ([DisplayItem], String) {
    var groups = Group.allCases.map { group in (group, items.filter { Group($0.state) == group }) }
    var shown: [DisplayItem] = []
    for index in groups.indices where ![.finished, .queued].contains(groups[index].0) {
      let part = groups[index].1.prefix(count - shown.count)
      shown += part
      groups[index].1.removeFirst(part.count)
    }
    // Successes come first, as in the summary at the end.
    let order: [Group] = [.active, .finished, .failed, .cancelled, .paused, .queued]
    let counts = order.compactMap { group -> String? in
      let count = groups.first { $0.0 == group }?.1.count ?? 0
      return count > 0 ? "\(count) \(group.rawValue)" : nil
    }
    return (shown, "and " + counts.joined(separator: ", "))
  }

  /// The groups of items, the most urgent first.
  private enum Group: String, CaseIterable {
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
