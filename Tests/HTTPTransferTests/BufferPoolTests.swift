import Glibc
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

  @Test("A buffer that is used again with a smaller capacity occupies little more memory than that")
  func memory() throws {
    let pool = BufferPool()
    let buffers = (1...128).map { _ in pool.take() }
    let full = buffers[0]
    full.bytes.initializeMemory(as: UInt8.self, repeating: 1)
    #expect(try residentByteCount(full) == BufferPool.bufferByteCount)
    pool.giveBack(full)
    let again = pool.take()
    #expect(again === full)
    #expect(again.capacity < BufferPool.bufferByteCount / 2)
    #expect(try residentByteCount(again) <= again.capacity + Int(getpagesize()))
    // What it holds is unharmed.
    #expect(again.bytes[..<again.capacity].allSatisfy { $0 == 1 })
    for buffer in buffers { pool.giveBack(buffer) }
  }

  /// The bytes of a buffer that occupy memory (`mincore(2)`).
  private func residentByteCount(_ buffer: GatherBuffer) throws -> Int {
    let pageByteCount = Int(getpagesize())
    var pages = [UInt8](repeating: 0, count: buffer.bytes.count / pageByteCount)
    try #require(mincore(buffer.bytes.baseAddress, buffer.bytes.count, &pages) == 0)
    return pages.count(where: { $0 & 1 == 1 }) * pageByteCount
  }
}
