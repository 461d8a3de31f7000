import HTTPTransferCore

/// One request as a server logged it, whichever server it was.
struct LoggedRequest {
  let path: String
  let method: String
  /// The `Range` header field, where the request had one.
  let range: String?
  let status: Int
  let bodyByteCount: Int64
  /// The server's number of the connection that carried the request.
  let connection: Int
  /// When the request began and ended, in seconds of one clock.
  let start: Double
  let end: Double
  /// The version of HTTP as the server names it (`HTTP/1.1`, `HTTP/2.0`), where it says so.
  var protocolVersion: String?
  /// The bytes of the request's own body that the server read, where it says so.
  var requestBodyByteCount: Int64?
  /// Their FNV-1a hash, if there are any and the server says so.
  var requestBodyHash: String?
  /// The request's header fields by lower-case name, where the server says so.
  var fields: [String: String] = [:]
  /// The fault that the response had, if there was one and the server says so.
  var fault: String?
  /// The rule of a script that answered, if there was one and the server says so.
  var rule: String?

  /// Where the body begins in the resource.
  fileprivate var firstByte: Int64 {
    guard status == 206, let range, range.hasPrefix("bytes=") else { return 0 }
    return Int64(range.dropFirst(6).prefix { $0 != "-" }) ?? 0
  }

  /// Whether less was sent than the range that was requested has, as where the client has closed the
  /// connection.
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

  /// The body bytes that the server sent, each of a path once: a byte that two requests asked for, as a
  /// hedged one does, counts once.
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

  /// How many of these requests may be hedges, which ask for what another one is to bring, as where
  /// the machine stalls for a moment: one, and 5 % of all (docs/SEMANTICS.md).
  var greatestHedgeCount: Int { 1 + count / 20 }

  /// The most that hedges and requests that were cut off may bring twice.
  ///
  /// Of a hedge and the request that it asks again for one brings the bytes, and at most the body of
  /// the other one was sent in vain. A request whose second half another connection has taken over is cut
  /// off, and so may be one in ten. In vain is of each no more than the sockets hold.
  var greatestVainByteCount: Int64 {
    let vain = sorted { $0.bodyByteCount > $1.bodyByteCount }.prefix(greatestHedgeCount)
    let cutOff = filter(\.wasCutOff).prefix(1 + count / 10)
    return (vain + cutOff).reduce(0) {
      $0 + Swift.min($1.bodyByteCount, SocketQueues.greatestByteCount)
    }
  }

  /// The largest number of requests that were in flight at one moment: for lower bounds.
  var peakConcurrency: Int { concurrency(endingEarlierBy: 0) }

  /// As ``peakConcurrency``, without overlaps of less than 0.1 s: for upper bounds.
  ///
  /// A busy server notes the end of a response when the client, which has all of it, may have begun the
  /// next request.
  var sustainedConcurrency: Int { concurrency(endingEarlierBy: 0.1) }

  private func concurrency(endingEarlierBy seconds: Double) -> Int {
    var changes =
      map { ($0.start, 1) } + map { (Swift.max($0.start, $0.end - seconds), -1) }
    // At equal times ends come first: requests that only touch do not overlap.
    changes.sort { ($0.0, $0.1) < ($1.0, $1.1) }
    var current = 0
    var peak = 0
    for (_, change) in changes {
      current += change
      peak = Swift.max(peak, current)
    }
    return peak
  }

  /// Seconds from the first request's beginning to the last one's end.
  var span: Double {
    guard let first = map(\.start).min(), let last = map(\.end).max() else { return 0 }
    return last - first
  }

  /// The requests for `path`.
  func of(path: String) -> [LoggedRequest] { filter { $0.path == path } }
}
