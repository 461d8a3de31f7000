import TextFormat

/// Reports progress as JSON objects, one per line (`--json`).
///
/// It writes a line for a file when the file's state changes, and at most once a second while bytes
/// flow. Byte counts are integers. Speeds in bytes per second and times in seconds have three
/// decimals. Unknown values are `null`. The objects:
///
/// - `{"event":"progress","id":…,"name":…,"url":…,"state":…,"reason":…,"error":…,"status":…,
///   "received":…,"total":…,"resumed":…,"speed":…,"eta":…,"elapsed":…,"connections":…}`; `state` is
///   `queued`, `connecting`, `running`, `waiting`, `paused`, `finished`, `failed` or `cancelled`;
///   `reason` belongs to `waiting` and `failed`, and is `unchanged` for a finished file that
///   already existed; `error` (a kind such as `timedOut`) and `status` (of HTTP) belong to
///   `failed`; for uploads, `sent` replaces `received`.
/// - `{"event":"summary","finished":…,"failed":…,"cancelled":…,"unfinished":…,"received":…,
///   "total":…,"resumed":…,"elapsed":…,"speed":…}`; `speed` is the mean of this run.
package struct JSONReporter: Sendable {
  /// The minimum number of seconds between two lines of a file whose state does not change.
  package static let shortestInterval = 1.0

  private enum Key: String, CodingKey {
    case event, id, name, url, state, reason, error, status, received, sent, total, resumed, speed,
      eta, elapsed
    case connections, finished, failed, cancelled, unfinished
  }

  private struct Told {
    var item: DisplayItem
    var time: Double
  }

  private var told: [Int: Told] = [:]

  package init() {}

  /// The lines about changes since the previous snapshot.
  ///
  /// - Parameter snapshot: the files now; not earlier than the previous snapshot.
  /// - Returns: JSON in UTF-8; each object ends with a line feed.
  package mutating func progress(for snapshot: DisplaySnapshot) -> [UInt8] {
    var writer = JSONWriter(capacity: 256)
    for index in snapshot.changing {
      let item = snapshot.items[index]
      if let last = told[item.id], last.item.state == item.state {
        let isDue = snapshot.elapsed - last.time >= Self.shortestInterval
        guard isDue && last.item != item else { continue }
      }
      told[item.id] = Told(item: item, time: snapshot.elapsed)
      Self.write(item, isUpload: snapshot.isUpload, to: &writer)
    }
    return writer.bytes
  }

  /// The last line, about all files.
  ///
  /// - Parameter snapshot: the files at the end.
  /// - Returns: a JSON object in UTF-8 with a line feed.
  package static func summary(of snapshot: DisplaySnapshot) -> [UInt8] {
    let totals = snapshot.totals
    var writer = JSONWriter(capacity: 256)
    writer.object { object in
      object.member(Key.event, "summary")
      object.member(Key.finished, totals.finishedCount)
      object.member(Key.failed, totals.failedCount)
      object.member(Key.cancelled, totals.cancelledCount)
      object.member(
        Key.unfinished, totals.pausedCount + totals.queuedCount + totals.activeCount)
      object.member(snapshot.isUpload ? Key.sent : .received, totals.transferredByteCount)
      object.member(Key.total, totals.totalByteCount)
      object.member(Key.resumed, totals.resumedByteCount)
      object.member(Key.elapsed, snapshot.elapsed)
      object.member(
        Key.speed,
        snapshot.elapsed > 0 ? Double(totals.newByteCount) / snapshot.elapsed : nil)
    }
    writer.newline()
    return writer.bytes
  }

  private static func write(_ item: DisplayItem, isUpload: Bool, to writer: inout JSONWriter) {
    var (state, reason) = words(for: item.state)
    if item.isUnchanged { reason = "unchanged" }
    writer.object { object in
      object.member(Key.event, "progress")
      object.member(Key.id, item.id)
      object.member(Key.name, item.name)
      object.member(Key.url, item.url)
      object.member(Key.state, state)
      object.member(Key.reason, reason)
      object.member(Key.error, item.errorCode)
      object.member(Key.status, item.httpStatus.map { Int64($0) })
      object.member(isUpload ? Key.sent : .received, item.transferredByteCount)
      object.member(Key.total, item.totalByteCount)
      object.member(Key.resumed, item.resumedByteCount)
      object.member(Key.speed, item.bytesPerSecond)
      object.member(Key.eta, item.timeLeft)
      object.member(Key.elapsed, item.elapsed)
      object.member(Key.connections, item.connections)
    }
    writer.newline()
  }

  private static func words(for state: DisplayItem.State) -> (state: String, reason: String?) {
    switch state {
    case .queued: ("queued", nil)
    case .connecting: ("connecting", nil)
    case .running: ("running", nil)
    case .waiting(let reason): ("waiting", reason)
    case .paused: ("paused", nil)
    case .finished: ("finished", nil)
    case .failed(let reason): ("failed", reason)
    case .cancelled: ("cancelled", nil)
    }
  }
}
