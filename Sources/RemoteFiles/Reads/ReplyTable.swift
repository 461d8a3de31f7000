internal import HTTPTransferCore

/// A read that has not been answered yet.
struct UnansweredRead: Sendable {
  var range: ByteRange
  let since: ContinuousClock.Instant
  let deadline: ContinuousClock.Instant
  let reply: any ReadReply
}

/// The replies of the waiting reads of one version.
struct ReplyTable {
  private var replies: [ReadID: any ReadReply] = [:]
  private var lastID = 0

  /// Keeps the reply of a read that must wait.
  mutating func keep(_ read: UnansweredRead) -> ParkedRead {
    lastID += 1
    let id = ReadID(rawValue: lastID)
    replies[id] = read.reply
    return ParkedRead(id: id, range: read.range, since: read.since, deadline: read.deadline)
  }

  /// Takes a read that waits no more, with its reply; nil if it was taken before.
  mutating func take(_ read: ParkedRead) -> UnansweredRead? {
    guard let reply = replies.removeValue(forKey: read.id) else { return nil }
    // Frees the memory: a mount may know thousands of versions without readers.
    if replies.isEmpty { replies = [:] }
    return UnansweredRead(
      range: read.range, since: read.since, deadline: read.deadline, reply: reply)
  }
}
