public import HTTPTransferCore
internal import Synchronization

/// One request on its way: what can be seen of it, and the verbs.
///
/// Every method may be called from any thread and returns at once. A transfer that nobody holds any
/// more goes on to its end.
public final class Transfer: Sendable, Identifiable {
  public let id: TransferID

  /// What was asked for.
  public let request: Request

  let monitor: TransferMonitor
  private let driver: TransferDriver
  private let client: HTTPClient
  private let stream: StreamSink?
  /// The queue that decides when this transfer runs; nil where there is none, and after the end, so
  /// that the two do not keep each other alive.
  private let queueState: Mutex<TransferQueue?>

  private static let lastID = Atomic<UInt64>(0)

  init(_ request: Request, client: HTTPClient, queue: TransferQueue?) {
    id = TransferID(rawValue: Self.lastID.add(1, ordering: .relaxed).newValue)
    self.request = request
    self.client = client
    queueState = Mutex(queue)
    monitor = TransferMonitor(bodyByteCount: request.body == nil ? 0 : nil)
    let sink: any BodySink
    let room = RoomSignal()
    switch request.destination {
    case .file(let path, let base, let existing):
      sink = FileSink(path: path, inside: base, existing: existing, request: request)
      stream = nil
    case .discard:
      sink = DiscardSink(checksum: request.checksum)
      stream = nil
    case .memory(let limit):
      sink = MemorySink(limit: limit)
      stream = nil
    case .stream(let capacity):
      let stream = StreamSink(capacity: capacity, checksum: request.checksum) { room.send() }
      sink = stream
      self.stream = stream
    }
    driver = TransferDriver(request: request, client: client, monitor: monitor, sink: sink)
    room.connect(driver)
  }

  // MARK: Looking

  /// How far it is.
  public var progress: TransferProgress { monitor.progress }

  /// Where in its life it is.
  public var state: TransferProgress.State { monitor.progress.state }

  /// How it has ended; nil while it has not.
  public var outcome: Result<TransferResult, TransferError>? { monitor.outcomeNow }

  /// What happens to it, for one listener; made at any time, it starts with what has happened so far.
  public var events: TransferEvents { monitor.events() }

  /// The body's chunks, where the destination is ``Destination/stream(bufferByteCount:)``.
  ///
  /// Empty for other destinations. Starts the transfer, as ``start()`` does.
  public var body: TransferBody {
    start()
    let sink = stream ?? StreamSink.empty
    return TransferBody(sink: sink, cancel: { [self] in cancel() })
  }

  /// The end of the transfer, which is started if it is not in a queue.
  ///
  /// Where the task that waits is cancelled, the transfer is, too; its partial file stays.
  ///
  /// - Returns: what it brought.
  /// - Throws: why it failed; ``TransferError/Code/cancelled`` after a cancellation.
  public func result() async throws(TransferError) -> TransferResult {
    start()
    return try await monitor.outcome(onCancel: { [self] in cancel() }).get()
  }

  /// Lets `sink` follow the progress until the end.
  ///
  /// - Parameters:
  ///   - sink: what shows it.
  ///   - interval: the least time between two values, the last one excepted.
  /// - Returns: the task that calls the sink; it ends after the last value.
  @discardableResult
  public func report(
    to sink: any ProgressSink, every interval: Duration = .milliseconds(100)
  ) -> Task<Void, Never> {
    Task { [self] in
      while true {
        let progress = progress
        await sink.progressChanged(progress)
        if progress.state.isFinal || Task.isCancelled { return }
        try? await Task.sleep(for: interval)
      }
    }
  }

  // MARK: Verbs

  /// Begins; nothing happens if it has begun, or if a queue decides when it does.
  public func start() {
    if queue == nil { begin() }
  }

  /// Stops fetching until ``resume()``; what is there stays.
  public func pause() {
    if let queue { return queue.pause(self) }
    hold()
  }

  /// Goes on after ``pause()``.
  public func resume() {
    if let queue { return queue.resume(self) }
    proceed()
  }

  /// Ends it with ``TransferError/Code/cancelled``; a partial file and its record stay, so that a
  /// later transfer of the same request goes on there.
  public func cancel() {
    client.perform { [self] in driver.cancel(isSilent: false, removes: false) }
  }

  /// Ends it without a word and removes the partial file and its record.
  public func cancelAndClear() {
    client.perform { [self] in driver.cancel(isSilent: true, removes: true) }
  }

  // MARK: For the queue

  private var queue: TransferQueue? { queueState.withLock { $0 } }

  func leaveQueue() { queueState.withLock { $0 = nil } }

  func begin() { client.perform { [self] in driver.start() } }
  func hold() { client.perform { [self] in driver.pause() } }
  func proceed() { client.perform { [self] in driver.resume() } }
}

/// Tells the driver that its destination has room again.
///
/// A sink holds it, so it exists before the driver and does not keep it.
private final class RoomSignal: Sendable {
  private struct Target {
    weak var driver: TransferDriver?
  }

  private let target = Mutex(Target())

  func connect(_ driver: TransferDriver) { target.withLock { $0.driver = driver } }

  func send() {
    guard let driver = target.withLock({ $0.driver }) else { return }
    driver.client.perform { driver.unpauseAll() }
  }
}

extension StreamSink {
  /// A stream that has ended without a chunk.
  fileprivate static var empty: StreamSink {
    let sink = StreamSink(capacity: 1, checksum: nil, drained: {})
    sink.release(nil)
    return sink
  }
}

extension HTTPClient {
  /// A transfer of `request`, which begins with ``Transfer/start()`` or ``Transfer/result()``.
  public func transfer(_ request: Request) -> Transfer {
    Transfer(request, client: self, queue: nil)
  }

  /// Fetches a URL into memory.
  ///
  /// - Parameters:
  ///   - url: what to fetch.
  ///   - limit: the most bytes to take.
  /// - Returns: the result with the ``TransferResult/body``.
  /// - Throws: why that failed.
  public func get(
    _ url: RemoteURL, limit: Int = 256 << 20
  ) async throws(TransferError) -> TransferResult {
    try await transfer(Request(url: url, destination: .memory(limit: limit))).result()
  }

  /// Downloads a URL to a file, over several connections where that helps, and goes on where an
  /// earlier download has ended.
  ///
  /// - Parameters:
  ///   - url: what to fetch.
  ///   - path: the file, which appears when it is whole.
  ///   - existing: what becomes of a file that is there already.
  /// - Returns: what was fetched.
  /// - Throws: why that failed.
  public func download(
    _ url: RemoteURL, to path: String, existing: ExistingFile = .replaceResult
  ) async throws(TransferError) -> TransferResult {
    try await transfer(Request(url: url, destination: .file(path, existing: existing))).result()
  }
}
