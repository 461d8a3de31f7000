import MountStatus
import TextFormat

/// The line of counts: `3 files: 1 complete, 1 downloading  2 reads wait  4 connections`.
///
/// A count that does not fit is left out, never cut: `1…` could be any number.
struct CountLine {
  private enum Part: Hashable {
    case files
    case state(FileState)
    case reads
    case connections
    case retries
    case requests
  }

  /// The parts in the order of the line.
  private static let shown: [Part] =
    [.files]
    + [
      .complete, .waiting, .downloading, .streaming, .prefetching, .paused, .failed, .offline,
      .stale, .idle, .unknown,
    ].map(Part.state)
    + [.reads, .connections, .retries, .requests]

  /// The parts in the order in which they get room.
  private static let important: [Part] =
    [.files, .reads]
    + [
      .waiting, .failed, .offline, .stale, .downloading, .streaming, .prefetching, .paused,
      .complete, .idle, .unknown,
    ].map(Part.state)
    + [.connections, .retries, .requests]

  private let totals: StatusTotals
  private let sums: StatusSums

  init(_ totals: StatusTotals, _ sums: StatusSums) {
    self.totals = totals
    self.sums = sums
  }

  func line(columns: Int) -> StyledLine {
    var room = columns
    var fitting: Set<Part> = []
    for part in Self.important {
      guard let text = text(of: part) else { continue }
      let width = text.utf8.count + gap(before: part, beside: fitting)
      guard width <= room else { continue }
      fitting.insert(part)
      room -= width
    }
    var line = StyledLine()
    var previous: Part?
    for part in Self.shown where fitting.contains(part) {
      line.append(separator(of: part, after: previous))
      line.append(text(of: part) ?? "", style(of: part))
      previous = part
    }
    return line
  }

  /// How many columns separate a part from the one before it, given the other parts.
  private func gap(before part: Part, beside others: Set<Part>) -> Int {
    if part == .files { return 0 }
    guard case .state = part else { return 2 }
    let hasState = others.contains { if case .state = $0 { true } else { false } }
    return hasState ? 2 : 1
  }

  /// The text of a part; nil if it counts nothing that is worth its room.
  private func text(of part: Part) -> String? {
    switch part {
    case .files: return counted(totals.files, "file") + ":"
    case .state(let state):
      let count = sums.count(of: state)
      return count > 0 ? "\(count) \(state.rawValue)" : nil
    case .reads:
      let count = totals.waitingReads
      return count == 0 ? nil : count == 1 ? "1 read waits" : "\(count) reads wait"
    case .connections: return counted(totals.connections, "connection")
    case .retries:
      let count = totals.retries
      return count == 0 ? nil : count == 1 ? "1 retry" : "\(count) retries"
    case .requests: return counted(totals.requests, "request")
    }
  }

  private func separator(of part: Part, after previous: Part?) -> String {
    guard let previous else { return "" }
    guard case .state = part else { return "  " }
    return previous == .files ? " " : ", "
  }

  private func style(of part: Part) -> LineStyle {
    switch part {
    case .state(let state): state.style
    case .reads, .retries: .warning
    case .files, .connections, .requests: .plain
    }
  }
}
