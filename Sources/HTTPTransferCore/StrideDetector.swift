/// Recognises readers that jump by the same distance repeatedly, forward or backward, for example
/// over the headers of an archive's members, a column of a table, or a file from its end.
///
/// Their next reads are predictable although they belong to no stream.
package struct StrideDetector: Sendable {
  /// A reader that jumps, or may turn out to.
  private struct Walk: Sendable {
    /// The bytes read since the last jump, without a gap.
    var run: ByteRange
    /// The length of the previous run; nil if there is none.
    var lastByteCount: Int64?
    /// The last distance from the start of a run to that of the next.
    var distance: Int64 = 0
    /// How many jumps in a row had about this distance.
    var jumpCount = 0
    /// The start of the first of these jumps.
    var origin: Int64
    /// Whether the jumps were equal to the byte.
    var isExact = true
    var lastUse: UInt64

    init(run: ByteRange, now: UInt64) {
      self.run = run
      origin = run.lowerBound
      lastUse = now
    }

    /// Whether enough jumps were equal to rule out an accident.
    var isConfirmed: Bool { jumpCount >= StrideDetector.minimumJumpCount }

    /// Whether the reader reads the file backward without gaps.
    var isBackward: Bool { isExact && lastByteCount.map { distance == -$0 } == true }

    /// About where the run after `count` more jumps begins.
    ///
    /// Reads begin at page boundaries; only the mean of many jumps shows the distance.
    func start(after count: Int64) -> Int64? {
      let (covered, overflow) = (run.lowerBound - origin).multipliedReportingOverflow(by: count)
      guard !overflow else { return nil }
      let (start, isTooFar) = run.lowerBound.addingReportingOverflow(covered / Int64(jumpCount))
      return isTooFar ? nil : start
    }

    mutating func jump(to range: ByteRange, now: UInt64) {
      let jumped = range.lowerBound - run.lowerBound
      if jumpCount > 0, StrideDetector.isNear(jumped, distance) {
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

  /// How many equal jumps confirm a reader.
  static let minimumJumpCount = 2

  /// How many readers are distinguished.
  static let limit = 4

  /// How much jumps may differ and still count as equal: reads begin at page boundaries.
  static let tolerance = FetchPlanner.page

  private static func isNear(_ first: Int64, _ second: Int64) -> Bool {
    let (difference, overflow) = first.subtractingReportingOverflow(second)
    return !overflow && difference.magnitude <= UInt64(tolerance)
  }

  /// The most jumps to predict.
  static let maximumDepth = 32

  /// How many bytes to predict for a reader that reads backward without gaps.
  ///
  /// The minimum is the kernel's read-ahead for a forward reader. The maximum is limited because a
  /// few requests suffice for such reads.
  static let backwardByteCounts: ClosedRange<Int64> = 512 << 10...16 << 20

  /// From the first of ``backwardByteCounts`` on, the prediction is this multiple of the bytes
  /// read.
  static let backwardFactor: Int64 = 4

  private var walks: [Walk] = []
  private var useCount: UInt64 = 0

  package init() {}

  /// Counts a read.
  package mutating func note(_ range: ByteRange) {
    guard !range.isEmpty else { return }
    useCount += 1
    if let index = walks.firstIndex(where: { $0.run.upperBound == range.lowerBound }) {
      walks[index].run = walks[index].run.lowerBound..<range.upperBound
      walks[index].lastUse = useCount
    } else if walks.contains(where: { $0.run.overlaps(range) }) {
      // A repeated or out-of-order read.
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

  /// How many bytes to predict for a reader that has read `byteCount` bytes backward.
  private static func backwardWindow(read byteCount: Int64) -> Int64 {
    if byteCount < backwardByteCounts.lowerBound { return backwardByteCounts.lowerBound }
    // Compare before multiplying: a position can be any number.
    let most = backwardByteCounts.upperBound
    return byteCount < most / backwardFactor ? byteCount * backwardFactor : most
  }

  /// Predicts the next reads: at most as many bytes as were read so far, except for backward
  /// readers.
  ///
  /// - Parameter length: the complete length of the file in bytes.
  /// - Returns: ranges, the nearest first for each reader.
  package func predictions(length: Int64) -> [ByteRange] {
    let confirmed = walks.filter(\.isConfirmed).sorted { $0.lastUse > $1.lastUse }
    return confirmed.flatMap { walk -> [ByteRange] in
      guard let byteCount = walk.lastByteCount else { return [] }
      if walk.isBackward {
        let end = min(walk.run.lowerBound, length)
        let ahead = Self.backwardWindow(read: walk.origin - walk.run.lowerBound + byteCount)
        return end > 0 ? [max(0, end - ahead)..<end] : []
      }
      // Neither the start of a run within its page nor the exact distance is known. An extra page
      // on both sides covers the error for half as many jumps as were seen.
      let slack = walk.isExact ? 0 : FetchPlanner.page
      let depth = walk.isExact ? walk.jumpCount : max(1, walk.jumpCount / 2)
      var ranges: [ByteRange] = []
      for count in 1...Int64(min(depth, Self.maximumDepth)) {
        guard let start = walk.start(after: count), start >= 0, start < length else { break }
        ranges.append(max(0, start - slack)..<start + min(length - start, byteCount + slack))
      }
      return ranges
    }
  }
}
