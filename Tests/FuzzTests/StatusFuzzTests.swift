import LinuxSystem
import MountStatus
import MountView
import SeededRandom
import Testing
import TextFormat

/// `.status.json` of another process is untrusted: everything that is read of it can be displayed.
@Suite(.timeLimit(.minutes(10))) struct StatusFuzzTests {
  private let mutator = ByteMutator(
    dictionary: [
      "null", "true", "-1", "0", "1e308", "-1e308", "1e-320", "9223372036854775807",
      "9223372036854775808", "-9223372036854775808", "1.5", "\"", "\\u0000", "\\ud800",
      "\\u001b[2J",
      "[", "]", "{", "}", ",", ":", "[]", "{}", "\"version\":1,", "\"version\":2,", "\"complete\"",
      "\"unknown\"", "\u{85}", "\u{2028}", "é", "e\u{301}", "\u{1F468}\u{200D}\u{1F469}",
    ].map { Array($0.utf8) } + [[0xFF], [0x00]])

  @Test("A mutated status is refused, or is shown without a trap and without a control character")
  func reports() {
    let campaign = FuzzCampaign(name: "status", count: 20_000)
    campaign.run(minimumAccepted: 0.1, minimumRefused: 0.1) { generator in
      var bytes = report(using: &generator).json()
      for _ in 0..<generator.pick([0, 1, 1, 2, 4]) {
        mutator.mutate(&bytes, using: &generator)
      }
      let report: StatusReport
      do {
        report = try StatusReport(json: bytes)
      } catch {
        return "\(error)".isEmpty ? .broken("an error without a reason") : .refused
      }
      let rows = Int.random(in: -1...60, using: &generator)
      let columns = Int.random(in: -1...200, using: &generator)
      var view = StatusView(mountpoint: report.mountpoint)
      view.take(report)
      // The rules of the keys must hold for any report, too.
      for _ in 0..<4 {
        _ = view.press(.character(generator.pick(["s", "a", "j", "G", "d", "i", "e"])))
      }
      let lines = view.screen(columns: columns, rows: rows, isUTF8: columns % 2 == 0).lines
      for text in [report.text()] + lines.map(\.text) {
        let isClean = text.unicodeScalars.allSatisfy {
          $0 == "\n" || $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value)
        }
        if !isClean { return .broken("a control character: \(text.debugDescription)") }
      }
      if lines.count != max(1, rows)
        || lines.contains(where: { displayWidth($0.text) > max(1, columns) })
      {
        return .broken("\(lines.count) lines on a screen of \(rows) × \(columns)")
      }
      // A report that is written again must be readable.
      guard let again = try? StatusReport(json: report.json()) else {
        return .broken("written again it cannot be read: \(String(decoding: bytes, as: UTF8.self))")
      }
      return again.files.map(\.name) == report.files.map(\.name)
        ? .accepted : .broken("written again it is another")
    }
  }

  @Test("A mutated table of mounts yields entries whose places are below the root of the table")
  func mountTables() {
    let table = """
      22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
      36 22 0:52 / /home/u/my\\040files ro,nosuid,nodev shared:2 master:3 - fuse.httpfs httpfs rw
      37 22 0:53 / /\\134\\011 rw - fuse x rw,user_id=0

      """
    let words = [" ", "\n", " - ", "\\", "\\040", "\\777", "\\08", "-", "\0", "é", "\\000"]
    let mutator = ByteMutator(dictionary: words.map { Array($0.utf8) } + [[0xFF]])
    let campaign = FuzzCampaign(name: "mount tables", count: 50_000)
    campaign.run(minimumAccepted: 0.3, minimumRefused: 0.01) { generator in
      var bytes = Array(table.utf8)
      for _ in 0..<Int.random(in: 1...5, using: &generator) {
        mutator.mutate(&bytes, using: &generator)
      }
      let entries = MountTable(mountinfo: bytes).entries
      let lineCount = bytes.split(separator: 0x0A).count
      if entries.count > lineCount { return .broken("\(entries.count) of \(lineCount) lines") }
      // An escape consists of the octal digits of one byte, so the text cannot become longer.
      let byteCount = entries.reduce(0) { $0 + $1.mountpoint.unicodeScalars.count }
      if byteCount > bytes.count { return .broken("more text than there was") }
      return entries.count == lineCount ? .accepted : .refused
    }
  }

  private func report(using generator: inout SeededGenerator) -> StatusReport {
    var files: [FileStatus] = []
    for index in 0..<Int.random(in: 0...4, using: &generator) {
      files.append(
        FileStatus(
          name: generator.pick(["a.bin", "d/é-\(index)", "\u{1B}[2J", "", "x\ny"]),
          url: "http://h/\(index)", state: generator.pick(FileState.allCases),
          length: generator.pick([nil, 0, 1, .max, .min, generator.edgeNumber()]),
          cachedBytes: generator.edgeNumber(), fetchedBytes: generator.edgeNumber(),
          speedBytesPerSecond: generator.edgeNumber(),
          etaSeconds: generator.pick([nil, 0, 1e300, -1e300, .infinity, .nan, 0.5]),
          connections: 3, requests: 4, retries: 1,
          lastError: generator.pick([nil, "HTTP 503", "a\u{9B}b"]), validator: "ETag \"a\"",
          waitingReads: generator.pick([
            [],
            [
              WaitingRead(
                offset: generator.edgeNumber(), byteCount: generator.edgeNumber(),
                waitedSeconds: generator.pick([0, 1e300, 3.25]), reason: "stalled\u{7}")
            ],
          ]), passthrough: false))
    }
    return StatusReport(
      mountpoint: "/mnt\u{1B}", uptimeSeconds: generator.pick([0, 1e18, 3.5]), files: files)
  }
}
