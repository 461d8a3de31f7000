import SeededRandom

/// Makes heads of responses: valid ones, odd ones, and ones that misstate their bytes.
enum HeadGrammar {
  /// The lines of a final head, with line endings and the blank line at the end.
  ///
  /// - Parameters:
  ///   - asked: the requested range; nil for the whole.
  ///   - generator: makes all choices.
  /// - Returns: the bytes of the head, perhaps with an interim one before it and lines after it.
  static func head(
    asked: Range<Int64>?, using generator: inout SeededGenerator
  ) -> [UInt8] {
    let status = statusLine(asked: asked, using: &generator)
    var lines: [String] = []
    let length = generator.isOnce(in: 4) ? generator.edgeNumber() : 5000
    let range = partRange(asked ?? 0..<max(length, 1), length: length, using: &generator)
    if status.contains(" 206") || generator.isOnce(in: 6) {
      lines.append("Content-Range: \(contentRange(range, length: length, using: &generator))")
    }
    if generator.isOnce(in: 12) { lines.append("content-range: bytes 0-1/2") }
    if !generator.isOnce(in: 4) {
      let count = status.contains(" 206") ? range.last &- range.first &+ 1 : length
      lines.append("Content-Length: \(generator.isOnce(in: 8) ? generator.edgeNumber() : count)")
    }
    if generator.isOnce(in: 20) { lines.append("Content-Length: 5000") }
    if generator.isOnce(in: 12) { lines.append("Transfer-Encoding: chunked") }
    if generator.isOnce(in: 2) {
      lines.append("ETag: " + generator.pick(["\"v1\"", "W/\"v1\"", "v1", "\"\"", "\"a\"b\""]))
    }
    if generator.isOnce(in: 3) { lines.append("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT") }
    if generator.isOnce(in: 8) {
      lines.append(
        "Content-Type: "
          + generator.pick(["multipart/byteranges; boundary=x", "text/html", "MULTIPART/x"]))
    }
    if generator.isOnce(in: 10) {
      lines.append("Content-Encoding: " + generator.pick(["gzip", "identity", "br", ""]))
    }
    if generator.isOnce(in: 5) {
      let delays = ["0", "5", "-1", "99999999999999999999", "86401", " 7 ", "1.5", "x"]
      lines.append("Retry-After: " + generator.pick(delays))
    }
    if generator.isOnce(in: 15) { lines.append(" folded") }
    if generator.isOnce(in: 15) { lines.append("no colon here") }
    if generator.isOnce(in: 15) { lines.append("bad name: x") }
    if generator.isOnce(in: 3) { lines.shuffle(using: &generator) }
    let ending = generator.pick(["\r\n", "\r\n", "\r\n", "\n"])
    var text = ""
    if generator.isOnce(in: 10) { text += "HTTP/1.1 103 Hints\(ending)Link: x\(ending)\(ending)" }
    text += ([status] + lines).map { $0 + ending }.joined() + ending
    if generator.isOnce(in: 20) { text += "ETag: \"trailer\"\(ending)\(ending)" }
    return Array(text.utf8)
  }

  private static func statusLine(
    asked: Range<Int64>?, using generator: inout SeededGenerator
  ) -> String {
    if !generator.isOnce(in: 3) {
      return asked == nil || generator.isOnce(in: 5)
        ? "HTTP/1.1 200 OK" : "HTTP/1.1 206 Partial Content"
    }
    let statuses = [
      "HTTP/1.0 206 Partial Content", "HTTP/1.1 304 Not Modified", "HTTP/1.1 416 No", "HTTP/2 206 ",
      "HTTP/1.1 412 Failed", "HTTP/1.1 404", "HTTP/1.1 410 Gone", "HTTP/1.1 401 No",
      "HTTP/1.1 403 No", "HTTP/1.1 407 No", "HTTP/1.1 408 x", "HTTP/1.1 425 x", "HTTP/1.1 429 x",
      "HTTP/1.1 500 x", "HTTP/1.1 503 x", "HTTP/1.1 599 x", "HTTP/1.1 204 x", "HTTP/1.1 999 x",
      "HTTP/1.1 099 x", "HTTP/1.1 2060 x", "HTTP/1.1 -20 x", "HTTP/1.1", "HTTP/1.1  206 x",
      "ICY 200",
      "HTTP/1.1 101 Switching", "HTTP/1.1 302 Found",
    ]
    return generator.pick(statuses)
  }

  /// The first and last byte that a part claims to hold: right ones, shifted ones, and nonsense.
  private static func partRange(
    _ asked: Range<Int64>, length: Int64, using generator: inout SeededGenerator
  ) -> (first: Int64, last: Int64) {
    let last = min(asked.upperBound, max(length, 1)) &- 1
    switch Int.random(in: 0..<8, using: &generator) {
    case 0: return (asked.lowerBound &+ generator.pick([-1, 1, -4096]), last)
    case 1: return (asked.lowerBound, last &+ generator.pick([-1, 1, 100]))
    case 2: return (0, length &- 1)
    case 3: return (generator.edgeNumber(), generator.edgeNumber())
    default: return (asked.lowerBound, last)
    }
  }

  private static func contentRange(
    _ range: (first: Int64, last: Int64), length: Int64, using generator: inout SeededGenerator
  ) -> String {
    let right = "bytes \(range.first)-\(range.last)/\(length)"
    guard generator.isOnce(in: 5) else { return right }
    return generator.pick([
      "bytes \(range.first)-\(range.last)/*", "bytes */\(length)", "bytes */*",
      "bytes=\(range.first)-\(range.last)/\(length)",
      "BYTES \(range.first)-\(range.last)/\(length)",
      "bytes  \(range.first)-\(range.last)/\(length) ",
      "bytes \(range.first) - \(range.last)/\(length)",
      "items \(range.first)-\(range.last)/\(length)",
      "bytes \(range.last)-\(range.first)/\(length)",
      "bytes +\(range.first)-\(range.last)/\(length)",
      "bytes 00\(range.first)-\(range.last)/\(length)",
      "bytes \(range.first)-\(range.last)", "bytes \(range.first)-/\(length)", "", "bytes",
      "bytes ٣-٤/\(length)", right + ", " + right,
    ])
  }
}
