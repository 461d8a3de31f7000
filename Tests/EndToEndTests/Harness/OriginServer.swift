import Foundation
import Glibc

/// Our deterministic `Origin`, as a child process.
final class OriginServer {
  let port: UInt16
  private let process: ChildProcess

  /// Starts the server on a free port and waits until it listens.
  ///
  /// - Parameters:
  ///   - root: a directory whose files are served below `/files/`.
  ///   - port: a fixed port, to replace an earlier server.
  /// - Throws: `HarnessError` if it does not listen in time.
  init(root: String? = nil, port: UInt16 = 0) throws {
    var arguments = [try Products.origin, "--port", String(port)]
    if let root { arguments += ["--root", root] }
    let process = try ChildProcess(arguments)
    self.process = process
    var found: UInt16?
    _ = Deadline(after: .seconds(10)).wait {
      let line = process.standardOutput.split(separator: "\n").first {
        $0.hasPrefix("listening on ")
      }
      found = line?.split(separator: ":").last.flatMap { UInt16($0) }
      return found != nil || !process.isRunning
    }
    guard let found else {
      throw HarnessError("Origin did not start: \(process.standardError)")
    }
    self.port = found
  }

  deinit { stop() }

  /// The URL of a deterministic resource.
  ///
  /// - Parameters:
  ///   - name: its path below `/data/`.
  ///   - length: its complete length in bytes.
  ///   - seed: the seed of its bytes.
  ///   - query: parameters other than length and seed, such as `rate=10m`.
  /// - Returns: the URL.
  func url(_ name: String, length: Int64, seed: UInt64, query: String = "") -> String {
    let extra = query.isEmpty ? "" : "&" + query
    return "http://127.0.0.1:\(port)/data/\(name)?length=\(length)&seed=\(seed)\(extra)"
  }

  /// The URL of a link to a deterministic resource, signed for `lifetime` seconds.
  func signedURL(
    _ name: String, length: Int64, seed: UInt64, lifetime: Int = 3, query: String = ""
  ) -> String {
    url(name, length: length, seed: seed, query: query)
      .replacingOccurrences(of: "/data/", with: "/signed/") + "&lifetime=\(lifetime)"
  }

  /// Scheme, host and port of its URLs.
  var origin: String { "http://127.0.0.1:\(port)" }

  /// The URL of a file below the root.
  func fileURL(_ path: String) -> String { "http://127.0.0.1:\(port)/files/\(path)" }

  /// From now on, overrides parameters of all resources whose path matches `pattern`.
  func control(_ pattern: String, _ parameters: [String: String]) throws {
    try post(["match": pattern, "parameters": parameters])
  }

  /// From now on, withholds the last bytes of resources of `length` bytes.
  ///
  /// No download of them then ends in the middle of a test: responses that include the last byte
  /// stop after 1 MiB, and others continue.
  func holdEnds(
    ofLength length: Int64, _ parameters: [String: String] = [:], matching pattern: String = "*"
  ) throws {
    let hold = [
      "fault": "stall", "fault-at": "1m", "fault-range": "\(length - 1)-\(length - 1)",
    ]
    try control(pattern, hold.merging(parameters) { $1 })
  }

  /// Removes all overrides.
  func clearControl() throws {
    try post(["clear": true])
  }

  /// The requests that have ended so far, once no more end.
  func requests() throws -> [LoggedRequest] {
    var last = ""
    _ = try Deadline(after: .seconds(5)).wait(every: .milliseconds(150)) {
      let now = try fetch("/log")
      defer { last = now }
      return now == last
    }
    return try last.split(separator: "\n").map { line in
      let entry = try JSONDecoder().decode(Entry.self, from: Data(line.utf8))
      return LoggedRequest(
        path: entry.path, method: entry.method, range: entry.range, status: entry.status ?? 0,
        bodyByteCount: entry.body_bytes, connection: entry.connection, start: entry.time_ms / 1000,
        end: (entry.time_ms + entry.duration_ms) / 1000,
        requestBodyByteCount: entry.request_body_bytes, requestBodyHash: entry.request_body_hash,
        fields: entry.headers, fault: entry.fault, rule: entry.rule)
    }.filter { entry in
      ["/data/", "/files/", "/signed/"].contains { entry.path.hasPrefix($0) }
    }
  }

  /// The number of requests in flight, except this one.
  func activeRequestCount() throws -> Int {
    let stats = try JSONSerialization.jsonObject(with: Data(fetch("/stats").utf8))
    return (stats as? [String: Any])?["active_requests"] as? Int ?? 0
  }

  /// The requests so far, once none is in flight, such as those of a killed client; clears the log.
  func takeRequests() throws -> [LoggedRequest] {
    let hasEnded = try Deadline(after: .seconds(10)).wait(every: .milliseconds(50)) {
      try activeRequestCount() == 0
    }
    guard hasEnded else { throw HarnessError("requests to Origin do not end") }
    let ended = try requests()
    try clearLog()
    return ended
  }

  /// Clears the log.
  func clearLog() throws {
    try output(of: curl + ["-X", "POST", "http://127.0.0.1:\(port)/log/clear"])
  }

  /// Sends a signal to the server, such as SIGSTOP.
  func signal(_ number: CInt) { process.signal(number) }

  /// Ends the server; later connections are refused.
  func stop() {
    process.signal(SIGTERM)
    if process.wait(within: .seconds(3)) == nil { process.kill() }
  }

  private let curl = ["curl", "-sS", "--fail", "--noproxy", "*", "--max-time", "20"]

  private func fetch(_ path: String) throws -> String {
    try output(of: curl + ["http://127.0.0.1:\(port)\(path)"])
  }

  /// Sends a message to `/control`; docs/ORIGIN.md describes its content.
  func post(_ message: [String: Any]) throws {
    let body = String(decoding: try JSONSerialization.data(withJSONObject: message), as: UTF8.self)
    try output(of: curl + ["--data-binary", body, "http://127.0.0.1:\(port)/control"])
  }

  /// A line of the Origin's request log; see docs/ORIGIN.md.
  private struct Entry: Decodable {
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let time_ms: Double
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let duration_ms: Double
    let connection: Int
    let method: String
    let path: String
    let range: String?
    /// Null if no head was sent.
    let status: Int?
    let headers: [String: String]
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let body_bytes: Int64
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let request_body_bytes: Int64
    /// Null if no body was read.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    let request_body_hash: String?
    let fault: String?
    let rule: String?
  }
}
