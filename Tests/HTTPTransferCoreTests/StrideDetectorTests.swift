import HTTPTransferCore
import SeededRandom
import Testing

@Suite struct StrideDetectorTests {
  private static let mebibyte: Int64 = 1 << 20

  private func table(_ ranges: [ByteRange]) -> StrideDetector {
    var table = StrideDetector()
    for range in ranges { table.note(range) }
    return table
  }

  /// Runs of `byteCount` bytes, `distance` apart.
  private func jumps(
    _ count: Int, from start: Int64 = 0, by distance: Int64, of byteCount: Int64
  ) -> [ByteRange] {
    (0..<Int64(count)).map { start + $0 * distance..<start + $0 * distance + byteCount }
  }

  @Test("Two equal jumps are believed, and as many more are expected")
  func forward() {
    let ranges = jumps(8, by: Self.mebibyte, of: 65_536)
    #expect(table(Array(ranges[..<2])).predictions(length: 1 << 40).isEmpty)
    #expect(table(Array(ranges[..<3])).predictions(length: 1 << 40) == Array(ranges[3..<5]))
    #expect(table(Array(ranges[..<5])).predictions(length: 1 << 40).first == ranges[5])
  }

  @Test("Nothing is expected beyond the end, nor before the start")
  func ends() {
    let ranges = jumps(4, by: Self.mebibyte, of: 65_536)
    #expect(table(ranges).predictions(length: 4 * Self.mebibyte).isEmpty)
    #expect(
      table(ranges).predictions(length: 4 * Self.mebibyte + 100)
        == [4 * Self.mebibyte..<4 * Self.mebibyte + 100])
    #expect(table(ranges.reversed()).predictions(length: 1 << 40).isEmpty)
  }

  @Test("A file read backward in blocks, each of several reads, is read ahead of backward")
  func backward() {
    let blocks = jumps(32, from: 0, by: Self.mebibyte, of: Self.mebibyte).reversed()
    let reads = blocks.prefix(3).flatMap { block in
      jumps(8, from: block.lowerBound, by: 131_072, of: 131_072)
    }
    #expect(
      table(reads).predictions(length: 32 * Self.mebibyte)
        == [17 * Self.mebibyte..<29 * Self.mebibyte])
  }

  @Test("After two steps back 512 KiB are expected, which is what the kernel reads ahead forward")
  func backwardStart() {
    let reads = Array(jumps(64, by: 65_536, of: 65_536).reversed())
    #expect(table(Array(reads.prefix(2))).predictions(length: 1 << 40).isEmpty)
    let position = reads[2].lowerBound
    #expect(
      table(Array(reads.prefix(3))).predictions(length: 1 << 40) == [position - 524_288..<position])
  }

  @Test("Of a file that is read backward for long, 16 MiB are expected, and not beyond its start")
  func longBackward() {
    let reads = Array(jumps(1600, by: 65_536, of: 65_536).reversed())
    let far = table(Array(reads.prefix(600))).predictions(length: 1 << 40)
    let position = reads[599].lowerBound
    #expect(far == [position - 16 * Self.mebibyte..<position])
    let near = table(Array(reads.prefix(1500))).predictions(length: 1 << 40)
    #expect(near == [0..<reads[1499].lowerBound])
    #expect(table(reads).predictions(length: 1 << 40).isEmpty)
  }

  @Test("A jump that is no whole number of pages is met all the same")
  func unevenJumps() throws {
    let page = FetchPlanner.page
    let starts = (0..<200).map { Int64($0) * 60_928 / page * page }
    var table = StrideDetector()
    for (index, start) in starts.enumerated() {
      table.note(start..<start + 12_288)
      guard index >= 3, index + 1 < starts.count else { continue }
      let next = try #require(table.predictions(length: 1 << 40).first)
      #expect(next.lowerBound <= starts[index + 1])
      #expect(next.upperBound >= starts[index + 1] + 12_288)
    }
  }

  @Test("Nothing is expected of random reads, nor of one who reads in order")
  func others() {
    var random = SeededGenerator(seed: 1)
    var table = StrideDetector()
    var expected = 0
    for _ in 0..<10_000 {
      let start = Int64.random(in: 0..<1 << 28, using: &random) * FetchPlanner.page
      table.note(start..<start + FetchPlanner.page)
      expected += table.predictions(length: 1 << 40).count
    }
    #expect(expected == 0)
    #expect(self.table(jumps(100, by: 65_536, of: 65_536)).predictions(length: 1 << 40).isEmpty)
  }

  @Test("Two who jump at the same time are told apart once one of them is known")
  func interleaved() {
    let first = jumps(20, by: Self.mebibyte, of: 4096)
    let second = jumps(20, from: 1 << 32, by: 3 * Self.mebibyte, of: 8192)
    var table = table(Array(first[..<5]))
    for index in 5..<15 {
      table.note(first[index])
      table.note(second[index])
    }
    let predictions = table.predictions(length: 1 << 40)
    #expect(predictions.contains(first[15]))
    #expect(predictions.contains(second[15]))
  }

  @Test("Any reads of any file are taken without a trap")
  func extremes() {
    var random = SeededGenerator(seed: 2)
    var table = StrideDetector()
    for _ in 0..<10_000 {
      let start =
        [0, 1, 1 << 62, .max - 8192].randomElement(using: &random).map {
          $0 + Int64.random(in: 0..<4096, using: &random)
        } ?? 0
      table.note(start..<start + Int64.random(in: 0...4096, using: &random))
      _ = table.predictions(length: [0, 1, 1 << 40, .max].randomElement(using: &random) ?? 0)
    }
  }
}
