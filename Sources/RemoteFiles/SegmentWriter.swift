internal import HTTPTransfer
internal import HTTPTransferCore

/// Puts the body of one response into the cache: gathers libcurl's pieces, writes them in large
/// runs, or at once when a read waits for them, and marks them present.
///
/// `@unchecked Sendable`: used on the network thread only; others just hold it, to ask that thread
/// for a flush.
final class SegmentWriter: @unchecked Sendable {
  private let version: RemoteVersion
  private let id: SegmentID
  private let pool: BufferPool
  private var buffer: GatherBuffer?
  /// The offset in the file of the buffer's first byte.
  private var bufferStart: Int64
  private var bufferedByteCount = 0
  /// The offset of the next byte to arrive.
  private var position: Int64
  /// Where the body ends, as the head says; nil where only its end will tell.
  private let expectedEnd: Int64?
  private var error: FileError?

  /// A writer of a body that holds the bytes `body` of the file (nil for all of it, of unknown
  /// length); what comes before `start` is dropped.
  init(version: RemoteVersion, id: SegmentID, body: ByteRange?, start: Int64) {
    self.version = version
    self.id = id
    pool = version.file.environment.buffers
    position = body?.lowerBound ?? 0
    expectedEnd = body?.upperBound
    bufferStart = max(position, start)
    version.setWriter(self, of: id)
  }

  /// Writes out what a read has come to wait for after it arrived.
  func flushForReader() { _ = flush() }

  deinit {
    if let buffer { pool.giveBack(buffer) }
  }

  /// Takes a piece of the body.
  func take(_ piece: UnsafeRawBufferPointer) -> ExchangeDisposition {
    var piece = piece[...]
    // What comes before the first byte asked for is not ours to store.
    if position < bufferStart {
      let skipped = min(piece.count, Int(bufferStart - position))
      position += Int64(skipped)
      piece = piece.dropFirst(skipped)
      if piece.isEmpty { return .proceed }
    }
    guard let advice = version.advance(id, to: position + Int64(piece.count)) else { return .stop }
    let wanted = Int(max(0, min(Int64(piece.count), advice.end - position)))
    var rest = piece.prefix(wanted)
    while !rest.isEmpty {
      let buffer = self.buffer ?? pool.take()
      self.buffer = buffer
      let room = BufferPool.bufferByteCount - bufferedByteCount
      let part = rest.prefix(room)
      UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[bufferedByteCount...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
      bufferedByteCount += part.count
      position += Int64(part.count)
      rest = rest.dropFirst(part.count)
      if bufferedByteCount == BufferPool.bufferByteCount, !flush() { return .stop }
    }
    if advice.mustFlush, !flush() { return .stop }
    if position >= advice.end {
      // The end may have been moved down: then more is coming, which nobody wants from here.
      return flush() && wanted == piece.count ? .proceed : .stop
    }
    return .proceed
  }

  /// Writes out what is gathered; false where that fails, see ``error``.
  private func flush() -> Bool {
    guard bufferedByteCount > 0, let buffer else { return true }
    let range = ByteRange(offset: bufferStart, byteCount: Int64(bufferedByteCount))
    defer {
      bufferStart = range.upperBound
      bufferedByteCount = 0
    }
    do throws(FileError) {
      for hole in version.holes(in: range) {
        let slice = buffer.bytes[
          Int(hole.lowerBound - bufferStart)..<Int(hole.upperBound - bufferStart)]
        try version.store(UnsafeRawBufferPointer(rebasing: slice), at: hole.lowerBound)
      }
    } catch {
      self.error = error
      return false
    }
    version.stored(id, range)
    return true
  }

  /// The transfer has ended: writes out the rest and tells the version; `failure` is why the receiver
  /// ended it, if it did so for a reason.
  func finish(_ completion: ExchangeCompletion, failure: FileError?) {
    _ = flush()
    if let failure = failure ?? error { return version.failed(id, failure) }
    switch completion {
    case .finished:
      if let expectedEnd {
        guard position >= expectedEnd else {
          return version.failed(id, FileError(.unavailable, "response cut short"))
        }
      } else if let length = version.length {
        guard position >= length else {
          return version.failed(id, FileError(.unavailable, "response cut short"))
        }
      } else {
        version.ended(at: position)
      }
      version.file.responseEnded(of: version)
      version.finished(id)
    case .stopped, .cancelled:
      version.failed(id, nil)
    case .failed(let error):
      version.failed(id, FileError(error))
    }
  }
}
