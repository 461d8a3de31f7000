internal import HTTPTransferCore

/// A read that is not answered yet.
struct UnansweredRead: Sendable {
  var range: ByteRange
  let since: ContinuousClock.Instant
  let deadline: ContinuousClock.Instant
  let reply: any ReadReply
}

/// Who is to be told what becomes of the reads of one version that wait.
struct ReplyTable {
  private var replies: [ReadID: any ReadReply] = [:]
  private var lastID = 0

  /// Keeps the reply of a read that is to wait.
  mutating func keep(_ read: UnansweredRead) -> ParkedRead {
    lastID += 1
    let id = ReadID(rawValue: lastID)
    replies[id] = read.reply
    return ParkedRead(id: id, range: read.range, since: read.since, deadline: read.deadline)
  }

  /// The read that waits no more, with its reply; nil where that was taken before.
  mutating func take(_ read: ParkedRead) -> UnansweredRead? {
    guard let reply = replies.removeValue(forKey: read.id) else { return nil }
    // A mount may know thousands of versions that nobody reads.
    if replies.isEmpty { replies = [:] }
    return UnansweredRead(
      range: read.range, since: read.since, deadline: read.deadline, reply: reply)
  }
}
