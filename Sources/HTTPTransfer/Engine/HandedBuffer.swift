/// A buffer whose bytes are on their way to where they are stored.
///
/// The last one to let go of it gives the buffer back to its pool.
package final class HandedBuffer: Sendable {
  private let buffer: GatherBuffer
  private let byteCount: Int
  private let pool: BufferPool
  private let released: @Sendable () -> Void

  /// - Parameters:
  ///   - buffer: the buffer, which nobody writes to from now on.
  ///   - byteCount: how many bytes of it count.
  ///   - pool: where it came from.
  ///   - released: called, on any thread, once nobody reads the buffer any more.
  package init(
    _ buffer: GatherBuffer, byteCount: Int, pool: BufferPool,
    released: @escaping @Sendable () -> Void = {}
  ) {
    self.buffer = buffer
    self.byteCount = byteCount
    self.pool = pool
    self.released = released
  }

  /// The bytes, for as long as somebody holds this object.
  package var bytes: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: buffer.bytes[..<byteCount])
  }

  deinit {
    pool.giveBack(buffer)
    released()
  }
}
