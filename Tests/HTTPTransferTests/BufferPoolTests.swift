import HTTPTransfer
import Testing

@Suite struct BufferPoolTests {
  @Test("However many buffers are taken one after the other, they hold little more than the limit")
  func limit() {
    let pool = BufferPool()
    var taken: [GatherBuffer] = []
    for count in 1...128 {
      taken.append(pool.take())
      let byteCount = taken.reduce(0) { $0 + $1.capacity }
      #expect(
        byteCount <= BufferPool.gatheredByteLimit + count * BufferPool.minimumGatherByteCount,
        "\(count) buffers")
    }
    #expect(taken.allSatisfy { $0.capacity >= BufferPool.minimumGatherByteCount })
    for buffer in taken { pool.giveBack(buffer) }
    // All buffers are back: a single buffer has its full size again.
    #expect(pool.take().capacity == BufferPool.bufferByteCount)
  }
}
