internal import HTTPTransferCore

/// The demand for bytes of one version: waiting reads and opens, readers, and the user's policy.
struct VersionDemand: Sendable {
  private(set) var parked = ParkedReads()
  private(set) var lengthWaits = LengthWaits()
  private(set) var activity = ReadActivity()
  /// What the user requested for the file.
  private(set) var policy = FetchPolicy()

  // MARK: Properties

  /// Whether a read or an open waits.
  var isAwaited: Bool { !parked.isEmpty || !lengthWaits.isEmpty }

  /// Whether bytes are fetched without a reader now.
  var isPrefetching: Bool { policy.mayPrefetch && !policy.isPaused }

  /// Whether the file is being read: read-ahead for a reader that has stopped would never end.
  func hasReader(now: ContinuousClock.Instant) -> Bool {
    isAwaited || activity.isRecent(now: now)
  }

  /// Whether bytes of `range` must be kept if only memory has them: a read waits for them, or is
  /// expected.
  ///
  /// Otherwise a piece that is read in parts would have to arrive as a whole for each of them.
  func mustKeep(_ range: ByteRange, of content: ContentMap, now: ContinuousClock.Instant) -> Bool {
    parked.reads.contains { content.needed(for: $0.range).overlaps(range) }
      || activity.expects(range, pieces: content.pieces, now: now)
  }

  /// The position at which a segment next answers a waiting read or open.
  func nextWake(by segment: Segment, in content: ContentMap) -> Int64? {
    let isEndAwaited = segment.isWhole && !lengthWaits.isEmpty
    return parked.nextWake(by: segment, in: content)
      ?? (isEndAwaited && content.pieces == nil ? segment.end : nil)
  }

  // MARK: Changes

  /// Adopts the user's policy.
  ///
  /// - Returns: the previous policy.
  mutating func follow(_ policy: FetchPolicy) -> FetchPolicy {
    defer { self.policy = policy }
    return self.policy
  }

  /// Moves deadlines by `delay`, for which the process was suspended.
  mutating func postpone(by delay: Duration) {
    parked.postpone(by: delay)
    lengthWaits.postpone(by: delay)
  }

  // MARK: Readers

  /// Adds a read to its stream.
  mutating func note(_ asked: ByteRange, of content: ContentMap, now: ContinuousClock.Instant) {
    activity.note(asked, of: content, now: now)
  }

  /// Records bytes that have arrived for readers.
  mutating func recordFetched(_ byteCount: Int64) { activity.recordFetched(byteCount) }

  /// Begins a count when the file, which had no handles, is opened.
  mutating func beginReading(_ trust: ReadAheadConfidence) { activity.begin(trust) }

  /// Ends the count when the last handle is closed.
  ///
  /// - Returns: how many bytes arrived and were read.
  mutating func endReading() -> ReadActivity.Usage { activity.end() }

  // MARK: Waiting reads

  mutating func park(_ read: ParkedRead) { parked.insert(read) }

  /// Removes and returns the reads that can be answered now; with `range`, only those that overlap
  /// it.
  mutating func takeAnswerable(
    in range: ByteRange? = nil, from content: ContentMap
  ) -> [ParkedRead] {
    guard let range else { return parked.removeAll { content.canAnswer($0.range) } }
    return parked.remove(overlapping: range) { content.canAnswer($0.range) }
  }

  /// Removes and returns all waiting reads, or those that overlap `range`.
  mutating func takeReads(in range: ByteRange? = nil) -> [ParkedRead] {
    guard let range else { return parked.removeAll { _ in true } }
    return parked.remove(overlapping: range) { _ in true }
  }

  /// Removes and returns the reads whose time is up.
  mutating func takeLate(now: ContinuousClock.Instant) -> [ParkedRead] {
    parked.removeAll { $0.deadline <= now }
  }

  /// Removes and returns the reads that `stream` cannot reach before their deadline.
  mutating func takeUnreachable(
    by stream: Segment, now: ContinuousClock.Instant
  ) -> [ParkedRead] {
    parked.removeAll { !stream.canReach($0, now: now) }
  }

  // MARK: Waiting opens

  mutating func insert(_ wait: LengthWait) { lengthWaits.insert(wait) }

  /// Removes and returns all opens that wait for the length.
  mutating func takeLengthWaits() -> [LengthWait] { lengthWaits.removeAll() }

  /// Removes and returns the opens whose deadline is `end` or earlier: the length will not be known
  /// soon.
  mutating func missLength(
    now: ContinuousClock.Instant, until end: ContinuousClock.Instant? = nil
  ) -> [LengthWait] {
    lengthWaits.miss(now: now, until: end)
  }
}
