import HTTPTransferCore
import SeededRandom
import Testing

@Suite struct ExtentSetTests {
  @Test(
    "Extents that overlap or touch become one",
    arguments: [
      ([], []), ([3..<3], []), ([0..<4, 4..<8], [0..<8]), ([4..<8, 0..<4], [0..<8]),
      ([0..<2, 6..<8, 2..<6], [0..<8]), ([0..<2, 6..<8, 1..<7], [0..<8]),
      ([0..<8, 2..<4], [0..<8]), ([2..<4, 0..<8], [0..<8]), ([0..<2, 3..<5], [0..<2, 3..<5]),
      ([10..<20, 0..<5, 5..<10], [0..<20]),
      ([0..<1, 2..<3, 4..<5, 6..<7, 2..<5], [0..<1, 2..<5, 6..<7]),
      ([0..<Int64.max], [0..<Int64.max]),
      ([(.max - 1)..<(.max), 0..<1], [0..<1, (.max - 1)..<(.max)]),
    ] as [([ByteRange], [ByteRange])])
  func merging(ranges: [ByteRange], expected: [ByteRange]) {
    let set = ExtentSet(ranges)
    #expect(set.extents == expected)
    #expect(set.byteCount == expected.reduce(0) { $0 + $1.byteCount })
    #expect(set.isEmpty == expected.isEmpty)
  }

  @Test("Insertion and removal say how many bytes changed")
  func changedByteCounts() {
    var set = ExtentSet()
    #expect(set.insert(10..<20) == 10)
    #expect(set.insert(10..<20) == 0)
    #expect(set.insert(15..<30) == 10)
    #expect(set.insert(0..<40) == 20)
    #expect(set.remove(5..<10) == 5)
    #expect(set.remove(0..<20) == 15)
    #expect(set.remove(0..<20) == 0)
    #expect(set.remove(30..<30) == 0)
    #expect(set.extents == [20..<40])
    #expect(set.byteCount == 20)
  }

  /// The same set of bytes, with one flag for each byte.
  private struct Bitmap {
    var isPresent: [Bool]

    var extents: [ByteRange] { runs(of: true, in: 0..<Int64(isPresent.count)) }

    /// The runs of present, or of absent, bytes in `range`.
    func runs(of value: Bool, in range: ByteRange) -> [ByteRange] {
      var runs: [ByteRange] = []
      for offset in range where isPresent[Int(offset)] == value {
        if let last = runs.last, last.upperBound == offset {
          runs[runs.count - 1] = last.lowerBound..<(offset + 1)
        } else {
          runs.append(offset..<(offset + 1))
        }
      }
      return runs
    }

    /// Sets every flag of `range`; returns how many have changed.
    mutating func fill(_ range: ByteRange, _ value: Bool) -> Int64 {
      var changed: Int64 = 0
      for offset in range where isPresent[Int(offset)] != value {
        isPresent[Int(offset)] = value
        changed += 1
      }
      return changed
    }

    func end(from offset: Int64) -> Int64 {
      var end = offset
      while end < isPresent.count, isPresent[Int(end)] { end += 1 }
      return end
    }
  }

  @Test("A union has the bytes of both sets", arguments: 1...50)
  func union(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    func set() -> ExtentSet {
      ExtentSet(
        (0..<Int.random(in: 0...12, using: &random)).map { _ in
          let start = Int64.random(in: 0...60, using: &random)
          return start..<(start + Int64.random(in: 0...8, using: &random))
        })
    }
    let (left, right) = (set(), set())
    #expect(left.union(right) == ExtentSet(left.extents + right.extents))
    #expect(right.union(left) == left.union(right))
  }

  @Test("Ten thousand random operations agree with a bitmap", arguments: 1...5)
  func againstBitmap(seed: UInt64) throws {
    let size: Int64 = 300
    var random = SeededGenerator(seed: seed)
    var set = ExtentSet()
    var bitmap = Bitmap(isPresent: Array(repeating: false, count: Int(size)))
    func randomRange() -> ByteRange {
      let offset = Int64.random(in: 0..<size, using: &random)
      // Mostly short, so the set stays fragmented.
      let limit = min(size - offset, Bool.random(using: &random) ? 6 : 60)
      return ByteRange(offset: offset, byteCount: .random(in: 0...limit, using: &random))
    }
    for step in 0..<2000 {
      let range = randomRange()
      if Bool.random(using: &random) {
        try #require(set.insert(range) == bitmap.fill(range, true), "step \(step)")
      } else {
        try #require(set.remove(range) == bitmap.fill(range, false), "step \(step)")
      }
      try #require(set.extents == bitmap.extents, "step \(step)")
      try #require(set.byteCount == bitmap.extents.reduce(0) { $0 + $1.byteCount })
      let asked = randomRange()
      let holes = bitmap.runs(of: false, in: asked)
      try #require(set.holes(in: asked) == holes, "step \(step), \(asked)")
      try #require(set.firstHole(in: asked) == holes.first)
      try #require(set.contains(asked) == holes.isEmpty)
      let runs = bitmap.runs(of: true, in: asked)
      try #require(set.runs(in: asked) == runs, "step \(step), \(asked)")
      try #require(set.overlaps(asked) == !runs.isEmpty)
      try #require(
        set.presentEnd(from: asked.lowerBound) == bitmap.end(from: asked.lowerBound))
    }
    // Equal bytes make equal values, whatever the order of insertion.
    #expect(ExtentSet(bitmap.extents.shuffled(using: &random)) == set)
  }
}
