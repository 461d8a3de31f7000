/// A buffer whose bytes wait to be stored.
///
/// Its release returns the buffer to the pool.
package final class HandedBuffer: Sendable {
  private let buffer: GatherBuffer
  private let byteCount: Int
  private let pool: BufferPool
  private let released: @Sendable () -> Void

  /// - Parameters:
  ///   - buffer: the buffer, which is not written to from now on.
  ///   - byteCount: the number of its bytes that are valid.
  ///   - pool: the pool that owns the buffer.
  ///   - released: called, on any thread, when the buffer is no longer read.
  package init(
    _ buffer: GatherBuffer, byteCount: Int, pool: BufferPool,
    released: @escaping @Sendable () -> Void = {}
  ) {
    self.buffer = buffer
    self.byteCount = byteCount
    self.pool = pool
    self.released = released
  }

  /// The bytes, valid while this object exists.
  package var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: buffer.bytes[..<byteCount])
  }

  deinit {
    pool.giveBack(buffer)
    released()
  }
}
