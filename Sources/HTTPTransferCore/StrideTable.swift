/// Recognises readers who jump by the same distance again and again, forward or backward: the headers of
/// an archive's members, a column of a table, a file from its end.
///
/// What they will read next is known although it lies in no stream.
public struct StrideTable: Sendable {
  /// A reader who jumps, or may turn out to.
  private struct Walk: Sendable {
    /// The bytes read since the last jump, without a gap.
    var run: ByteRange
    /// How long the run before was; nil while there was none.
    var lastByteCount: Int64?
    /// From the start of a run to that of the next, as it was last.
    var distance: Int64 = 0
    /// How many jumps in a row had this distance, about.
    var jumpCount = 0
    /// Where the first of them began.
    var origin: Int64
    /// Whether they were all the same to the byte.
    var isExact = true
    var lastUse: UInt64

    init(run: ByteRange, now: UInt64) {
      self.run = run
      origin = run.lowerBound
      lastUse = now
    }

    /// Jumps that are the same by accident are not many.
    var isConfirmed: Bool { jumpCount >= StrideTable.leastJumpCount }

    /// Whether he takes the file from its end to its start, without a gap.
    var isBackward: Bool { isExact && lastByteCount.map { distance == -$0 } == true }

    /// Where the run after so many jumps begins, about: reads begin where a page does, so that the
    /// distance shows in the mean of many.
    func start(after count: Int64) -> Int64? {
      let (covered, overflow) = (run.lowerBound - origin).multipliedReportingOverflow(by: count)
      guard !overflow else { return nil }
      let (start, isTooFar) = run.lowerBound.addingReportingOverflow(covered / Int64(jumpCount))
      return isTooFar ? nil : start
    }

    mutating func jump(to range: ByteRange, now: UInt64) {
      let jumped = range.lowerBound - run.lowerBound
      if jumpCount > 0, StrideTable.isNear(jumped, distance) {
        jumpCount += 1
        isExact = isExact && jumped == distance
      } else {
        jumpCount = 1
        origin = run.lowerBound
        isExact = true
      }
      distance = jumped
      lastByteCount = run.byteCount
      run = range
      lastUse = now
    }
  }

  /// How many equal jumps make a reader who is believed to go on.
  static let leastJumpCount = 2

  /// How many readers are told apart.
  static let limit = 4

  /// How much jumps may differ and still count as equal: reads begin where a page does.
  static let tolerance = FetchPlanner.page

  private static func isNear(_ first: Int64, _ second: Int64) -> Bool {
    let (difference, overflow) = first.subtractingReportingOverflow(second)
    return !overflow && difference.magnitude <= UInt64(tolerance)
  }

  /// How many jumps ahead something is worth having, at most.
  static let greatestDepth = 32

  /// How many bytes ahead of one who reads backward without a gap: at first as many as the kernel reads ahead of
  /// one who reads forward; and at most, because for his jumps few requests will do.
  static let backwardByteCounts: ClosedRange<Int64> = 512 << 10...16 << 20

  /// From the first of ``backwardByteCounts`` on he is known well enough to get so many times what he has read.
  static let backwardFactor: Int64 = 4

  private var walks: [Walk] = []
  private var useCount: UInt64 = 0

  public init() {}

  /// Counts a read.
  public mutating func note(_ range: ByteRange) {
    guard !range.isEmpty else { return }
    useCount += 1
    if let index = walks.firstIndex(where: { $0.run.upperBound == range.lowerBound }) {
      walks[index].run = walks[index].run.lowerBound..<range.upperBound
      walks[index].lastUse = useCount
    } else if walks.contains(where: { $0.run.overlaps(range) }) {
      // Read again, or out of order.
    } else if let index = walks.firstIndex(where: {
      $0.isConfirmed
        && $0.start(after: 1).map { Self.isNear($0, range.lowerBound) } == true
    }) {
      walks[index].jump(to: range, now: useCount)
    } else if let index = walks.indices.filter({ !walks[$0].isConfirmed }).max(by: {
      walks[$0].lastUse < walks[$1].lastUse
    }) {
      walks[index].jump(to: range, now: useCount)
    } else {
      let walk = Walk(run: range, now: useCount)
      if walks.count < Self.limit {
        walks.append(walk)
      } else if let oldest = walks.indices.min(by: { walks[$0].lastUse < walks[$1].lastUse }) {
        walks[oldest] = walk
      }
    }
  }

  /// How many bytes are worth having ahead of one who has read so many backward.
  private static func backwardWindow(read byteCount: Int64) -> Int64 {
    if byteCount < backwardByteCounts.lowerBound { return backwardByteCounts.lowerBound }
    // Compared before it is multiplied: a position can be any number.
    let most = backwardByteCounts.upperBound
    return byteCount < most / backwardFactor ? byteCount * backwardFactor : most
  }

  /// What will be read next: as much as has been read so far, at most, but of one who reads backward.
  ///
  /// - Parameter length: the complete length of the file in bytes.
  /// - Returns: ranges, of each reader the nearest first.
  public func predictions(length: Int64) -> [ByteRange] {
    let confirmed = walks.filter(\.isConfirmed).sorted { $0.lastUse > $1.lastUse }
    return confirmed.flatMap { walk -> [ByteRange] in
      guard let byteCount = walk.lastByteCount else { return [] }
      if walk.isBackward {
        let end = min(walk.run.lowerBound, length)
        let ahead = Self.backwardWindow(read: walk.origin - walk.run.lowerBound + byteCount)
        return end > 0 ? [max(0, end - ahead)..<end] : []
      }
      // Where a run begins in its page is not known, nor the distance to the byte: a page more on both
      // sides covers that half as far ahead as it has been seen.
      let slack = walk.isExact ? 0 : FetchPlanner.page
      let depth = walk.isExact ? walk.jumpCount : max(1, walk.jumpCount / 2)
      var ranges: [ByteRange] = []
      for count in 1...Int64(min(depth, Self.greatestDepth)) {
        guard let start = walk.start(after: count), start >= 0, start < length else { break }
        ranges.append(max(0, start - slack)..<start + min(length - start, byteCount + slack))
      }
      return ranges
    }
  }
}
