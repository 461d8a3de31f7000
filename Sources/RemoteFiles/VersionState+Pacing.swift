internal import HTTPTransfer
internal import HTTPTransferCore

/// Pausing a stream that is far ahead of its reader.
///
/// Where only memory takes its bytes, they would be given up before the reader comes to them, and be asked
/// for again with all that lies before them. Where the disk has hardly any room left, a stream without end
/// would take what others need.
extension VersionState {
  /// Less is free on the disk under the cache than is to stay free, or not any more.
  mutating func noteDisk(isShort: Bool) { isDiskShort = isShort }

  /// Whether to pause a stream for its reader; a paused stream waits until the distance has halved.
  func isAheadOfReader(_ segment: Segment) -> Bool {
    guard let lead = greatestLead, segment.isWhole else { return false }
    let limit = segment.awaitsReaderSince == nil ? lead : lead / 2
    return segment.position - lastReadEnd > limit
      && !parked.reads.contains { awaited(by: $0).upperBound > segment.position }
  }

  /// What must arrive before a read is answered: a piece that is hashed first is shown as a whole.
  private func awaited(by read: ParkedRead) -> ByteRange {
    pieces?.wholePieces(around: clamped(read.range)) ?? read.range
  }

  /// Whether reads need bytes of `range` kept, where only memory has them: a read waits for them, or is to come
  /// for them, because they are of the piece that is being read, or of the one that was read before it.
  ///
  /// A piece that is read by parts would otherwise have to arrive as a whole for each of them.
  func mustKeep(_ range: ByteRange, now: ContinuousClock.Instant) -> Bool {
    if parked.reads.contains(where: { awaited(by: $0).overlaps(range) }) { return true }
    guard let pieces, let lastReadAt, now - lastReadAt < FileSettings.readerMemory else {
      return false
    }
    return [lastReadEnd, otherReadEnd ?? lastReadEnd].contains { end in
      (end..<max(end, piece(of: end, pieces).upperBound)).overlaps(range)
    }
  }

  /// How far a stream may be ahead of its reader; nil for as far as it comes.
  private var greatestLead: Int64? {
    readAheadLimit ?? (isDiskShort && !isPrefetching ? FileSettings.unreadStreamByteCount : nil)
  }

  /// A request is about to be paused because it is ahead of its reader.
  ///
  /// - Returns: whether it still is: if so, it is paused until ``followReader(now:into:)``.
  mutating func awaitsReader(
    _ id: SegmentID, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> Bool {
    guard let index = index(of: id), isAheadOfReader(segments[index]) else { return false }
    segments[index].awaitsReaderSince = segments[index].awaitsReaderSince ?? now
    followReader(now: now, into: &actions)
    // Its end does not come before somebody reads.
    if segments[index].awaitsReaderSince != nil { missLength(now: now, into: &actions) }
    return true
  }

  /// Resumes a paused stream when its reader has come near.
  ///
  /// Ends it when a read waits for bytes that it has already passed, so that it can begin again.
  mutating func followReader(now: ContinuousClock.Instant, into actions: inout VersionActions) {
    for index in segments.indices {
      guard let since = segments[index].awaitsReaderSince, let transfer = segments[index].transfer
      else { continue }
      let segment = segments[index]
      if parked.reads.contains(where: { isPassed($0, by: segment) }) {
        // What comes all the same is not stored.
        segments[index].end = segment.position
        segments[index].awaitsReaderSince = nil
        actions.cancels.append(transfer)
      } else if !isAheadOfReader(segment) {
        segments[index].awaitsReaderSince = nil
        segments[index].lastProgressAt = now
        // The time in between says nothing about its pace.
        segments[index].firstByteAt = segment.firstByteAt.map { $0 + (now - since) }
        actions.resumes.append(transfer)
      }
    }
  }

  /// Whether a read waits for bytes that a stream has brought, and that were given up since.
  private func isPassed(_ read: ParkedRead, by segment: Segment) -> Bool {
    absent(in: clamped(awaited(by: read))).first.map { $0.lowerBound < segment.storedEnd } ?? false
  }

  /// Whether nobody comes for what a paused stream could bring: it keeps a place at its server, which others
  /// may wait for, and can begin again.
  func isAbandoned(_ segment: Segment, now: ContinuousClock.Instant) -> Bool {
    guard let since = segment.awaitsReaderSince, parked.isEmpty else { return false }
    guard let lastReadAt else { return now - since > FileSettings.unreadStreamPatience }
    return now - max(since, lastReadAt) > FileSettings.idleStreamPatience
  }
}
