/// Distinguishes sequential readers of one file from each other and from random access.
///
/// A stream is a cursor that reads move forward. Its read-ahead window is at most the bytes
/// consumed so far. The fetched bytes of a file therefore do not exceed twice the bytes read,
/// unless ``FetchPlanner`` fills a connection of high latency.
package struct SequentialReaders: Sendable {
  /// A reader's position.
  package struct Stream: Sendable {
    /// The start of the stream.
    package var start: Int64
    /// The end of the furthest read.
    package var cursor: Int64
    /// The bytes read so far.
    package var consumed: Int64
    /// How many reads belong to it.
    package var readCount: Int
    fileprivate var lastUse: UInt64

    /// How many bytes beyond ``cursor`` to fetch.
    ///
    /// 0 before the second read, for a reader that skips more than it reads (a stride), and for a
    /// reader that does not move forward.
    package var window: Int64 {
      let advance = cursor - start
      guard readCount >= 2, consumed >= advance / 2 else { return 0 }
      let known = min(consumed, advance)
      // A reader that begins in the middle often stops soon, and the kernel's own read-ahead
      // requests bytes too: together they must not double the bytes of a reader of one megabyte.
      return start == 0 ? known : max(known / 4, known - SequentialReaders.cautiousByteCount)
    }

    /// ``window``, adjusted by the history of earlier readers.
    fileprivate func window(_ trust: ReadAheadConfidence) -> Int64 {
      switch trust {
      // None at the start, where the kernel's own read-ahead suffices.
      case .low: max(0, window - SequentialReaders.startByteCount)
      case .usual: window
      // The first read is enough if it begins where the others began; the next reads show whether
      // the reader jumps.
      case .high:
        start == 0 && (readCount < 2 || window > 0)
          ? max(window, SequentialReaders.trustedByteCount) : window
      }
    }
  }

  /// The streams as the planner sees them.
  package var readers: [FetchPlanner.Reader] {
    streams.map { FetchPlanner.Reader(cursor: $0.cursor, window: $0.window(trust)) }
  }

  /// How far readers are expected to continue; see ``ReadAheadHistory``.
  package var trust = ReadAheadConfidence.usual

  /// The number of cursors; a new one replaces the least recently used.
  package static let limit = 8

  /// How far the window of a stream from the middle stays below its bytes read, in the long run.
  static let cautiousByteCount: Int64 = 3 << 20

  /// About how much a program reads only to identify a file; the kernel reads as much ahead.
  static let startByteCount: Int64 = 1 << 20

  /// How much to fetch at the first read if earlier files were read to their ends.
  ///
  /// This covers many a picture or page as a whole, without another round trip.
  static let trustedByteCount: Int64 = 4 << 20

  /// How far a read may lie behind or ahead of a cursor and still belong to it: the kernel sends
  /// reads of up to 1 MiB, and several threads take them out of order.
  package static let tolerance: Int64 = 1 << 20

  package private(set) var streams: [Stream] = []
  private var useCount: UInt64 = 0

  package init() {}

  /// Counts a read; returns the stream that it belongs to.
  @discardableResult
  package mutating func note(_ range: ByteRange) -> Stream {
    useCount += 1
    var best: Int?
    for (index, stream) in streams.enumerated() {
      let distance = range.lowerBound - stream.cursor
      guard distance >= -Self.tolerance - range.byteCount, distance <= Self.tolerance,
        range.lowerBound >= stream.start
      else { continue }
      if let other = best,
        abs(range.lowerBound - streams[other].cursor) <= abs(distance)
      {
        continue
      }
      best = index
    }
    if let best {
      streams[best].cursor = max(streams[best].cursor, range.upperBound)
      streams[best].consumed += range.byteCount
      streams[best].readCount += 1
      streams[best].lastUse = useCount
      return streams[best]
    }
    let stream = Stream(
      start: range.lowerBound, cursor: range.upperBound, consumed: range.byteCount, readCount: 1,
      lastUse: useCount)
    if streams.count < Self.limit {
      streams.append(stream)
    } else if let oldest = streams.indices.min(by: { streams[$0].lastUse < streams[$1].lastUse }) {
      streams[oldest] = stream
    }
    return stream
  }
}
