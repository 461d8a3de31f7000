import SeededRandom

/// A file that a ``ScriptedServer`` serves, with ranges and validators.
struct ServedFile: Sendable {
  var bytes: [UInt8]
  /// The `ETag` field; nil for none.
  var entityTag: String? = "\"v1\""
  var lastModified: String?
  /// The `Date` field of responses; nil for none.
  var date: String?
  /// Whether a range is answered with 206; otherwise the whole file is sent with 200.
  var servesRanges = true
  /// The number of bytes after which the first body stops, until the client disconnects; nil for
  /// none.
  var heldAfter: Int?
  /// Whether bodies are sent at about 12 MB/s, so several connections pay.
  var isPaced = false

  /// `byteCount` random bytes, the same for each `seed`.
  static func randomBytes(_ byteCount: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(byteCount + 8)
    while bytes.count < byteCount {
      withUnsafeBytes(of: generator.next()) { bytes += $0 }
    }
    bytes.removeLast(bytes.count - byteCount)
    return bytes
  }

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  init(byteCount: Int, seed: UInt64 = 1) { bytes = Self.randomBytes(byteCount, seed: seed) }

  /// The answer to a `GET`, and to a `HEAD`.
  func answer(_ request: ReceivedRequest) -> [ScriptedServer.Step] {
    var lines: [String] = []
    if let entityTag { lines.append("ETag: \(entityTag)") }
    if let date { lines.append("Date: \(date)") }
    if let lastModified { lines.append("Last-Modified: \(lastModified)") }
    var body = bytes[...]
    var status = "200 OK"
    if servesRanges, let range = request.range {
      guard range.first < bytes.count else {
        return Self.head("416 Range Not Satisfiable", ["Content-Range: bytes */\(bytes.count)"], 0)
      }
      let end = min(bytes.count, (range.last ?? bytes.count - 1) + 1)
      body = bytes[range.first..<end]
      status = "206 Partial Content"
      lines.append("Content-Range: bytes \(range.first)-\(end - 1)/\(bytes.count)")
    }
    let head = Self.head(status, lines, body.count)
    if request.method == "HEAD" { return head }
    if let heldAfter, heldAfter < body.count {
      return head + [.send(Array(body.prefix(heldAfter))), .hold]
    }
    guard isPaced else { return head + [.send(Array(body))] }
    return head
      + stride(from: body.startIndex, to: body.endIndex, by: 64 << 10).flatMap { start in
        [
          .send(Array(body[start..<min(start + (64 << 10), body.endIndex)])),
          .pause(milliseconds: 5),
        ]
      }
  }

  private static func head(
    _ status: String, _ fields: [String], _ byteCount: Int
  ) -> [ScriptedServer.Step] {
    let lines = ["HTTP/1.1 \(status)"] + fields + ["Content-Length: \(byteCount)", "", ""]
    return [.text(lines.joined(separator: "\r\n"))]
  }
}
