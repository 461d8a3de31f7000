internal import TextFormat

extension StatusReport {
  /// The report for people, as `.status` shows it: three lines of totals, then a line for each
  /// file.
  ///
  /// Indented lines show a file's last error and the reads that wait.
  package func text() -> String { String(decoding: written(as: .text), as: UTF8.self) }

  func textPass(_ sums: StatusSums) -> StatusDocument.Pass {
    let nameWidth = sums.nameWidth
    let lines =
      headerLines(sums) + [
        "", Self.columnTitles(nameWidth: nameWidth), "",
      ]
    return StatusDocument.Pass(heading: Array(lines.joined(separator: "\n").utf8)) {
      file, _, bytes in
      for line in file.textLines(nameWidth: nameWidth) {
        bytes += line.utf8
        bytes.append(UInt8(ascii: "\n"))
      }
    }
  }

  private func headerLines(_ sums: StatusSums) -> [String] {
    let share =
      totals.length > 0 ? " (\(percentText(of: totals.cachedBytes, in: totals.length)))" : ""
    let uptime = humanDuration(seconds: uptimeSeconds.rounded(.down))
    var lines = [
      "httpfs \(escapingControls(mountpoint))  up \(uptime)",
      [
        counted(totals.files, "file"), "\(totals.completeFiles) complete",
        "\(humanBytes(totals.cachedBytes)) of \(humanBytes(totals.length)) cached" + share,
        "\(humanBytes(totals.fetchedBytes)) fetched",
      ].joined(separator: ", "),
    ]
    var figures: [String] = []
    if totals.speedBytesPerSecond > 0 {
      figures.append(speedText(bytesPerSecond: totals.speedBytesPerSecond))
      if let eta = sums.etaSeconds { figures.append("ETA \(humanDuration(seconds: eta))") }
    }
    figures += [
      counted(totals.connections, "connection"), counted(totals.requests, "request"),
      "\(totals.retries) \(totals.retries == 1 ? "retry" : "retries")",
      counted(totals.waitingReads, "waiting read"),
    ]
    if sums.waitingOpenCount > 0 { figures.append(counted(sums.waitingOpenCount, "waiting open")) }
    lines.append(figures.joined(separator: ", "))
    if let limit = rateLimitBytesPerSecond {
      lines.append("at most \(humanBytes(limit))/s for all files together (rate limit)")
    }
    if let timeouts { lines.append(timeouts.text) }
    if !verifiesServers {
      lines.append("https servers are NOT verified (--insecure): what they send may be anybody's")
    }
    if totals.damagedBytes > 0 {
      lines.append("\(humanBytes(totals.damagedBytes)) of the cache were damaged: fetched again")
    }
    if let error = cache.error {
      lines.append("the cache fails, files are read without it: \(escapingControls(error))")
    }
    if let line = list?.textLine { lines.append(escapingControls(line)) }
    lines += (failedListings ?? []).map { escapingControls($0.textLine) }
    return lines
  }

  private static func columnTitles(nameWidth: Int) -> String {
    FileStatus.row(
      name: "NAME", state: "STATE", percent: "%", cached: "CACHED", length: "LENGTH",
      speed: "SPEED", eta: "ETA", connections: "CONN", retries: "RETRY", nameWidth: nameWidth)
  }
}

extension FileStatus {
  /// The lines of `.status` for this file.
  fileprivate func textLines(nameWidth: Int) -> [String] {
    var lines = [
      Self.row(
        name: escapingControls(name), state: state.rawValue,
        percent: percentText ?? "?",
        cached: humanBytes(cachedBytes), length: length.map(humanBytes) ?? "?",
        speed: speedText(bytesPerSecond: speedBytesPerSecond),
        eta: etaSeconds.map { humanDuration(seconds: $0) } ?? "-", connections: "\(connections)",
        retries: "\(retries)", nameWidth: nameWidth) + (pinned ? "  pinned" : "")
        + (rateLimitBytesPerSecond.map { "  at most \(humanBytes($0))/s" } ?? "")
        + (requestsLastMinute.map { count in
          count < Self.manyRequests ? "" : "  \(count) requests in the last minute"
        } ?? "")
    ]
    if let lastError { lines.append("    last error: \(escapingControls(lastError))") }
    lines += (mirrors ?? []).compactMap(\.textLine)
    if let waitingOpen { lines.append(waitingOpen.textLine) }
    for read in waitingReads {
      lines.append(
        "    read of \(humanBytes(read.byteCount)) at \(humanBytes(read.offset)) waits"
          + " \(decimal(read.waitedSeconds, fractionDigitCount: 1)) s:"
          + " \(escapingControls(read.reason))")
    }
    return lines
  }

  /// From this many requests per minute, one a second, the line mentions them.
  private static let manyRequests = 60

  fileprivate static func row(
    name: String, state: String, percent: String, cached: String, length: String, speed: String,
    eta: String, connections: String, retries: String, nameWidth: Int
  ) -> String {
    // A name that is longer than its column moves the rest to the right.
    let cells = [
      padded(name, to: nameWidth), padded(state, to: 11), padded(percent, to: 4, right: true),
      padded(cached, to: 10, right: true) + " / " + padded(length, to: 10),
      padded(speed, to: 12, right: true), padded(eta, to: 6, right: true),
      padded(connections, to: 4, right: true), padded(retries, to: 5, right: true),
    ]
    return cells.joined(separator: " ")
  }
}
