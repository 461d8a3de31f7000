internal import HTTPTransferCore

/// Calls the sink of one transfer in order and answers on the network thread.
///
/// If the destination needs it, the calls run on a thread that may wait for the disk.
///
/// `@unchecked Sendable`: its methods are called, and `beginningCount` is used, on the network
/// thread only. `failure` belongs to the thread that runs the calls of the sink.
final class BodyStore: @unchecked Sendable {
  private let sink: any BodySink
  private let client: ExchangeClient
  /// Whether calls of the sink may wait for the disk, or take long because they hash.
  private let mayWait: Bool
  private lazy var queue = mayWait ? StorageQueue(client: client) : nil
  /// Why no more bytes can be stored.
  ///
  /// It stays set, because later bytes would leave a gap.
  private var failure: FileFailure?
  /// The number of calls that begin the destination and have not completed.
  private var beginningCount = 0

  init(sink: any BodySink, client: ExchangeClient, mayWait: Bool) {
    self.sink = sink
    self.client = client
    self.mayWait = mayWait
  }

  // MARK: Sink kind

  /// Whether bytes can be written in any order and more than once.
  var isRandomAccess: Bool { sink.isRandomAccess }

  /// Whether ``begin(version:wantedByteCount:then:)`` may be called again after bytes were written.
  var canBeginAnew: Bool { sink.canBeginAnew }

  /// Whether stored bytes can be read again for hashing.
  var canDigest: Bool { sink.canDigest }

  /// Whether `exchange` may deliver more.
  ///
  /// If not, it pauses and is resumed when there is room.
  func hasRoom(for exchange: SegmentExchange) -> Bool {
    // A file without room on the disk must get no bytes: its beginning is the only buffer that may
    // wait.
    guard !sink.isFull else { return false }
    guard let queue else { return true }
    return queue.hasRoom(bufferLimit: beginningCount > 0 ? 1 : nil) { [client] in
      client.perform { exchange.resume() }
    }
  }

  /// How long exchanges have waited for room so far, in seconds.
  var fullSeconds: Double { queue?.fullSeconds ?? 0 }

  // MARK: Calls

  /// Runs `work` after all earlier calls, then `body` with the result on the network thread.
  func run<Value: Sendable>(
    _ work: @escaping @Sendable (any BodySink) throws(FileFailure) -> Value,
    then body: @escaping @Sendable (Result<Value, FileFailure>) -> Void
  ) {
    guard let queue else { return body(attempt(work)) }
    queue.perform { [self] in answer(attempt(work), body) }
  }

  /// Begins at the first byte and discards earlier content.
  func begin(
    version: ContentVersion, wantedByteCount: Int64?,
    then body: @escaping @Sendable (Result<Void, FileFailure>) -> Void
  ) {
    beginningCount += 1
    runStore { [self] sink throws(FileFailure) in
      do throws(FileFailure) {
        try sink.begin(version: version, wantedByteCount: wantedByteCount)
        failure = nil
      } catch {
        failure = error
        throw error
      }
    } then: { [self] in
      beginningCount -= 1
      body($0)
    }
  }

  /// Writes the parts `runs` of a buffer's bytes.
  ///
  /// - Parameters:
  ///   - handed: the buffer.
  ///   - start: the offset of its first byte.
  ///   - runs: the offsets of the bytes to write.
  ///   - origin: the offset of the destination's first byte.
  ///   - body: called with the result on the network thread.
  func store(
    _ handed: HandedBuffer, at start: Int64, runs: [ByteRange], from origin: Int64,
    then body: @escaping @Sendable (Result<Void, FileFailure>) -> Void
  ) {
    runStore(
      { [self] sink throws(FileFailure) in
        if let failure { throw failure }
        do throws(FileFailure) {
          for run in runs {
            let slice = handed.bytes[Int(run.lowerBound - start)..<Int(run.upperBound - start)]
            try sink.write(UnsafeRawBufferPointer(rebasing: slice), at: run.lowerBound - origin)
          }
        } catch {
          failure = error
          throw error
        }
      }, then: body)
  }

  /// Does the same as ``run(_:then:)``, but counts as a buffer: exchanges wait while there are
  /// many.
  private func runStore(
    _ work: @escaping @Sendable (any BodySink) throws(FileFailure) -> Void,
    then body: @escaping @Sendable (Result<Void, FileFailure>) -> Void
  ) {
    guard let queue else { return body(attempt(work)) }
    queue.store { [self] in answer(attempt(work), body) }
  }

  /// Runs `body` on the network thread after all earlier calls.
  func follow(_ body: @escaping @Sendable () -> Void) {
    guard let queue else { return body() }
    queue.perform { [client] in client.perform(body) }
  }

  private func answer<Value: Sendable>(
    _ result: Result<Value, FileFailure>,
    _ body: @escaping @Sendable (Result<Value, FileFailure>) -> Void
  ) {
    client.perform { body(result) }
  }

  private func attempt<Value>(
    _ work: (any BodySink) throws(FileFailure) -> Value
  ) -> Result<Value, FileFailure> {
    do throws(FileFailure) {
      return .success(try work(sink))
    } catch {
      return .failure(error)
    }
  }
}
