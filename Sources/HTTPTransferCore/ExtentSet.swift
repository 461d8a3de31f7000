/// The extents of a file that are present: disjoint, non-adjacent byte ranges in ascending order.
///
/// Look-ups are O(log n) in the number of extents. An insertion that touches few extents moves
/// only the tail of the array; an insertion at the end is O(1).
package struct ExtentSet: Equatable, Sendable {
  /// The extents, ascending; at least one absent byte separates any two of them.
  package private(set) var extents: [ByteRange] = []

  /// The number of bytes present.
  package private(set) var byteCount: Int64 = 0

  package init() {}

  package init(_ ranges: some Sequence<ByteRange>) {
    for range in ranges { insert(range) }
  }

  package var isEmpty: Bool { extents.isEmpty }

  /// The index of the first extent that ends after `offset`; `extents.count` if there is none.
  private func firstIndex(endingAfter offset: Int64) -> Int {
    var low = 0
    var high = extents.count
    while low < high {
      let middle = (low + high) / 2
      if extents[middle].upperBound > offset { high = middle } else { low = middle + 1 }
    }
    return low
  }

  /// Marks the bytes of `range` as present; returns how many of them were absent before.
  @discardableResult
  package mutating func insert(_ range: ByteRange) -> Int64 {
    guard !range.isEmpty else { return 0 }
    // Fast path: the last extent grows, as in every sequential download.
    if let last = extents.last, last.upperBound == range.lowerBound {
      extents[extents.count - 1] = last.lowerBound..<range.upperBound
      byteCount += range.byteCount
      return range.byteCount
    }
    // An extent that only touches the range is merged too.
    let first = range.lowerBound == 0 ? 0 : firstIndex(endingAfter: range.lowerBound - 1)
    var next = first
    var merged = range
    var covered: Int64 = 0
    while next < extents.count, extents[next].lowerBound <= range.upperBound {
      covered += extents[next].clamped(to: range).byteCount
      merged =
        Swift.min(
          merged.lowerBound, extents[next].lowerBound)..<Swift.max(
          merged.upperBound, extents[next].upperBound)
      next += 1
    }
    extents.replaceSubrange(first..<next, with: CollectionOfOne(merged))
    byteCount += range.byteCount - covered
    return range.byteCount - covered
  }

  /// The bytes that are present in this set or in `other`; O(n) in the extents of both.
  package func union(_ other: ExtentSet) -> ExtentSet {
    if other.isEmpty { return self }
    if isEmpty { return other }
    var union = ExtentSet()
    union.extents.reserveCapacity(extents.count + other.extents.count)
    var (left, right) = (extents[...], other.extents[...])
    while let first = left.first ?? right.first {
      if let second = right.first, left.isEmpty || second.lowerBound < first.lowerBound {
        union.append(second)
        right.removeFirst()
      } else {
        union.append(first)
        left.removeFirst()
      }
    }
    return union
  }

  /// Adds `range`, which starts behind the start of the last extent.
  private mutating func append(_ range: ByteRange) {
    guard let last = extents.last, last.upperBound >= range.lowerBound else {
      extents.append(range)
      byteCount += range.byteCount
      return
    }
    let end = Swift.max(last.upperBound, range.upperBound)
    extents[extents.count - 1] = last.lowerBound..<end
    byteCount += end - last.upperBound
  }

  /// Marks the bytes of `range` as absent; returns how many of them were present before.
  @discardableResult
  package mutating func remove(_ range: ByteRange) -> Int64 {
    guard !range.isEmpty else { return 0 }
    let first = firstIndex(endingAfter: range.lowerBound)
    var next = first
    var kept: [ByteRange] = []
    var removed: Int64 = 0
    while next < extents.count, extents[next].lowerBound < range.upperBound {
      let extent = extents[next]
      removed += extent.clamped(to: range).byteCount
      if extent.lowerBound < range.lowerBound { kept.append(extent.lowerBound..<range.lowerBound) }
      if extent.upperBound > range.upperBound { kept.append(range.upperBound..<extent.upperBound) }
      next += 1
    }
    extents.replaceSubrange(first..<next, with: kept)
    byteCount -= removed
    return removed
  }

  /// Whether every byte of `range` is present.
  ///
  /// True for an empty range.
  package func contains(_ range: ByteRange) -> Bool {
    guard !range.isEmpty else { return true }
    let index = firstIndex(endingAfter: range.lowerBound)
    guard index < extents.count else { return false }
    return extents[index].lowerBound <= range.lowerBound
      && extents[index].upperBound >= range.upperBound
  }

  /// The first absent run of bytes within `range`, or nil if all are present.
  package func firstHole(in range: ByteRange) -> ByteRange? {
    guard !range.isEmpty else { return nil }
    var index = firstIndex(endingAfter: range.lowerBound)
    var start = range.lowerBound
    if index < extents.count, extents[index].lowerBound <= start {
      start = extents[index].upperBound
      index += 1
    }
    guard start < range.upperBound else { return nil }
    let end = index < extents.count ? extents[index].lowerBound : range.upperBound
    return start..<Swift.min(end, range.upperBound)
  }

  /// Every absent run of bytes within `range`, ascending.
  package func holes(in range: ByteRange) -> [ByteRange] {
    var holes: [ByteRange] = []
    var rest = range
    while let hole = firstHole(in: rest) {
      holes.append(hole)
      rest = hole.upperBound..<range.upperBound
    }
    return holes
  }

  /// Every present run of bytes within `range`, ascending.
  package func runs(in range: ByteRange) -> [ByteRange] {
    guard !range.isEmpty else { return [] }
    var runs: [ByteRange] = []
    var index = firstIndex(endingAfter: range.lowerBound)
    while index < extents.count, extents[index].lowerBound < range.upperBound {
      runs.append(extents[index].clamped(to: range))
      index += 1
    }
    return runs
  }

  /// Whether any byte of `range` is present.
  package func overlaps(_ range: ByteRange) -> Bool {
    guard !range.isEmpty else { return false }
    let index = firstIndex(endingAfter: range.lowerBound)
    return index < extents.count && extents[index].lowerBound < range.upperBound
  }

  /// The end of the present run that starts at `offset`, or `offset` if that byte is absent.
  package func presentEnd(from offset: Int64) -> Int64 {
    let index = firstIndex(endingAfter: offset)
    guard index < extents.count, extents[index].lowerBound <= offset else { return offset }
    return extents[index].upperBound
  }
}
