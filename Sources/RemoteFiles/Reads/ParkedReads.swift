internal import HTTPTransferCore

/// Identifies one waiting read of one version.
struct ReadID: Hashable, Sendable {
  let rawValue: Int
}

/// A read that waits for bytes.
struct ParkedRead: Sendable {
  let id: ReadID
  let range: ByteRange
  let since: ContinuousClock.Instant
  var deadline: ContinuousClock.Instant
}

/// The waiting reads of one version, ascending by offset.
struct ParkedReads: Sendable {
  private(set) var reads: [ParkedRead] = []
  /// The length of the longest read so far: bounds how far back an overlapping one can start.
  private var maximumByteCount: Int64 = 0

  var isEmpty: Bool { reads.isEmpty }

  /// When the most recent read began to wait; nil if none waits.
  var lastWaitBegan: ContinuousClock.Instant? { reads.lazy.map(\.since).max() }

  mutating func insert(_ read: ParkedRead) {
    maximumByteCount = max(maximumByteCount, read.range.byteCount)
    reads.insert(read, at: firstIndex(from: read.range.lowerBound))
  }

  /// Removes and returns the reads that overlap `range` and match `predicate`.
  mutating func remove(
    overlapping range: ByteRange, where predicate: (ParkedRead) -> Bool
  ) -> [ParkedRead] {
    var index = firstIndex(from: range.lowerBound - maximumByteCount)
    var removed: [ParkedRead] = []
    while index < reads.count, reads[index].range.lowerBound < range.upperBound {
      if reads[index].range.overlaps(range), predicate(reads[index]) {
        removed.append(reads.remove(at: index))
      } else {
        index += 1
      }
    }
    return removed
  }

  mutating func removeAll(where predicate: (ParkedRead) -> Bool) -> [ParkedRead] {
    let removed = reads.filter(predicate)
    if !removed.isEmpty { reads.removeAll(where: predicate) }
    return removed
  }

  /// The position at which `segment` next completes the bytes of a waiting read.
  func nextWake(by segment: Segment, in content: ContentMap) -> Int64? {
    let range = segment.start..<segment.end
    guard content.pieces != nil else {
      return nextWake(in: range, after: segment.position, partly: content.length == nil)
    }
    return reads.lazy.compactMap {
      content.nextPieceEnd(of: $0.range, in: range, after: segment.position)
    }.min()
  }

  /// Moves all deadlines by `delay`.
  mutating func postpone(by delay: Duration) {
    for index in reads.indices { reads[index].deadline += delay }
  }

  /// The lowest position after `position` at which bytes that arrive in order wake a read.
  ///
  /// This is the least end, within `range`, of the reads that overlap it beyond `position`. With
  /// `partly`, a read wakes at its first byte.
  func nextWake(in range: ByteRange, after position: Int64, partly: Bool) -> Int64? {
    var index = firstIndex(from: position - maximumByteCount)
    var least: Int64?
    while index < reads.count, reads[index].range.lowerBound < range.upperBound {
      let read = reads[index].range
      let end = min(partly ? max(position, read.lowerBound) + 1 : read.upperBound, range.upperBound)
      if end > position { least = min(least ?? end, end) }
      index += 1
    }
    return least
  }

  private func firstIndex(from offset: Int64) -> Int {
    var low = 0
    var high = reads.count
    while low < high {
      let middle = (low + high) / 2
      if reads[middle].range.lowerBound >= offset { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
