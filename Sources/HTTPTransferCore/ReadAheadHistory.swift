/// How far a new reader is expected to continue, before it has shown its own pattern.
package enum ReadAheadConfidence: Sendable {
  /// Recent readers stopped early.
  case low
  case usual
  /// Recent readers read their files to the end.
  case high
}

/// How much of the read-ahead the recent readers used; predicts how far the next one will continue.
///
/// A program that reads the start of a thousand files (an indexer, a thumbnailer, `file *`) reads
/// each of them in order, as a copying program does. Only the history of earlier readers
/// distinguishes the two.
package struct ReadAheadHistory: Sendable {
  /// The least number of fetched bytes for an open file to be informative.
  static let minimumByteCount: Int64 = 256 << 10

  /// The weight of the last reader.
  static let weight = 0.3

  /// The share of fetched bytes below which readers are not trusted.
  static let minimumShare = 0.5

  /// A reader that read less has not proved to continue, even if it read all bytes of its file:
  /// that is no reason to trust the next reader.
  static let provenByteCount: Int64 = 4 << 20

  /// The weight of the last reader for whether files are read to the end, and the least share of
  /// such readers for high trust.
  ///
  /// Two in a row establish the trust; a single partial reader undoes it.
  static let (endWeight, minimumEndShare) = (0.5, 0.7)

  private var share = 1.0
  private var endShare = 0.0

  package init() {}

  /// How far the next reader is trusted.
  package var trust: ReadAheadConfidence {
    // Bytes that were read are no reason to fetch as many again.
    if share < Self.minimumShare { return .low }
    return endShare >= Self.minimumEndShare ? .high : .usual
  }

  /// Records a file that was closed: how many bytes were fetched and read while it was open, and
  /// its length if known.
  package mutating func note(fetched: Int64, read: Int64, length: Int64?) {
    if fetched > 0 {
      let isRead = length.map { read >= $0 } ?? false
      endShare += Self.endWeight * ((isRead ? 1 : 0) - endShare)
    }
    guard fetched >= Self.minimumByteCount else { return }
    let used = min(1, Double(max(0, read)) / Double(fetched))
    guard used < Self.minimumShare || read >= Self.provenByteCount else { return }
    share += Self.weight * (used - share)
  }
}
