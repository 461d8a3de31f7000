internal import HTTPTransfer
internal import HTTPTransferCore
internal import Synchronization

/// Puts the body of one response into the cache.
///
/// It gathers libcurl's pieces on the network thread, and hands them over in large runs to be
/// stored and marked present; immediately if a read waits for them.
///
/// `@unchecked Sendable`: the gathered bytes belong to the network thread. Other threads hold the
/// writer only to ask that thread for a flush, and the storage queue sees only buffers that were
/// handed over.
final class SegmentWriter: @unchecked Sendable {
  private let version: RemoteVersion
  private let id: SegmentID
  private let feed: SegmentFeed
  private let exchange: ExchangeID
  private let storage: StorageQueue
  private let gatherer: BodyGatherer
  /// Whether the last piece was far ahead of the reader.
  private var isAhead = false
  /// The end of the body according to its head; nil if only its end shows it.
  private let expectedEnd: Int64?
  /// Why bytes could not be stored.
  private let error = Mutex<FileError?>(nil)

  private var storer: ByteStorer { ByteStorer(owner: version) }
  private var ends: RequestEnds { RequestEnds(owner: version) }

  /// Creates a writer of a body that holds the bytes `body` of the file; bytes before `start` are
  /// dropped.
  ///
  /// A `body` of nil means all of the file, with unknown length.
  init(
    version: RemoteVersion, id: SegmentID, exchange: ExchangeID, body: ByteRange?, start: Int64
  ) {
    self.version = version
    self.id = id
    feed = SegmentFeed(owner: version, id: id)
    self.exchange = exchange
    storage = version.file.environment.storage
    gatherer = BodyGatherer(
      position: body?.lowerBound ?? 0, start: start, pool: version.file.environment.buffers)
    expectedEnd = body?.upperBound
    // A later read may wait for bytes that have already arrived.
    feed.begin { [self] in enqueue() }
  }

  /// Whether there is room for the next piece; if not, the exchange must pause until there is.
  func hasRoom() -> Bool {
    if isAhead, feed.awaitsReader() { return false }
    if storage.hasRoom(for: exchange) { return true }
    feed.note(.awaitsStorage)
    return false
  }

  /// Records that a rate limit delays the next piece.
  func throttled() { feed.note(.throttled) }

  /// Takes a piece of the body.
  func take(_ piece: UnsafeRawBufferPointer) -> ExchangeDisposition {
    // Bytes before the first requested byte are not stored.
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
      if gatherer.gather(&rest, upTo: advice.end) { enqueue() }
    }
    if advice.mustFlush || gatherer.position >= advice.end { enqueue() }
    if error.withLock({ $0 != nil }) { return .stop }
    // The end may have been moved down; bytes beyond it are not wanted from this request.
    return rest.isEmpty ? .proceed : .stop
  }

  /// Hands the gathered bytes over for storage.
  private func enqueue() {
    // The buffer is returned when neither a reader nor the disk uses it any more.
    guard let (handed, range) = gatherer.enqueue(released: { [feed] in feed.storeEnded() })
    else { return }
    feed.handedOver(range)
    storage.store { [self] in
      let result = put(handed, as: range, withDisk: true)
      return { [self] in take(result) }
    } withoutDisk: { [self] in
      _ = take(put(handed, as: range, withDisk: false))
    }
  }

  /// Stores the bytes `range` of the file, which the buffer holds, in the cache or in memory.
  private func put(
    _ handed: HandedBuffer, as range: ByteRange, withDisk: Bool
  ) -> ByteStorer.StoreResult? {
    guard error.withLock({ $0 == nil }) else { return nil }
    return storer.put(handed.bytes, as: range, withDisk: withDisk)
  }

  /// Marks stored bytes present; returns false if the rest must go to memory.
  private func take(_ result: ByteStorer.StoreResult?) -> Bool {
    guard let result else { return true }
    do throws(FileError) {
      return try storer.take(result, of: id)
    } catch {
      self.error.withLock { $0 = error }
      // The exchange may be stalled, or paused.
      version.file.environment.client.cancel(exchange)
      return true
    }
  }

  /// Stores the last bytes of the ended exchange, notifies the version, and runs `after`, in that
  /// order.
  ///
  /// `failure` is the receiver's reason for ending the exchange, if it had one.
  func finish(
    _ completion: ExchangeCompletion, failure: FileError?,
    after: @escaping @Sendable () -> Void = {}
  ) {
    enqueue()
    feed.requestEnded()
    // The network thread changes it no more.
    let position = gatherer.position
    storage.follow { [self] in
      settle(completion, failure: failure ?? error.withLock { $0 }, position: position)
      after()
    }
  }

  private func settle(_ completion: ExchangeCompletion, failure: FileError?, position: Int64) {
    if let failure { return ends.failed(id, failure) }
    switch completion {
    case .finished:
      if let expectedEnd {
        guard position >= expectedEnd else {
          return ends.failed(id, FileError(.unavailable, ResponseFault.cutShort))
        }
      } else if let failure = version.ended(at: position) {
        return ends.failed(id, failure)
      }
      version.home.responseEnded(of: version.id)
      ends.finished(id)
    case .stopped, .cancelled:
      ends.failed(id, nil)
    case .failed(let error):
      ends.failed(id, FileError(error))
    }
  }
}
