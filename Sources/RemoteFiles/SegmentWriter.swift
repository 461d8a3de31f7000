internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Puts the body of one response into the cache: gathers libcurl's pieces on the network thread, and hands
/// them over in large runs, or at once when a read waits for them, to be stored and marked present.
///
/// `@unchecked Sendable`: what is gathered belongs to the network thread; others just hold the writer, to ask
/// that thread for a flush, and the storage queue sees buffers that were handed over.
final class SegmentWriter: @unchecked Sendable {
  private let version: RemoteVersion
  private let id: SegmentID
  private let feed: SegmentFeed
  private let transfer: ExchangeID
  private let pool: BufferPool
  private let storage: StorageQueue
  private var buffer: GatherBuffer?
  /// The offset in the file of the buffer's first byte.
  private var bufferStart: Int64
  private var bufferedByteCount = 0
  /// The offset of the next byte to arrive.
  private var position: Int64
  /// Whether the last piece went far ahead of the reader.
  private var isAhead = false
  /// Where the body ends, as the head says; nil where only its end will tell.
  private let expectedEnd: Int64?
  /// Why something could not be stored.
  private let error = Mutex<FileError?>(nil)

  /// A writer of a body that holds the bytes `body` of the file (nil for all of it, of unknown
  /// length); what comes before `start` is dropped.
  init(
    version: RemoteVersion, id: SegmentID, transfer: ExchangeID, body: ByteRange?, start: Int64
  ) {
    self.version = version
    self.id = id
    feed = SegmentFeed(owner: version, id: id)
    self.transfer = transfer
    pool = version.file.environment.buffers
    storage = version.file.environment.storage
    position = body?.lowerBound ?? 0
    expectedEnd = body?.upperBound
    bufferStart = max(position, start)
    feed.begin(self)
  }

  /// Hands over what a read has come to wait for after it arrived.
  func flushForReader() { handOver() }

  deinit {
    if let buffer { pool.giveBack(buffer) }
  }

  /// Whether the next piece may be taken; if not, the exchange is to pause, and goes on when it may.
  func hasRoom() -> Bool {
    if isAhead, feed.awaitsReader() { return false }
    if storage.hasRoom(for: transfer) { return true }
    feed.note(.awaitsStorage)
    return false
  }

  /// A rate limit holds the next piece back.
  func throttled() { feed.note(.throttled) }

  /// Takes a piece of the body.
  func take(_ piece: UnsafeRawBufferPointer) -> ExchangeDisposition {
    var piece = piece[...]
    // What comes before the first byte asked for is not ours to store.
    if position < bufferStart {
      let skipped = min(piece.count, Int(bufferStart - position))
      position += Int64(skipped)
      piece = piece.dropFirst(skipped)
      if piece.isEmpty {
        feed.skipped(to: position)
        return .proceed
      }
    }
    guard let advice = feed.advance(to: position + Int64(piece.count)) else { return .stop }
    isAhead = advice.isAhead
    let wanted = Int(max(0, min(Int64(piece.count), advice.end - position)))
    var rest = piece.prefix(wanted)
    while !rest.isEmpty {
      let buffer = self.buffer ?? pool.take()
      self.buffer = buffer
      let part = rest.prefix(buffer.capacity - bufferedByteCount)
      UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[bufferedByteCount...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
      bufferedByteCount += part.count
      position += Int64(part.count)
      rest = rest.dropFirst(part.count)
      if bufferedByteCount >= buffer.capacity { handOver() }
    }
    if advice.mustFlush || position >= advice.end { handOver() }
    if error.withLock({ $0 != nil }) { return .stop }
    // The end may have been moved down: then more is coming, which nobody wants from here.
    return position >= advice.end && wanted < piece.count ? .stop : .proceed
  }

  /// Has what is gathered stored.
  private func handOver() {
    guard bufferedByteCount > 0, let buffer else { return }
    let range = ByteRange(offset: bufferStart, byteCount: Int64(bufferedByteCount))
    bufferStart = range.upperBound
    bufferedByteCount = 0
    self.buffer = nil
    feed.handedOver(range)
    let handed = HandedBuffer(buffer, byteCount: Int(range.byteCount), pool: pool) { [feed] in
      // Nobody reads it any more, the disk neither.
      feed.storeEnded()
    }
    storage.store { [self] in
      let result = put(handed, as: range, withDisk: true)
      return { [self] in take(result) }
    } withoutDisk: { [self] in
      _ = take(put(handed, as: range, withDisk: false))
    }
  }

  /// Puts the bytes `range` of the file, which the buffer holds, somewhere.
  private func put(
    _ handed: HandedBuffer, as range: ByteRange, withDisk: Bool
  ) -> ByteStorer.StoreResult? {
    guard error.withLock({ $0 == nil }) else { return nil }
    return version.storer.put(handed.bytes, as: range, withDisk: withDisk)
  }

  /// Has what was put somewhere marked present; false where the rest must go to memory.
  private func take(_ result: ByteStorer.StoreResult?) -> Bool {
    guard let result else { return true }
    do throws(FileError) {
      return try version.storer.take(result, of: id)
    } catch {
      self.error.withLock { $0 = error }
      // It may be silent, or paused.
      version.file.environment.client.cancel(transfer)
      return true
    }
  }

  /// The transfer has ended: has the rest stored, then tells the version and does what comes `after`, in
  /// that order; `failure` is why the receiver ended it, if it did so for a reason.
  func finish(
    _ completion: ExchangeCompletion, failure: FileError?,
    after: @escaping @Sendable () -> Void = {}
  ) {
    handOver()
    feed.requestEnded()
    // The network thread has no more to say.
    let position = position
    storage.follow { [self] in
      settle(completion, failure: failure ?? error.withLock { $0 }, position: position)
      after()
    }
  }

  private func settle(_ completion: ExchangeCompletion, failure: FileError?, position: Int64) {
    if let failure { return version.ends.failed(id, failure) }
    switch completion {
    case .finished:
      if let expectedEnd {
        guard position >= expectedEnd else {
          return version.ends.failed(id, FileError(.unavailable, "response cut short"))
        }
      } else if let failure = version.lengthRecorder.ended(at: position) {
        return version.ends.failed(id, failure)
      }
      version.file.responseEnded(of: version)
      version.ends.finished(id)
    case .stopped, .cancelled:
      version.ends.failed(id, nil)
    case .failed(let error):
      version.ends.failed(id, FileError(error))
    }
  }
}
