package import HTTPTransferCore

/// Gathers the pieces of one body, which libcurl hands over, into runs that are worth a system
/// call.
///
/// It calls no other object, so the code that takes a run may end the exchange.
package final class BodyGatherer {
  private let pool: BufferPool
  private var buffer: GatherBuffer?
  /// The offset in the file of the buffer's first byte.
  private var start: Int64
  private var byteCount = 0
  /// The offset of the next byte to arrive.
  package private(set) var position: Int64

  /// - Parameters:
  ///   - position: the offset of the body's first byte.
  ///   - start: the offset of the first wanted byte.
  ///   - pool: the source of the buffers.
  package init(position: Int64, start: Int64, pool: BufferPool) {
    self.pool = pool
    self.position = position
    self.start = max(position, start)
  }

  deinit {
    if let buffer { pool.giveBack(buffer) }
  }

  /// Skips the bytes before the first wanted byte.
  ///
  /// - Returns: the rest of the piece.
  package func skip(_ piece: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer> {
    let skipped = min(Int64(piece.count), max(0, start - position))
    position += skipped
    return piece[Int(skipped)...]
  }

  /// Copies as much of `piece` as the buffer can hold, up to the offset `end`.
  ///
  /// - Returns: whether the buffer is full and must be handed over.
  package func gather(_ piece: inout Slice<UnsafeRawBufferPointer>, upTo end: Int64) -> Bool {
    let buffer = self.buffer ?? pool.take()
    self.buffer = buffer
    let part = piece.prefix(Int(min(Int64(buffer.capacity - byteCount), end - position)))
    UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[byteCount...])
      .copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
    byteCount += part.count
    position += Int64(part.count)
    piece = piece.dropFirst(part.count)
    return byteCount >= buffer.capacity
  }

  /// Hands over the gathered bytes; nil if there are none.
  ///
  /// - Parameter released: called, on any thread, when the buffer is no longer read.
  /// - Returns: the bytes, and their range in the file.
  package func enqueue(
    released: @escaping @Sendable () -> Void = {}
  ) -> (bytes: HandedBuffer, range: ByteRange)? {
    guard byteCount > 0, let buffer else { return nil }
    let range = ByteRange(offset: start, byteCount: Int64(byteCount))
    self.buffer = nil
    start = range.upperBound
    byteCount = 0
    let handed = HandedBuffer(
      buffer, byteCount: Int(range.byteCount), pool: pool, released: released)
    return (handed, range)
  }
}
