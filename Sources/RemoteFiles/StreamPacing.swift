internal import HTTPTransferCore

/// How far a stream may be ahead of its reader before it is paused.
///
/// Where only memory takes its bytes, they would be given up before the reader comes to them, and be asked
/// for again with all that lies before them. Where the disk has hardly any room left, a stream without end
/// would take what others need.
struct StreamPacing: Sendable {
  /// The most that is read ahead for one reader of a file that memory must hold: what comes earlier than it is
  /// read would be given up again.
  static let readAheadByteCount: Int64 = 4 << 20

  /// How far may be read ahead, where memory must hold it; nil for as far as is worth it.
  private(set) var readAheadLimit: Int64?
  /// Whether less is free on the disk under the cache than is to stay free.
  private var isDiskShort = false

  mutating func limitReadAhead(to byteCount: Int64?) { readAheadLimit = byteCount }

  mutating func noteDisk(isShort: Bool) { isDiskShort = isShort }

  /// Whether to pause a stream for its reader; a paused stream waits until the distance has halved.
  func isAhead(_ segment: Segment, of content: ContentMap, for demand: VersionDemand) -> Bool {
    guard let lead = greatestLead(for: demand), segment.isWhole else { return false }
    let limit = segment.awaitsReaderSince == nil ? lead : lead / 2
    return segment.position - demand.activity.lastReadEnd > limit
      && !demand.parked.reads.contains {
        content.needed(for: $0.range).upperBound > segment.position
      }
  }

  /// How far a stream may be ahead of its reader; nil for as far as it comes.
  private func greatestLead(for demand: VersionDemand) -> Int64? {
    let isBounded = isDiskShort && !demand.isPrefetching
    return readAheadLimit ?? (isBounded ? FileSettings.unreadStreamByteCount : nil)
  }

  /// What becomes of a paused stream.
  enum Decision {
    case stay
    case resume
    /// A read waits for bytes that it has brought, and that were given up since: it is to begin again.
    case end
  }

  func decision(
    on segment: Segment, of content: ContentMap, for demand: VersionDemand
  ) -> Decision {
    let isPassed = demand.parked.reads.contains { read in
      let hole = content.absent(in: content.needed(for: read.range)).first
      return hole.map { $0.lowerBound < segment.storedEnd } ?? false
    }
    if isPassed { return .end }
    return isAhead(segment, of: content, for: demand) ? .stay : .resume
  }

  /// Whether nobody comes for what a paused stream could bring: it keeps a place at its server, which others
  /// may wait for, and can begin again.
  func isAbandoned(
    _ segment: Segment, by demand: VersionDemand, now: ContinuousClock.Instant
  ) -> Bool {
    guard let since = segment.awaitsReaderSince, demand.parked.isEmpty else { return false }
    guard let lastReadAt = demand.activity.lastReadAt else {
      return now - since > FileSettings.unreadStreamPatience
    }
    return now - max(since, lastReadAt) > FileSettings.idleStreamPatience
  }
}
