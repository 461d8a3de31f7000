import MountStatus
import TextFormat

/// The details of one file, below the table.
enum FileDetails {
  /// The lines, the most urgent first.
  static func lines(of file: FileStatus, _ type: Typesetting) -> [StyledLine] {
    var lines: [StyledLine] = [StyledLine(type.shown(file.name), .strong)]
    if let read = file.waitingReads.max(by: { $0.waitedSeconds < $1.waitedSeconds }) {
      let more = file.waitingReads.count - 1
      let text =
        "\(humanBytes(read.byteCount)) at \(humanBytes(read.offset)) for"
        + " \(decimal(read.waitedSeconds, fractionDigitCount: 1)) s"
        + (more > 0 ? " (and \(more) more)" : "") + ": \(type.shown(read.reason))"
      lines.append(line("waiting", text, .warning))
    } else if let open = file.waitingOpen {
      let time = decimal(open.waitedSeconds, fractionDigitCount: 1)
      lines.append(line("waiting", "open for \(time) s: \(type.shown(open.reason))", .warning))
    }
    if let error = file.lastError { lines.append(line("error", type.shown(error), .bad)) }
    for mirror in file.mirrors ?? [] where mirror.state == .refused || mirror.state == .resting {
      let reason = mirror.reason.map { ": \($0)" } ?? ""
      lines.append(
        line(
          "mirror", type.shown("\(mirror.url) is \(mirror.state.rawValue)\(reason)"),
          mirror.state == .refused ? .bad : .warning))
    }
    lines.append(line("bytes", bytes(of: file)))
    lines.append(line("version", version(of: file, type)))
    lines.append(line("url", type.shown(file.url)))
    return lines
  }

  private static func line(_ label: String, _ text: String, _ style: LineStyle = .plain)
    -> StyledLine
  {
    var line = StyledLine()
    line.append(label + String(repeating: " ", count: max(1, 9 - label.utf8.count)), .faint)
    line.append(text, style)
    return line
  }

  /// `12 MiB of 48 MiB cached, 13 MiB fetched, 4 requests, 2 retries`.
  private static func bytes(of file: FileStatus) -> String {
    var parts = [
      "\(humanBytes(file.cachedBytes)) of \(file.length.map(humanBytes) ?? "?") cached",
      "\(humanBytes(file.fetchedBytes)) fetched", counted(file.requests, "request"),
      "\(file.retries) \(file.retries == 1 ? "retry" : "retries")",
    ]
    if file.damagedBytes > 0 { parts.append("\(humanBytes(file.damagedBytes)) were damaged") }
    return parts.joined(separator: ", ")
  }

  private static func version(of file: FileStatus, _ type: Typesetting) -> String {
    var parts = [file.validator.map(type.shown) ?? "not known yet"]
    if let limit = file.rateLimitBytesPerSecond { parts.append("at most \(humanBytes(limit))/s") }
    if file.pinned { parts.append("pinned") }
    if file.passthrough { parts.append("read by the kernel itself") }
    return parts.joined(separator: ", ")
  }
}
