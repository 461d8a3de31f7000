import TextFormat

/// The texts of one line of the screen, before layout.
struct ProgressCells {
  /// The figures of a file whose bytes flow.
  struct Figures {
    /// How much is done, 0 to 1; nil for an unknown length.
    var fraction: Double?
    var transferred: String
    /// Empty for an unknown length.
    var total: String
    var speed: String
    /// Empty for an unknown length.
    var timeLeft: String
    /// Empty if none is in use.
    var connections: String

    /// `440 MiB/1 GiB`, or `440 MiB`.
    func amount(withTotal: Bool) -> String {
      withTotal && !total.isEmpty ? "\(transferred)/\(total)" : transferred
    }
  }

  /// The text after the name and the percentage.
  enum Detail {
    case figures(Figures)
    /// A text that may be cut at its end, because no bytes flow.
    case text(String)
  }

  let name: String
  /// `43%`; empty if none is shown.
  let percent: String
  let detail: Detail
  let tone: DisplayLine.Tone
  /// Whether it is the line of all files together.
  var isTotal = false

  var figures: Figures? {
    if case .figures(let figures) = detail { figures } else { nil }
  }

  /// The cells of one file.
  init(of item: DisplayItem, isUTF8: Bool) {
    name = displayable(item.name, isUTF8: isUTF8)
    let percentText = item.percent.map { "\($0)%" } ?? ""
    if item.state == .running {
      percent = percentText
      tone = .normal
      detail = .figures(
        Self.figures(
          transferred: item.transferredByteCount, total: item.totalByteCount,
          bytesPerSecond: item.bytesPerSecond, timeLeft: item.timeLeft,
          connections: item.connections))
      return
    }
    let (text, tone) = Self.state(of: item)
    // The percentage of a file that has not begun, or has failed, is meaningless.
    percent = tone != .failed && item.transferredByteCount > 0 ? percentText : ""
    detail = .text(displayable(text, isUTF8: isUTF8))
    self.tone = tone
  }

  /// The cells of the last line, for all files.
  init(of totals: DisplayTotals) {
    name = "total \(totals.finishedCount)/\(totals.itemCount)"
    percent = totals.percent.map { "\($0)%" } ?? ""
    tone = .normal
    var figures = Self.figures(
      transferred: totals.transferredByteCount, total: totals.totalByteCount,
      bytesPerSecond: totals.bytesPerSecond, timeLeft: totals.timeLeft,
      connections: totals.connections)
    if let percent = totals.percent, figures.fraction == nil || percent == 100 {
      figures.fraction = Double(percent) / 100
    }
    detail = .figures(figures)
  }

  private static func figures(
    transferred: Int64, total: Int64?, bytesPerSecond: Double, timeLeft: Double?, connections: Int
  ) -> Figures {
    Figures(
      // As with the percentage, nothing looks complete too early.
      fraction: total.map { $0 > 0 ? min(0.999, Double(transferred) / Double($0)) : 0 },
      transferred: humanBytes(transferred),
      total: total.map(humanBytes) ?? "",
      speed: humanSpeed(bytesPerSecond),
      timeLeft: total == nil ? "" : "ETA \(timeLeft.map { humanDuration(seconds: $0) } ?? "-")",
      connections: connections > 0 ? "\(connections) conn" : "")
  }

  private static func state(of item: DisplayItem) -> (String, DisplayLine.Tone) {
    switch item.state {
    case .queued: ("queued", .normal)
    case .connecting: ("connecting", .normal)
    case .running: ("running", .normal)
    case .waiting(let reason): ("waiting: \(reason)", .normal)
    case .paused: ("paused" + item.positionText, .normal)
    case .finished: (item.finishedText, .finished)
    case .failed(let reason): ("failed: \(reason)", .failed)
    case .cancelled: ("cancelled" + item.positionText, .normal)
    }
  }
}
