import HTTPTransferCore
import SeededRandom
import Testing

@Suite struct SequentialReadersTests {
  private static let readByteCount: Int64 = 128 << 10

  /// Whether `window` fits a reader that has read `byteCount` bytes in order.
  ///
  /// It is never more than that, so at most twice as many bytes are fetched. It may be much less at
  /// first, but only a little less in the long run.
  private func isWindow(_ window: Int64, after byteCount: Int64) -> Bool {
    (max(byteCount / 4, byteCount - (4 << 20))...byteCount).contains(window)
  }

  /// The range of the read of `readByteCount` bytes at `offset`.
  private func read(at offset: Int64) -> ByteRange {
    ByteRange(offset: offset, byteCount: Self.readByteCount)
  }

  @Test(
    "A sequential reader's window grows with what it has read, from the second read on",
    arguments: [0, 1 << 30] as [Int64])
  func sequential(start: Int64) {
    var table = SequentialReaders()
    var last: Int64 = 0
    for index in 0..<100 as Range<Int64> {
      let stream = table.note(read(at: start + index * Self.readByteCount))
      let consumed = (index + 1) * Self.readByteCount
      #expect(stream.cursor == start + consumed)
      if index == 0 {
        #expect(stream.window == 0)
      } else {
        #expect(isWindow(stream.window, after: consumed))
        #expect(stream.window > last)
      }
      last = stream.window
    }
    #expect(table.streams.count == 1)
  }

  @Test("Eight interleaved readers are eight streams, each with a window of its own")
  func interleaved() {
    var table = SequentialReaders()
    for index in 0..<20 as Range<Int64> {
      for reader in 0..<8 as Range<Int64> {
        let start = reader << 30
        let stream = table.note(read(at: start + index * Self.readByteCount))
        #expect(stream.start == start)
        let consumed = (index + 1) * Self.readByteCount
        #expect(index == 0 ? stream.window == 0 : isWindow(stream.window, after: consumed))
      }
    }
    #expect(table.streams.count == 8)
  }

  @Test("Reads of several threads that arrive out of order belong to one stream")
  func outOfOrder() {
    var table = SequentialReaders()
    table.note(read(at: 0))
    for pair in stride(from: 1, to: 41, by: 2) as StrideTo<Int64> {
      table.note(read(at: (pair + 1) * Self.readByteCount))
      table.note(read(at: pair * Self.readByteCount))
    }
    #expect(table.streams.count == 1)
    #expect(table.streams.first?.cursor == 41 * Self.readByteCount)
    #expect(
      table.streams.map { isWindow($0.window, after: 41 * Self.readByteCount) } == [true])
  }

  @Test("A reader that leaves out more than it reads gets no window")
  func strided() {
    var table = SequentialReaders()
    for index in 0..<100 as Range<Int64> {
      let stream = table.note(ByteRange(offset: index * 65_536, byteCount: 4096))
      #expect(stream.window == 0)
    }
  }

  @Test("A reader that skips little keeps its window")
  func smallGaps() {
    var table = SequentialReaders()
    for index in 0..<100 as Range<Int64> {
      table.note(ByteRange(offset: index * 6000, byteCount: 4096))
    }
    #expect(table.streams.map { isWindow($0.window, after: 100 * 4096) } == [true])
  }

  @Test("A backward reader gets no window")
  func backward() {
    var table = SequentialReaders()
    for index in (0..<100 as Range<Int64>).reversed() {
      #expect(table.note(read(at: index * Self.readByteCount)).window == 0)
    }
  }

  @Test("Reading the same bytes again and again does not widen the window")
  func rereading() {
    var table = SequentialReaders()
    for _ in 0..<100 { table.note(read(at: 0)) }
    #expect(table.streams.allSatisfy { $0.window <= Self.readByteCount })
    #expect(table.streams.count == 1)
  }

  @Test("Random access gets no window", arguments: 1...4)
  func randomAccess(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var table = SequentialReaders()
    let places = (0..<2000 as Range<Int64>).shuffled(using: &random)
    for place in places {
      let offset = place * 3 * SequentialReaders.tolerance
      #expect(table.note(ByteRange(offset: offset, byteCount: 4096)).window == 0)
    }
    #expect(table.streams.count == SequentialReaders.limit)
  }

  @Test("The stream that was used least recently gives way to a ninth")
  func minimumRecentlyUsed() {
    var table = SequentialReaders()
    for reader in 0..<8 as Range<Int64> { table.note(read(at: reader << 30)) }
    // The first stream is used again: now the second is the oldest.
    table.note(read(at: Self.readByteCount))
    table.note(read(at: 8 << 30))
    #expect(Set(table.streams.map(\.start)) == Set([0, 2, 3, 4, 5, 6, 7, 8].map { $0 << 30 }))
    // The stream starts again when it returns.
    #expect(table.note(read(at: (1 << 30) + Self.readByteCount)).readCount == 1)
  }

  @Test("A read far from every cursor starts a stream; one within the tolerance belongs to it")
  func tolerance() {
    var table = SequentialReaders()
    let first = table.note(read(at: 1 << 30))
    #expect(table.note(read(at: first.cursor + SequentialReaders.tolerance)).readCount == 2)
    let cursor = table.streams[0].cursor
    #expect(table.note(read(at: cursor + SequentialReaders.tolerance + 1)).readCount == 1)
    // A read before the stream's beginning does not belong to it.
    #expect(table.note(read(at: (1 << 30) - 4096)).readCount == 1)
    #expect(table.streams.count == 3)
  }

  @Test("Reads at the greatest offsets are counted like others")
  func maximumOffsets() {
    var table = SequentialReaders()
    table.note((.max - 8192)..<(.max - 4096))
    let stream = table.note((.max - 4096)..<(.max))
    #expect(stream.readCount == 2)
    #expect(table.note(0..<4096).readCount == 1)
  }
}
