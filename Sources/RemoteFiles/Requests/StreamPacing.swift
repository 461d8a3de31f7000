internal import HTTPTransferCore

/// How far a stream may be ahead of its reader before it is paused.
///
/// If only memory takes its bytes, they would be dropped before the reader reaches them, and the
/// whole stream would have to begin again. If the disk has hardly any room left, a stream without
/// end would use up the space that others need.
struct StreamPacing: Sendable {
  /// The most that is read ahead for one reader of a file that memory must hold: bytes further
  /// ahead would be dropped before they are read.
  static let readAheadByteCount: Int64 = 4 << 20

  /// How far may be read ahead if memory must hold it; nil for no limit.
  private(set) var readAheadLimit: Int64?
  /// Whether the disk under the cache has less free space than it must keep.
  private var isDiskShort = false

  mutating func limitReadAhead(to byteCount: Int64?) { readAheadLimit = byteCount }

  mutating func recordDisk(isShort: Bool) { isDiskShort = isShort }

  /// Whether to pause a stream for its reader; a paused stream waits until the distance has halved.
  func isAhead(_ segment: Segment, of content: ContentMap, for demand: VersionDemand) -> Bool {
    guard let lead = maximumLead(for: demand), segment.isWhole else { return false }
    let limit = segment.awaitsReaderSince == nil ? lead : lead / 2
    return segment.position - demand.activity.lastReadEnd > limit
      && !demand.parked.reads.contains {
        content.needed(for: $0.range).upperBound > segment.position
      }
  }

  /// How far a stream may be ahead of its reader; nil for no limit.
  private func maximumLead(for demand: VersionDemand) -> Int64? {
    let isBounded = isDiskShort && !demand.isPrefetching
    return readAheadLimit ?? (isBounded ? FileSettings.unreadStreamByteCount : nil)
  }

  /// The fate of a paused stream.
  enum Decision {
    case stay
    case resume
    /// A read waits for bytes that were dropped after they arrived: the stream must begin again.
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

  /// Whether a paused stream has waited too long for a reader.
  ///
  /// It occupies a slot at its server, which other requests may wait for, and can begin again.
  func isAbandoned(
    _ segment: Segment, by demand: VersionDemand, now: ContinuousClock.Instant
  ) -> Bool {
    guard let since = segment.awaitsReaderSince, demand.parked.isEmpty else { return false }
    guard let lastReadAt = demand.activity.lastReadAt else {
      return now - since > FileSettings.unreadStreamTimeout
    }
    return now - max(since, lastReadAt) > FileSettings.idleStreamTimeout
  }
}
