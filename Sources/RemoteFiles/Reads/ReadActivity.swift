internal import HTTPTransferCore

/// How a version is read: where, when, and how many bytes have arrived for its readers.
struct ReadActivity: Sendable {
  private(set) var streams = SequentialReaders()
  private(set) var strides = StrideDetector()
  private(set) var lastReadAt: ContinuousClock.Instant?
  /// The end of the last read.
  private(set) var lastReadEnd: Int64 = 0
  /// The end of the last read of a piece other than that at ``lastReadEnd``: it may be another
  /// reader's.
  private var otherReadEnd: Int64?
  private var usage = Usage()

  /// How much of a file has arrived, and how much was read, since it was opened.
  ///
  /// Whole bodies and prefetched bytes are not counted.
  struct Usage: Sendable {
    var fetched: Int64 = 0
    var read: Int64 = 0
  }

  /// Adds a read of `content` to its stream.
  mutating func note(_ asked: ByteRange, of content: ContentMap, now: ContinuousClock.Instant) {
    let range = content.clamped(asked)
    usage.read += range.byteCount
    guard !content.isComplete else { return }
    streams.note(range)
    strides.note(range)
    let end = range.upperBound
    if let pieces = content.pieces, lastReadAt != nil,
      Self.piece(of: end, pieces) != Self.piece(of: lastReadEnd, pieces)
    {
      otherReadEnd = lastReadEnd
    }
    lastReadAt = now
    lastReadEnd = end
  }

  /// The piece that contains the byte at `offset`.
  private static func piece(of offset: Int64, _ pieces: PieceTable) -> ByteRange {
    pieces.wholePieces(around: offset..<(offset + 1))
  }

  mutating func recordFetched(_ byteCount: Int64) { usage.fetched += byteCount }

  /// Begins a count when the file, which had no handles, is opened.
  mutating func begin(_ trust: ReadAheadConfidence) {
    otherReadEnd = nil
    usage = Usage()
    streams.trust = trust
  }

  /// Ends the count when the last handle is closed.
  ///
  /// From then on nothing is read ahead beyond the requests in flight.
  ///
  /// - Returns: how many bytes arrived and were read.
  mutating func end() -> Usage {
    lastReadAt = nil
    return usage
  }

  /// Whether there was a read recently: read-ahead for a reader that has stopped would never end.
  func isRecent(now: ContinuousClock.Instant) -> Bool {
    lastReadAt.map { now - $0 < FileSettings.readerMemory } ?? false
  }

  /// Whether reads of bytes of `range` are expected, because they belong to the current piece or
  /// the one read before it.
  func expects(_ range: ByteRange, pieces: PieceTable?, now: ContinuousClock.Instant) -> Bool {
    guard let pieces, isRecent(now: now) else { return false }
    return [lastReadEnd, otherReadEnd ?? lastReadEnd].contains { end in
      (end..<max(end, Self.piece(of: end, pieces).upperBound)).overlaps(range)
    }
  }
}
