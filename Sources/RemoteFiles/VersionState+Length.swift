internal import HTTPTransferCore

/// An open that waits for the length of its file.
struct LengthWait: Sendable {
  let answer: @Sendable () -> Void
  var deadline: ContinuousClock.Instant
}

/// What a file shows whose length is unknown until its body ends, and who waits for that.
extension VersionState {
  /// What the kernel's page cache, and with it mmap(2), sendfile(2) and splice(2), reads at once.
  static let pageByteCount: Int64 = 4096

  /// Up to where `stat` shows a file of unknown length from now on: the pages that are present in order from
  /// its start, and never less than before.
  mutating func show() -> Int64 {
    shownEnd = max(
      shownEnd, extents.presentEnd(from: 0) / Self.pageByteCount * Self.pageByteCount)
    return shownEnd
  }

  /// The segment that has brought whole pages which `stat` cannot show before they are stored.
  var segmentOfUnstoredPages: SegmentID? {
    segments.first {
      $0.isWhole && $0.position / Self.pageByteCount * Self.pageByteCount > $0.handedOverEnd
    }?.id
  }

  /// Whether a segment brings the first page of a file of unknown length: it is stored at once, because `stat`
  /// can show nothing before.
  func bringsFirstPage(_ segment: Segment) -> Bool {
    length == nil && segment.isWhole && segment.handedOverEnd < Self.pageByteCount
      && segment.position >= Self.pageByteCount
  }

  /// Has `wait` answered when the length is known, nothing more is to be expected of the server, or its time
  /// is up; begins the stream whose end tells the length.
  ///
  /// - Returns: false where there is nothing to wait for, or was not a moment ago.
  mutating func awaitLength(
    _ wait: LengthWait, now: ContinuousClock.Instant, into actions: inout VersionActions
  ) -> Bool {
    guard length == nil, !isSuperseded, permanentFailure == nil,
      lengthMissedAt.map({ now - $0 >= FileSettings.failureMemory }) ?? true,
      // It goes on when somebody reads.
      !segments.contains(where: { $0.awaitsReaderSince != nil })
    else { return false }
    lengthWaits.append(wait)
    for index in segments.indices where segments[index].isWhole {
      raiseIfWaitedFor(index, into: &actions)
    }
    plan(now: now, into: &actions)
    actions.needsWatch = true
    return true
  }

  /// Lets the opens go on that wait for the length, and of which `predicate` holds.
  mutating func endLengthWaits(
    where predicate: (LengthWait) -> Bool = { _ in true }, into actions: inout VersionActions
  ) {
    actions.lengthAnswers += lengthWaits.filter(predicate)
    lengthWaits.removeAll(where: predicate)
  }

  /// The length will not be known soon: opens go on without it, for a moment also those that come.
  mutating func missLength(
    now: ContinuousClock.Instant, where predicate: (LengthWait) -> Bool = { _ in true },
    into actions: inout VersionActions
  ) {
    guard lengthWaits.contains(where: predicate) else { return }
    lengthMissedAt = now
    endLengthWaits(where: predicate, into: &actions)
  }
}
