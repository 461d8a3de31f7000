import HTTPTransferCore
import SeededRandom
import Testing

@testable import RemoteFiles

@Suite struct ParkedReadsTests {
  private func reads(_ ranges: [ByteRange]) -> ParkedReads {
    var parked = ParkedReads()
    for range in ranges { parked.insert(parkedRead(range)) }
    return parked
  }

  @Test("Reads are kept ascending by offset")
  func order() {
    let parked = reads([50..<60, 0..<100, 20..<30, 50..<52, 0..<1])
    #expect(parked.reads.map(\.range.lowerBound) == [0, 0, 20, 50, 50])
    #expect(!parked.isEmpty)
    #expect(ParkedReads().isEmpty)
  }

  @Test("Reads that only touch a range do not overlap it")
  func touching() {
    var parked = reads([0..<10, 10..<20, 20..<30])
    let removed = parked.remove(overlapping: 10..<20) { _ in true }
    #expect(removed.map(\.range) == [10..<20])
    #expect(parked.reads.map(\.range) == [0..<10, 20..<30])
  }

  @Test(
    "The next wake is the least end of a read that lies ahead, or the range's own end",
    arguments: [
      (0..<100, 0, false, 30), (0..<100, 10, false, 30), (0..<100, 30, false, 60),
      (0..<100, 60, false, 80), (0..<70, 60, false, 70), (0..<100, 80, false, nil),
      (0..<5, 0, false, nil), (0..<100, 0, true, 11), (0..<100, 15, true, 16),
      (0..<100, 35, true, 41),
    ] as [(ByteRange, Int64, Bool, Int64?)])
  func nextWake(range: ByteRange, position: Int64, partly: Bool, expected: Int64?) {
    // A long read, and shorter ones within and after it.
    let parked = reads(partly ? [10..<30, 40..<60] : [10..<30, 40..<60, 12..<80])
    #expect(parked.nextWake(in: range, after: position, partly: partly) == expected)
  }

  @Test("Random insertions, removals and questions agree with a plain list", arguments: 1...4)
  func againstList(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var parked = ParkedReads()
    var list: [ParkedRead] = []
    func randomRange() -> ByteRange {
      let byteCount = Int64.random(in: 1...(random.next() % 10 == 0 ? 200 : 20), using: &random)
      return ByteRange(offset: .random(in: 0..<1000, using: &random), byteCount: byteCount)
    }
    for step in 0..<10_000 {
      if list.count < 40 || Bool.random(using: &random) {
        let read = parkedRead(randomRange())
        parked.insert(read)
        list.append(read)
      }
      let range = randomRange()
      let chance = UInt64.random(in: 1...4, using: &random)
      // It depends only on the read, so both get the same predicate.
      let predicate = { (read: ParkedRead) in
        UInt64(bitPattern: Int64(read.id.hashValue)) % chance == 0
      }
      let removed: [ParkedRead]
      let expected: [ParkedRead]
      if step % 50 == 49 {
        removed = parked.removeAll { predicate($0) && $0.range.lowerBound % 2 == 0 }
        expected = list.filter { predicate($0) && $0.range.lowerBound % 2 == 0 }
      } else {
        removed = parked.remove(overlapping: range, where: predicate)
        expected = list.filter { $0.range.overlaps(range) && predicate($0) }
      }
      let gone = Set(expected.map(\.id))
      try #require(Set(removed.map(\.id)) == gone, "step \(step)")
      try #require(removed.count == expected.count)
      list.removeAll { gone.contains($0.id) }
      try #require(parked.reads.count == list.count)
      let bounds = parked.reads.map(\.range.lowerBound)
      try #require(bounds == bounds.sorted())
      let region = randomRange()
      let position = Int64.random(in: region.lowerBound...region.upperBound, using: &random)
      let ends = list.map(\.range).filter { $0.overlaps(region) && $0.upperBound > position }
        .map { min($0.upperBound, region.upperBound) }.filter { $0 > position }
      try #require(
        parked.nextWake(in: region, after: position, partly: false) == ends.min(), "step \(step)")
    }
  }
}
