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
  private let storage: StorageQueue
  private let gatherer: BodyGatherer
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
    storage = version.file.environment.storage
    gatherer = BodyGatherer(
      position: body?.lowerBound ?? 0, start: start, pool: version.file.environment.buffers)
    expectedEnd = body?.upperBound
    // A read may come to wait for what has arrived before.
    feed.begin { [self] in handOver() }
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
    // What comes before the first byte asked for is not ours to store.
    var rest = gatherer.skip(piece)
    if rest.isEmpty {
      feed.skipped(to: gatherer.position)
      return .proceed
    }
    guard let advice = feed.advance(to: gatherer.position + Int64(rest.count)) else {
      return .stop
    }
    isAhead = advice.isAhead
    while !rest.isEmpty, gatherer.position < advice.end {
      if gatherer.gather(&rest, upTo: advice.end) { handOver() }
    }
    if advice.mustFlush || gatherer.position >= advice.end { handOver() }
    if error.withLock({ $0 != nil }) { return .stop }
    // The end may have been moved down: then more is coming, which nobody wants from here.
    return rest.isEmpty ? .proceed : .stop
  }

  /// Has what is gathered stored.
  private func handOver() {
    // Once nobody reads it any more, the disk neither, it is given back.
    guard let (handed, range) = gatherer.handOver(released: { [feed] in feed.storeEnded() })
    else { return }
    feed.handedOver(range)
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
    let position = gatherer.position
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
      version.home.responseEnded(of: version.id)
      version.ends.finished(id)
    case .stopped, .cancelled:
      version.ends.failed(id, nil)
    case .failed(let error):
      version.ends.failed(id, FileError(error))
    }
  }
}
