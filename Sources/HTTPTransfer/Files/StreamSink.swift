internal import HTTPTransferCore
internal import Synchronization

/// The chunks of a body, in order, as they arrive.
///
/// If no task takes them, the network waits. If the task that takes them is cancelled, or stops
/// before the end and releases the sequence, the transfer is cancelled, too. The sequence can be
/// iterated once.
public struct TransferBody: AsyncSequence, Sendable {
  public typealias Element = ArraySlice<UInt8>
  public typealias Failure = TransferError

  private let taker: StreamTaker

  init(sink: StreamSink, cancel: @escaping @Sendable () -> Void) {
    taker = StreamTaker(sink: sink, cancel: cancel)
  }

  /// Takes the chunks one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    public typealias Failure = TransferError

    fileprivate let taker: StreamTaker

    /// The next chunk; nil after the last one.
    public mutating func next() async throws(TransferError) -> ArraySlice<UInt8>? {
      try await taker.sink.next(onCancel: taker.cancel)
    }

    /// The next chunk; nil after the last one.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(TransferError) -> ArraySlice<UInt8>? {
      try await taker.sink.next(onCancel: taker.cancel)
    }
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(taker: taker) }
}

/// Takes the chunks; cancels the transfer if it is released before their end.
private final class StreamTaker: Sendable {
  let sink: StreamSink
  let cancel: @Sendable () -> Void

  init(sink: StreamSink, cancel: @escaping @Sendable () -> Void) {
    self.sink = sink
    self.cancel = cancel
  }

  deinit {
    if !sink.isEnded { cancel() }
  }
}

/// Hands a body to one task, chunk by chunk.
///
/// Lock order: `state` is a leaf; the continuation is resumed after its release.
///
/// `@unchecked Sendable`: only the methods that begin, write and finish use `digest`, see
/// ``BodySink`` for their threads; everything else is guarded.
final class StreamSink: BodySink, @unchecked Sendable {
  private typealias Chunk = Result<ArraySlice<UInt8>?, TransferError>

  private struct State {
    var chunks: [ArraySlice<UInt8>] = []
    var byteCount = 0
    var end: Chunk?
    var taker: CheckedContinuation<Chunk, Never>?
    var wasFull = false
  }

  /// The maximum size of joined chunks, which collect bytes while no task takes them.
  ///
  /// A server may send one byte at a time.
  private static let joinedByteCount = 64 << 10

  private let capacity: Int
  private let algorithm: Checksum.Algorithm?
  private let state: Mutex<State>
  private var digest: RunningDigest?
  /// Called, on the thread of the consumer, when there is room again.
  private let drained: @Sendable () -> Void

  init(capacity: Int, checksum: Checksum?, drained: @escaping @Sendable () -> Void) {
    self.capacity = max(1, capacity)
    algorithm = checksum?.algorithm
    self.drained = drained
    state = Mutex(State())
  }

  // MARK: Consumer

  func next(
    onCancel: @escaping @Sendable () -> Void
  ) async throws(TransferError) -> ArraySlice<UInt8>? {
    let chunk: Chunk = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (ready, hasRoom) = state.withLock { state -> (Chunk?, Bool) in
          if !state.chunks.isEmpty {
            let chunk = state.chunks.removeFirst()
            state.byteCount -= chunk.count
            let hasRoom = state.wasFull && state.byteCount <= capacity / 2
            if hasRoom { state.wasFull = false }
            return (.success(chunk), hasRoom)
          }
          if let end = state.end { return (end, false) }
          state.taker = continuation
          return (nil, false)
        }
        if let ready { continuation.resume(returning: ready) }
        if hasRoom { drained() }
      }
    } onCancel: {
      onCancel()
    }
    return try chunk.get()
  }

  // MARK: Called on the network thread

  func prepare() throws(FileFailure) -> PartialFile.Remains? { nil }

  func begin(version: ContentVersion, wantedByteCount: Int64?) throws(FileFailure) {
    digest = algorithm.map { RunningDigest($0) }
  }

  var isFull: Bool {
    state.withLock { state in
      state.wasFull = state.byteCount >= capacity
      return state.wasFull
    }
  }

  var isRandomAccess: Bool { false }
  var canBeginAnew: Bool { false }

  func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileFailure) {
    guard !bytes.isEmpty else { return }
    digest?.update(bytes)
    let taker = state.withLock { state -> CheckedContinuation<Chunk, Never>? in
      if let taker = state.taker {
        state.taker = nil
        return taker
      }
      let last = state.chunks.count - 1
      if last >= 0, state.chunks[last].count + bytes.count <= Self.joinedByteCount {
        state.chunks[last].append(contentsOf: bytes)
      } else {
        state.chunks.append(ArraySlice(bytes))
      }
      state.byteCount += bytes.count
      return nil
    }
    taker?.resume(returning: .success(ArraySlice(bytes)))
  }

  func finish(length: Int64, checksum: Checksum?) throws(FileFailure) -> [UInt8] {
    if let checksum, let found = digest?.finish() {
      try verify(found, is: checksum, of: "the body", remark: "its bytes are already written")
    }
    end(.success(nil))
    return []
  }

  func release(_ error: TransferError?) { end(error.map { .failure($0) } ?? .success(nil)) }

  /// Chunks that were handed on cannot be taken back.
  func remove() {}

  /// Whether no more chunks will arrive.
  var isEnded: Bool { state.withLock { $0.end != nil } }

  private func end(_ end: Chunk) {
    let taker = state.withLock { state -> CheckedContinuation<Chunk, Never>? in
      if state.end == nil { state.end = end }
      defer { state.taker = nil }
      return state.taker
    }
    taker?.resume(returning: end)
  }
}
