internal import HTTPTransferCore

/// How a version is read: where, when, and what has come for its readers.
struct ReadActivity: Sendable {
  private(set) var streams = StreamTable()
  private(set) var strides = StrideTable()
  private(set) var lastReadAt: ContinuousClock.Instant?
  /// The end of the last read.
  private(set) var lastReadEnd: Int64 = 0
  /// The end of the last read of another piece than that at ``lastReadEnd``: who reads there may be another
  /// reader.
  private var otherReadEnd: Int64?
  private var usage = Usage()

  /// What has come of a file since it was opened, except whole bodies and what the user has asked for,
  /// and what was read.
  struct Usage: Sendable {
    var fetched: Int64 = 0
    var read: Int64 = 0
  }

  /// Counts a read to its stream; the pages of a file that is `content`.
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

  /// The piece of which the byte at `offset` is.
  private static func piece(of offset: Int64, _ pieces: PieceTable) -> ByteRange {
    pieces.wholePieces(around: offset..<(offset + 1))
  }

  mutating func noteFetched(_ byteCount: Int64) { usage.fetched += byteCount }

  /// The file is opened, which nobody had open.
  mutating func begin(_ trust: ReaderTrust) {
    otherReadEnd = nil
    usage = Usage()
    streams.trust = trust
  }

  /// Nobody has the file open any more: nothing is read ahead beyond what is in flight.
  ///
  /// - Returns: what came and what was read of it.
  mutating func end() -> Usage {
    lastReadAt = nil
    return usage
  }

  /// Whether somebody has read a moment ago: read-ahead for one who has gone would never end.
  func isRecent(now: ContinuousClock.Instant) -> Bool {
    lastReadAt.map { now - $0 < FileSettings.readerMemory } ?? false
  }

  /// Whether reads are to come for bytes of `range`, because they are of the piece that is being read, or of
  /// the one that was read before it.
  func expects(_ range: ByteRange, pieces: PieceTable?, now: ContinuousClock.Instant) -> Bool {
    guard let pieces, isRecent(now: now) else { return false }
    return [lastReadEnd, otherReadEnd ?? lastReadEnd].contains { end in
      (end..<max(end, Self.piece(of: end, pieces).upperBound)).overlaps(range)
    }
  }
}
