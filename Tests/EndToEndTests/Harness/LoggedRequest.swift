import HTTPTransferCore

/// One request in the log of any server.
struct LoggedRequest {
  let path: String
  let method: String
  /// The `Range` header field, if the request had one.
  let range: String?
  let status: Int
  let bodyByteCount: Int64
  /// The server's number of the connection that carried the request.
  let connection: Int
  /// When the request began and ended, in seconds of one clock.
  let start: Double
  let end: Double
  /// The version of HTTP as the server names it (`HTTP/1.1`, `HTTP/2.0`), if it logs it.
  var protocolVersion: String?
  /// The number of bytes that the server read of the request's body, if it logs it.
  var requestBodyByteCount: Int64?
  /// The FNV-1a hash of those bytes, if there are any and the server logs it.
  var requestBodyHash: String?
  /// The request's header fields by lower-case name, if the server logs them.
  var fields: [String: String] = [:]
  /// The fault of the response, if it had one and the server logs it.
  var fault: String?
  /// The script rule that answered, if there was one and the server logs it.
  var rule: String?

  /// The offset in the resource at which the body begins.
  fileprivate var firstByte: Int64 {
    guard status == 206, let range, range.hasPrefix("bytes=") else { return 0 }
    return Int64(range.dropFirst(6).prefix { $0 != "-" }) ?? 0
  }

  /// Whether the server sent less than the requested range, for example because the client closed
  /// the connection.
  fileprivate var wasCutOff: Bool {
    guard status == 206, let end = range?.split(separator: "-").last.flatMap({ Int64($0) }) else {
      return false
    }
    return bodyByteCount < end + 1 - firstByte
  }
}

extension [LoggedRequest] {
  /// The body bytes that the server sent.
  var bodyByteCount: Int64 { reduce(0) { $0 + $1.bodyByteCount } }

  /// The body bytes that the server sent, counting each byte of a path once.
  ///
  /// A byte that two requests fetched, such as a hedged one, counts once.
  var distinctBodyByteCount: Int64 {
    var sent: [String: ExtentSet] = [:]
    for request in self where request.bodyByteCount > 0 {
      sent[request.path, default: ExtentSet()].insert(
        ByteRange(offset: request.firstByte, byteCount: request.bodyByteCount))
    }
    return sent.values.reduce(0) { $0 + $1.byteCount }
  }

  /// The body bytes of a path that the server sent beyond the first time.
  var repeatedByteCount: Int64 { bodyByteCount - distinctBodyByteCount }

  /// The maximum number of hedges among these requests: one plus 5 % of all (docs/SEMANTICS.md).
  ///
  /// A hedge requests bytes that are already in flight, for example because the machine stalled for
  /// a moment.
  var maximumHedgeCount: Int { 1 + count / 20 }

  /// The maximum number of bytes that hedges and cut-off requests may send in vain.
  ///
  /// Of a hedge and the request that it duplicates, one delivers the bytes, and at most the body of
  /// the other one is wasted. A request whose second half another connection has taken over is cut
  /// off, which may concern one in ten. Each of these wastes at most the content of the sockets.
  var maximumVainByteCount: Int64 {
    let vain = sorted { $0.bodyByteCount > $1.bodyByteCount }.prefix(maximumHedgeCount)
    let cutOff = filter(\.wasCutOff).prefix(1 + count / 10)
    return (vain + cutOff).reduce(0) {
      $0 + Swift.min($1.bodyByteCount, SocketQueues.maximumByteCount)
    }
  }

  /// The largest number of requests in flight at one moment: for lower bounds.
  var peakConcurrency: Int { concurrency(endingEarlierBy: 0) }

  /// Like ``peakConcurrency``, without overlaps of less than 0.1 s: for upper bounds.
  ///
  /// A busy server may log the end of a response after the client has received all of it and begun
  /// the next request.
  var sustainedConcurrency: Int { concurrency(endingEarlierBy: 0.1) }

  private func concurrency(endingEarlierBy seconds: Double) -> Int {
    var changes =
      map { ($0.start, 1) } + map { (Swift.max($0.start, $0.end - seconds), -1) }
    // At equal times, ends precede beginnings: requests that only touch do not overlap.
    changes.sort { ($0.0, $0.1) < ($1.0, $1.1) }
    var current = 0
    var peak = 0
    for (_, change) in changes {
      current += change
      peak = Swift.max(peak, current)
    }
    return peak
  }

  /// Seconds from the beginning of the first request to the end of the last one.
  var span: Double {
    guard let first = map(\.start).min(), let last = map(\.end).max() else { return 0 }
    return last - first
  }

  /// The requests for `path`.
  func of(path: String) -> [LoggedRequest] { filter { $0.path == path } }
}
