import HTTPTransfer
import HTTPTransferCore
import Testing

@Suite struct BodyGathererTests {
  private let pool = BufferPool()

  /// Makes `gatherer` accept `piece`, and passes each full buffer on.
  private func take(
    _ piece: [UInt8], upTo end: Int64, _ gatherer: BodyGatherer, into file: inout [Int64: [UInt8]]
  ) -> Int {
    piece.withUnsafeBytes { bytes in
      var rest = gatherer.skip(bytes)
      while !rest.isEmpty, gatherer.position < end {
        if gatherer.gather(&rest, upTo: end) { enqueue(gatherer, into: &file) }
      }
      return rest.count
    }
  }

  private func enqueue(_ gatherer: BodyGatherer, into file: inout [Int64: [UInt8]]) {
    guard let (handed, range) = gatherer.enqueue() else { return }
    #expect(handed.bytes.count == Int(range.byteCount))
    file[range.lowerBound] = Array(handed.bytes)
  }

  @Test("What comes before the first byte wanted, and behind the end, is left out")
  func edges() {
    let gatherer = BodyGatherer(position: 100, start: 106, pool: pool)
    var file: [Int64: [UInt8]] = [:]
    #expect(take([0, 1, 2, 3], upTo: 110, gatherer, into: &file) == 0)
    #expect(gatherer.position == 104)
    #expect(take([4, 5, 6, 7], upTo: 110, gatherer, into: &file) == 0)
    #expect(take([8, 9, 10, 11], upTo: 110, gatherer, into: &file) == 2)
    #expect(gatherer.position == 110)
    #expect(file.isEmpty)
    enqueue(gatherer, into: &file)
    #expect(file == [106: [6, 7, 8, 9]])
    enqueue(gatherer, into: &file)
    #expect(file.count == 1)
  }

  @Test("Full buffers are handed over in between")
  func fullBuffers() {
    let gatherer = BodyGatherer(position: 0, start: 0, pool: pool)
    var file: [Int64: [UInt8]] = [:]
    let count = 2 * BufferPool.bufferByteCount + 12_345
    let body = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    for start in stride(from: 0, to: count, by: 16_000) {
      let piece = Array(body[start..<min(count, start + 16_000)])
      #expect(take(piece, upTo: .max, gatherer, into: &file) == 0)
    }
    #expect(file.count >= 2)
    enqueue(gatherer, into: &file)
    #expect(file.sorted { $0.key < $1.key }.flatMap(\.value) == body)
  }
}
