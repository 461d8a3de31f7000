extension StatusReport {
  /// The report for people, as `.status` shows it: three lines of totals, then a line for each file
  /// with indented lines for its last error and for the reads that wait.
  public func text() -> String {
    var lines = headerLines
    lines.append("")
    let nameWidth = Self.nameWidth(of: files[...])
    lines.append(Self.columnTitles(nameWidth: nameWidth))
    for file in files {
      lines.append(contentsOf: file.textLines(nameWidth: nameWidth))
    }
    return lines.joined(separator: "\n") + "\n"
  }

  /// The report for a terminal: no more than `rowCount` lines of `columnCount` characters.
  ///
  /// Where not all files fit, those in which something happens come first, and the last line says
  /// how many are left out.
  public func screen(rowCount: Int, columnCount: Int) -> String {
    var lines = headerLines
    lines.append("")
    let order = files.sorted { Self.urgency($0) < Self.urgency($1) }
    // The titles and the line that counts the rest need a place, too.
    let room = max(0, rowCount - lines.count - 2)
    // On 80 columns that leaves all figures but the connections and retries.
    let nameWidth = min(
      Self.nameWidth(of: order.prefix(room)), max(16, columnCount - FileStatus.figuresWidth))
    lines.append(Self.columnTitles(nameWidth: nameWidth))
    var shownCount = 0
    var usedCount = 0
    for file in order {
      let block = file.textLines(nameWidth: nameWidth, shortensName: true)
      guard usedCount + block.count <= room || shownCount == 0 else { break }
      lines.append(contentsOf: block)
      usedCount += block.count
      shownCount += 1
    }
    if shownCount < files.count {
      lines.append("… and \(counted(files.count - shownCount, "more file"))")
    }
    return lines.prefix(max(1, rowCount)).map { String($0.prefix(max(1, columnCount))) }
      .joined(separator: "\n") + "\n"
  }

  /// Waiting first, then moving, then broken, then the rest; the order within is the list's.
  private static func urgency(_ file: FileStatus) -> Int {
    if !file.waitingReads.isEmpty || file.state == .waiting { return 0 }
    switch file.state {
    case .downloading, .streaming, .prefetching: return 1
    case .failed, .stale, .offline: return 2
    case .idle, .paused, .waiting: return 3
    case .complete: return 4
    case .unknown: return 5
    }
  }

  private var headerLines: [String] {
    let share =
      totals.length > 0
      ? " (\(percentage(of: totals.cachedBytes, in: totals.length))%)" : ""
    let uptime = humanDuration(seconds: uptimeSeconds.rounded(.down))
    // Files are fetched side by side: the last one to end decides.
    let eta = files.compactMap(\.etaSeconds).max()
    var lines = [
      "httpfs \(escapingControls(mountpoint))  up \(uptime)",
      [
        counted(totals.files, "file"), "\(totals.completeFiles) complete",
        "\(humanBytes(totals.cachedBytes)) of \(humanBytes(totals.length)) cached" + share,
        "\(humanBytes(totals.fetchedBytes)) fetched",
      ].joined(separator: ", "),
      [
        "\(humanBytes(totals.speedBytesPerSecond))/s",
        "ETA \(eta.map { humanDuration(seconds: $0) } ?? "-")",
        counted(totals.connections, "connection"), counted(totals.requests, "request"),
        "\(totals.retries) \(totals.retries == 1 ? "retry" : "retries")",
        counted(totals.waitingReads, "waiting read"),
      ].joined(separator: ", "),
    ]
    if !verifiesServers {
      lines.append("https servers are NOT verified (--insecure): what they send may be anybody's")
    }
    if totals.damagedBytes > 0 {
      lines.append("\(humanBytes(totals.damagedBytes)) of the cache were damaged: fetched again")
    }
    if let error = cache.error {
      lines.append("the cache fails, files are read without it: \(escapingControls(error))")
    }
    return lines
  }

  private static func nameWidth(of files: ArraySlice<FileStatus>) -> Int {
    // One very long name does not push all figures off the screen.
    let longest = files.lazy.map { escapingControls($0.name).count }.max() ?? 0
    return min(60, max(4, longest))
  }

  private static func columnTitles(nameWidth: Int) -> String {
    FileStatus.row(
      name: "NAME", state: "STATE", percent: "%", cached: "CACHED", length: "LENGTH",
      speed: "SPEED", eta: "ETA", connections: "CONN", retries: "RETRY", nameWidth: nameWidth)
  }
}

extension FileStatus {
  /// How many characters the columns after the name take.
  static let figuresWidth = 72

  /// The lines of `.status` for this file.
  fileprivate func textLines(nameWidth: Int, shortensName: Bool = false) -> [String] {
    var shownName = escapingControls(name)
    if shortensName, shownName.count > nameWidth {
      // The end tells files of one directory apart.
      shownName = "…" + shownName.suffix(nameWidth - 1)
    }
    var lines = [
      Self.row(
        name: shownName, state: state.rawValue, percent: percent.map { "\($0)%" } ?? "?",
        cached: humanBytes(cachedBytes), length: length.map(humanBytes) ?? "?",
        speed: humanBytes(speedBytesPerSecond) + "/s",
        eta: etaSeconds.map { humanDuration(seconds: $0) } ?? "-", connections: "\(connections)",
        retries: "\(retries)", nameWidth: nameWidth) + (pinned ? "  pinned" : "")
    ]
    if let lastError { lines.append("    last error: \(escapingControls(lastError))") }
    lines += (mirrors ?? []).compactMap(\.textLine)
    for read in waitingReads {
      lines.append(
        "    read of \(humanBytes(read.byteCount)) at \(humanBytes(read.offset)) waits"
          + " \(decimal(read.waitedSeconds, fractionDigitCount: 1)) s:"
          + " \(escapingControls(read.reason))")
    }
    return lines
  }

  fileprivate static func row(
    name: String, state: String, percent: String, cached: String, length: String, speed: String,
    eta: String, connections: String, retries: String, nameWidth: Int
  ) -> String {
    // A name longer than its column moves the rest to the right.
    let cells = [
      padded(name, to: nameWidth), padded(state, to: 11), padded(percent, to: 4, right: true),
      padded(cached, to: 10, right: true) + " / " + padded(length, to: 10),
      padded(speed, to: 12, right: true), padded(eta, to: 6, right: true),
      padded(connections, to: 4, right: true), padded(retries, to: 5, right: true),
    ]
    return cells.joined(separator: " ")
  }

  private static func padded(_ text: String, to width: Int, right: Bool = false) -> String {
    let spaces = String(repeating: " ", count: max(0, width - text.count))
    return right ? spaces + text : text + spaces
  }
}
