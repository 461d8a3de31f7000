import MountStatus
import MountView

/// A report with a file in each relevant state.
let sample: StatusReport = {
  var report = StatusReport(
    mountpoint: "/mnt/remote", uptimeSeconds: 61,
    files: [
      FileStatus(
        name: "done.bin", url: "https://example.org/done.bin", state: .complete, length: 4 << 20,
        cachedBytes: 4 << 20, fetchedBytes: 4 << 20, requests: 2, validator: #"ETag "d""#,
        pinned: true),
      FileStatus(
        name: "images/big.iso", url: "https://example.org/big.iso?…", state: .downloading,
        length: 100 << 20, cachedBytes: 50 << 20, fetchedBytes: 50 << 20,
        speedBytesPerSecond: 5_452_595, etaSeconds: 10, connections: 4, requests: 18, retries: 2,
        lastError: "HTTP 503", validator: #"ETag "b""#),
      FileStatus(name: "new.txt", url: "https://example.org/new.txt", state: .unknown),
      FileStatus(
        name: "stuck.bin", url: "https://example.org/stuck.bin", state: .waiting,
        length: 1 << 30, cachedBytes: 1 << 20, fetchedBytes: 1 << 20, connections: 1, requests: 3,
        waitingReads: [
          WaitingRead(
            offset: 5 << 20, byteCount: 128 << 10, waitedSeconds: 3.1,
            reason: "the server has sent nothing for 3 s"),
          WaitingRead(offset: 0, byteCount: 1, waitedSeconds: 0.5, reason: "request sent"),
        ]),
      FileStatus(
        name: "gone.bin", url: "https://example.org/gone.bin", state: .failed, requests: 1,
        lastError: "HTTP 404"),
    ])
  report.verifiesServers = false
  return report
}()

/// A view of the sample.
func sampleView(of report: StatusReport = sample) -> StatusView {
  var view = StatusView(mountpoint: "/mnt/remote")
  view.take(report)
  return view
}

extension StatusView {
  /// The text of the screen, without blanks at the ends of lines.
  mutating func text(columns: Int = 80, rows: Int = 24, isUTF8: Bool = true) -> [String] {
    screen(columns: columns, rows: rows, isUTF8: isUTF8).lines.map { line in
      var text = line.text
      while text.last == " " { text.removeLast() }
      return text
    }
  }

  /// The names of the visible files, with a `>` before the selected one.
  mutating func names(columns: Int = 120, rows: Int = 24) -> [String] {
    let lines = text(columns: columns, rows: rows)
    guard let start = lines.firstIndex(where: { $0.hasSuffix(" NAME") }),
      let end = lines.firstIndex(where: { $0.hasPrefix("──") })
    else { return [] }
    return lines[(start + 1)..<end].compactMap { line in
      line.split(separator: " ").last.map { (line.hasPrefix(">") ? ">" : "") + $0 }
    }
  }

  /// Types text and keys, and returns the resulting actions.
  @discardableResult
  mutating func type(_ text: String, then keys: Key...) -> [ViewAction] {
    let typed = text.map { Key.character($0) } + keys
    return typed.compactMap { press($0) }
  }
}
