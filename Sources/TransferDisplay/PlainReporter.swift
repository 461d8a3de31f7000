import TextFormat

/// Reports progress in plain lines, for pipes and log files.
///
/// It reports each file's start, resumption, retries and end when they are first seen. It reports
/// progress in between when at least 5 s have passed since the file's last line and the file gained
/// 10 %, or when 30 s have passed. A file that takes less than 5 s gets no progress lines.
package struct PlainReporter: Sendable {
  /// The minimum number of seconds between two progress lines of a file.
  package static let shortestInterval = 5.0
  /// The number of seconds after which a slow file is mentioned again.
  package static let longestSilence = 30.0
  /// The minimum gain between two progress lines, in percentage points.
  package static let percentStep = 10

  /// The last report about a file.
  private struct Told {
    var state = DisplayItem.State.queued
    var hasStarted = false
    var resumedByteCount: Int64 = 0
    /// The snapshot's `elapsed` at the last line.
    var time = 0.0
    var percent = 0
  }

  private var told: [Int: Told] = [:]

  package init() {}

  /// The lines about events since the previous snapshot.
  ///
  /// - Parameter snapshot: the files now; not earlier than the previous snapshot.
  /// - Returns: lines without control characters and line ends.
  package mutating func lines(for snapshot: DisplaySnapshot) -> [String] {
    var lines: [String] = []
    for index in snapshot.changing {
      let item = snapshot.items[index]
      let known = told[item.id]
      // In a long list, most files wait for their turn, or have ended and were reported.
      if known == nil, case .queued = item.state { continue }
      if let known, known.state.isSettled { continue }
      var memory = known ?? Told()
      let texts = Self.lines(of: item, in: snapshot, &memory)
      if !texts.isEmpty {
        memory.time = snapshot.elapsed
        memory.percent = item.percent ?? 0
        lines += texts.map(\.text)
      }
      memory.state = item.state
      told[item.id] = memory
    }
    return lines
  }

  private static func lines(
    of item: DisplayItem, in snapshot: DisplaySnapshot, _ told: inout Told
  ) -> [DisplayLine] {
    switch item.state {
    case .queued, .connecting:
      return []
    case .running:
      return runningLines(of: item, in: snapshot, &told)
    case .waiting(let reason):
      return told.state == item.state ? [] : [item.line("waiting: \(reason)")]
    case .paused:
      return told.state == item.state ? [] : [item.line("paused" + item.positionText)]
    case .finished, .failed, .cancelled:
      return told.state == item.state ? [] : item.outcome.map { [$0] } ?? []
    }
  }

  private static func runningLines(
    of item: DisplayItem, in snapshot: DisplaySnapshot, _ told: inout Told
  ) -> [DisplayLine] {
    var lines: [DisplayLine] = []
    // Until a byte has arrived, the length may still become known.
    if !told.hasStarted, item.totalByteCount != nil || item.newByteCount > 0 {
      told.hasStarted = true
      lines.append(item.line(startText(of: item, isUpload: snapshot.isUpload)))
    }
    if item.resumedByteCount != told.resumedByteCount {
      told.resumedByteCount = item.resumedByteCount
      lines.append(item.line(resumeText(of: item)))
    }
    guard lines.isEmpty else { return lines }
    let silence = snapshot.elapsed - told.time
    let gain = (item.percent ?? 0) - told.percent
    let isDue = silence >= shortestInterval && (gain >= percentStep || silence >= longestSilence)
    return isDue ? [item.line(progressText(of: item))] : []
  }

  /// `1 GiB from https://example.com/big.iso`.
  private static func startText(of item: DisplayItem, isUpload: Bool) -> String {
    let size = item.totalByteCount.map(humanBytes) ?? "unknown length"
    guard let url = item.mirror ?? item.url else { return size }
    return "\(size) \(isUpload ? "to" : "from") \(url)"
  }

  private static func resumeText(of item: DisplayItem) -> String {
    guard item.resumedByteCount > 0 else { return "starting over" }
    let total = item.totalByteCount.map { " of \(humanBytes($0))" } ?? ""
    return "resuming at \(humanBytes(item.resumedByteCount))\(total)"
  }

  /// `43%, 440 MiB of 1 GiB, 98.2 MiB/s, ETA 6s`.
  private static func progressText(of item: DisplayItem) -> String {
    let total = item.totalByteCount.map { " of \(humanBytes($0))" } ?? ""
    return [
      item.percent.map { "\($0)%" }, humanBytes(item.transferredByteCount) + total,
      humanSpeed(item.bytesPerSecond),
      item.timeLeft.map { "ETA \(humanDuration(seconds: $0))" },
    ].compactMap(\.self).joined(separator: ", ")
  }
}
