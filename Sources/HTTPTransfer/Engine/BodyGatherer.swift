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
  /// The position at the last report; see ``gatherUnreported(_:before:)``.
  private var reportedPosition: Int64

  /// The maximum number of gathered bytes that wait for their report.
  ///
  /// A report takes locks and looks at all segments. Eight pieces together need only one.
  private static let unreportedByteCount: Int64 = 128 << 10

  /// - Parameters:
  ///   - position: the offset of the body's first byte.
  ///   - start: the offset of the first wanted byte.
  ///   - pool: the source of the buffers.
  package init(position: Int64, start: Int64, pool: BufferPool) {
    self.pool = pool
    self.position = position
    self.start = max(position, start)
    reportedPosition = position
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

  /// Whether the present buffer can hold the next piece.
  package func fits(_ piece: UnsafeRawBufferPointer) -> Bool {
    buffer.map { byteCount + piece.count <= $0.capacity } ?? false
  }

  /// Copies all of `piece` if the caller need not look at it now.
  ///
  /// The caller reports the position at the end of the network thread's turn, or earlier if this
  /// returns false: for the first piece of a buffer and for the last one, for a piece that reaches
  /// `end`, and if many bytes are unreported.
  ///
  /// - Returns: whether the piece was copied.
  package func gatherUnreported(
    _ piece: Slice<UnsafeRawBufferPointer>, before end: Int64
  ) -> Bool {
    let arrived = position + Int64(piece.count)
    guard let buffer, byteCount + piece.count < buffer.capacity, arrived < end,
      arrived - reportedPosition < Self.unreportedByteCount
    else { return false }
    copy(piece, to: buffer)
    return true
  }

  /// Whether bytes have been gathered since the last report.
  package var hasUnreported: Bool { position > reportedPosition }

  /// Notes that the caller reports all bytes up to `position`.
  package func recordReport(to position: Int64) { reportedPosition = position }

  private func copy(_ piece: Slice<UnsafeRawBufferPointer>, to buffer: GatherBuffer) {
    UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[byteCount...])
      .copyMemory(from: UnsafeRawBufferPointer(rebasing: piece))
    byteCount += piece.count
    position += Int64(piece.count)
  }

  /// Copies as much of `piece` as the buffer can hold, up to the offset `end`.
  ///
  /// - Returns: whether the buffer is full and must be handed over.
  package func gather(_ piece: inout Slice<UnsafeRawBufferPointer>, upTo end: Int64) -> Bool {
    let buffer = self.buffer ?? pool.take()
    self.buffer = buffer
    let part = piece.prefix(Int(min(Int64(buffer.capacity - byteCount), end - position)))
    copy(part, to: buffer)
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
