/// How much of what was read ahead the last readers have made use of: whether the next one may be
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

  private var share = 1.0

  public init() {}

  /// Whether what has been read is no reason to fetch as much again.
  public var isCautious: Bool { share < Self.leastShare }

  /// Takes note of a file that nobody has open any more: of how many bytes were fetched meanwhile, and how
  /// many were read.
  public mutating func note(fetched: Int64, read: Int64) {
    guard fetched >= Self.leastByteCount else { return }
    let used = min(1, Double(max(0, read)) / Double(fetched))
    guard used < Self.leastShare || read >= Self.provenByteCount else { return }
    share += Self.weight * (used - share)
  }
}
