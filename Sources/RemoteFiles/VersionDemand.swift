internal import HTTPTransferCore

/// Who wants bytes of one version: reads that wait, opens that wait for the length, readers who come back,
/// and the user, who may want the whole.
struct VersionDemand: Sendable {
  private(set) var parked = ParkedReads()
  private(set) var lengthWaits = LengthWaits()
  private(set) var activity = ReadActivity()
  /// What the user has asked for the file.
  private(set) var wishes = FileWishes()

  // MARK: Facts

  /// Whether a read or an open waits.
  var isAwaited: Bool { !parked.isEmpty || !lengthWaits.isEmpty }

  /// Whether bytes are fetched for nobody in particular now.
  var isPrefetching: Bool { wishes.mayPrefetch && !wishes.isPaused }

  /// Whether somebody is reading: read-ahead for a reader who has gone would never end.
  func hasReader(now: ContinuousClock.Instant) -> Bool {
    isAwaited || activity.isRecent(now: now)
  }

  /// Whether reads need bytes of `range` kept, where only memory has them: a read waits for them, or will come
  /// for them.
  ///
  /// A piece that is read by parts would otherwise have to arrive as a whole for each of them.
  func mustKeep(_ range: ByteRange, of content: ContentMap, now: ContinuousClock.Instant) -> Bool {
    parked.reads.contains { content.needed(for: $0.range).overlaps(range) }
      || activity.expects(range, pieces: content.pieces, now: now)
  }

  /// Where the position of a segment next answers a read or an open that waits.
  func nextWake(by segment: Segment, in content: ContentMap) -> Int64? {
    let isEndAwaited = segment.isWhole && !lengthWaits.isEmpty
    return parked.nextWake(by: segment, in: content)
      ?? (isEndAwaited && content.pieces == nil ? segment.end : nil)
  }

  // MARK: Changes

  /// - Returns: what the user wanted before.
  mutating func follow(_ wishes: FileWishes) -> FileWishes {
    defer { self.wishes = wishes }
    return self.wishes
  }

  /// The process was suspended for `delay`.
  mutating func postpone(by delay: Duration) {
    parked.postpone(by: delay)
    lengthWaits.postpone(by: delay)
  }

  // MARK: Readers

  /// Counts a read to its stream.
  mutating func note(_ asked: ByteRange, of content: ContentMap, now: ContinuousClock.Instant) {
    activity.note(asked, of: content, now: now)
  }

  /// Bytes have come for readers.
  mutating func noteFetched(_ byteCount: Int64) { activity.noteFetched(byteCount) }

  /// Somebody opens the file, which nobody had open.
  mutating func beginReading(_ trust: ReaderTrust) { activity.begin(trust) }

  /// Nobody has the file open any more.
  ///
  /// - Returns: what came and what was read of it.
  mutating func endReading() -> ReadActivity.Usage { activity.end() }

  // MARK: Reads that wait

  mutating func park(_ read: ParkedRead) { parked.insert(read) }

  /// Takes out the reads that can be answered now; with `range`, only those that overlap it.
  mutating func takeAnswerable(
    in range: ByteRange? = nil, from content: ContentMap
  ) -> [ParkedRead] {
    guard let range else { return parked.removeAll { content.canAnswer($0.range) } }
    return parked.remove(overlapping: range) { content.canAnswer($0.range) }
  }

  /// Takes out every read that waits, or those that overlap `range`.
  mutating func takeReads(in range: ByteRange? = nil) -> [ParkedRead] {
    guard let range else { return parked.removeAll { _ in true } }
    return parked.remove(overlapping: range) { _ in true }
  }

  /// Takes out the reads whose time is up.
  mutating func takeLate(now: ContinuousClock.Instant) -> [ParkedRead] {
    parked.removeAll { $0.deadline <= now }
  }

  /// Takes out the reads that `stream` cannot come to before their deadline.
  mutating func takeUnreachable(
    by stream: Segment, now: ContinuousClock.Instant
  ) -> [ParkedRead] {
    parked.removeAll { !stream.canReach($0, now: now) }
  }

  // MARK: Opens that wait

  mutating func insert(_ wait: LengthWait) { lengthWaits.insert(wait) }

  /// Takes out every open that waits for the length.
  mutating func takeLengthWaits() -> [LengthWait] { lengthWaits.removeAll() }

  /// The length will not be known soon: takes out the opens whose deadline is `end` or earlier.
  mutating func missLength(
    now: ContinuousClock.Instant, until end: ContinuousClock.Instant? = nil
  ) -> [LengthWait] {
    lengthWaits.miss(now: now, until: end)
  }
}
