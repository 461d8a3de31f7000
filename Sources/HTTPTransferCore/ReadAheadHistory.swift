/// How far a reader is trusted to go on, before he has shown anything himself.
public enum ReaderTrust: Sendable {
  /// The last ones have gone early.
  case low
  case usual
  /// The last ones have read their files to the end.
  case high
}

/// How much of what was read ahead the last readers have made use of: how far the next one may be
/// trusted to go on.
///
/// A program that looks at the start of a thousand files (an indexer, a thumbnailer, `file *`) reads each
/// of them in order, like one that copies them. Only what became of the ones before tells them apart.
public struct ReadAheadHistory: Sendable {
  /// What a file brought while it was open: less says nothing.
  static let leastByteCount: Int64 = 256 << 10

  /// How much the last reader counts.
  static let weight = 0.3

  /// The share of the fetched bytes, below which readers are not trusted.
  static let leastShare = 0.5

  /// Who has read less has not gone on, though he may have read all that there was to him: that is no
  /// reason to trust the next one.
  static let provenByteCount: Int64 = 4 << 20

  /// How much the last reader counts for whether files are read to their ends, and the share of those who
  /// have, from which on the next one is trusted to: two in a row, of whom one who looks undoes the first.
  static let (endWeight, leastEndShare) = (0.5, 0.7)

  private var share = 1.0
  private var endShare = 0.0

  public init() {}

  /// How far the next reader is trusted.
  public var trust: ReaderTrust {
    // What has been read is no reason to fetch as much again.
    if share < Self.leastShare { return .low }
    return endShare >= Self.leastEndShare ? .high : .usual
  }

  /// Takes note of a file that nobody has open any more: of how many bytes were fetched meanwhile, how
  /// many were read, and its length where that is known.
  public mutating func note(fetched: Int64, read: Int64, length: Int64?) {
    if fetched > 0 {
      let isRead = length.map { read >= $0 } ?? false
      endShare += Self.endWeight * ((isRead ? 1 : 0) - endShare)
    }
    guard fetched >= Self.leastByteCount else { return }
    let used = min(1, Double(max(0, read)) / Double(fetched))
    guard used < Self.leastShare || read >= Self.provenByteCount else { return }
    share += Self.weight * (used - share)
  }
}
