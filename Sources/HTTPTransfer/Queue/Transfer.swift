public import HTTPTransferCore
internal import Synchronization

/// One request in progress: its observable state and its verbs.
///
/// Every method may be called from any thread and returns at once. A transfer without references
/// continues to its end.
public final class Transfer: Sendable, Identifiable {
  public let id: TransferID

  /// The request.
  public let request: Request

  let monitor: TransferMonitor
  private let driver: TransferDriver
  private let client: ExchangeClient
  private let stream: StreamSink?
  /// The queue that decides when this transfer runs.
  ///
  /// Nil without a queue, and after the end, which breaks the reference cycle between the two.
  private let queueState: Mutex<TransferQueue?>

  private static let lastID = Atomic<UInt64>(0)

  init(_ request: Request, client: TransferClient, queue: TransferQueue?) {
    id = TransferID(rawValue: Self.lastID.add(1, ordering: .relaxed).newValue)
    self.request = request
    self.client = client.exchanges
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
    driver = TransferDriver(
      request: request, client: client.exchanges, transfers: client.activeTransfers,
      monitor: monitor, sink: sink)
    room.connect(driver)
  }

  // MARK: Progress

  /// The current progress.
  public var progress: TransferProgress { monitor.progress }

  /// The URL of the decisive response, after redirects; nil before it.
  package var server: RemoteURL? { monitor.server }

  /// The current stage.
  public var state: TransferProgress.State { monitor.progress.state }

  /// The outcome; nil before the end.
  public var outcome: Result<TransferResult, TransferError>? { monitor.outcomeNow }

  /// The events, for one listener, starting with a summary of those so far.
  public var events: TransferEvents { monitor.events() }

  /// The chunks of the body if the destination is ``Destination/stream(bufferByteCount:)``.
  ///
  /// Empty for other destinations. Starts the transfer, as ``start()`` does.
  public var body: TransferBody {
    start()
    let sink = stream ?? StreamSink.empty
    return TransferBody(sink: sink, cancel: { [self] in cancel() })
  }

  /// Waits for the end of the transfer; starts it if it is not in a queue.
  ///
  /// Cancelling the waiting task cancels the transfer; its partial file stays.
  ///
  /// - Returns: the result.
  /// - Throws: why it failed; ``TransferError/Code/cancelled`` after a cancellation.
  public func result() async throws(TransferError) -> TransferResult {
    start()
    return try await monitor.outcome(onCancel: { [self] in cancel() }).get()
  }

  /// Reports the progress to `sink` until the end.
  ///
  /// - Parameters:
  ///   - sink: the receiver.
  ///   - interval: the least time between two values, except before the last one.
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

  // MARK: Commands

  /// Starts the transfer; has no effect if it has started, or if a queue decides when it starts.
  public func start() {
    if queue == nil { begin() }
  }

  /// Stops fetching until ``resume()``; fetched bytes stay.
  public func pause() {
    if let queue { return queue.pause(self) }
    hold()
  }

  /// Continues after ``pause()``.
  public func resume() {
    if let queue { return queue.resume(self) }
    proceed()
  }

  /// Ends the transfer with ``TransferError/Code/cancelled``.
  ///
  /// A partial file and its record stay; a later transfer of the same request resumes them.
  public func cancel() {
    client.perform { [self] in driver.cancel(isSilent: false, removes: false) }
  }

  /// Ends the transfer without an event, and removes the partial file and its record.
  public func cancelAndClear() {
    client.perform { [self] in driver.cancel(isSilent: true, removes: true) }
  }

  // MARK: Queue interface

  private var queue: TransferQueue? { queueState.withLock { $0 } }

  func leaveQueue() { queueState.withLock { $0 = nil } }

  func begin() { client.perform { [self] in driver.start() } }
  func hold() { client.perform { [self] in driver.pause() } }
  func proceed() { client.perform { [self] in driver.resume() } }
}

/// Notifies the driver that its destination has room again.
///
/// A sink owns it; it therefore exists before the driver, and references the driver weakly.
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

extension TransferClient {
  /// Creates a transfer of `request`, which starts with ``Transfer/start()`` or
  /// ``Transfer/result()``.
  public func transfer(_ request: Request) -> Transfer {
    Transfer(request, client: self, queue: nil)
  }

  /// Fetches a URL into memory.
  ///
  /// - Parameters:
  ///   - url: the URL.
  ///   - limit: the maximum number of bytes.
  /// - Returns: the result with the ``TransferResult/body``.
  /// - Throws: why the transfer failed.
  public func get(
    _ url: RemoteURL, limit: Int = 256 << 20
  ) async throws(TransferError) -> TransferResult {
    try await transfer(Request(url: url, destination: .memory(limit: limit))).result()
  }

  /// Downloads a URL to a file, over several connections if that helps; resumes an earlier
  /// download.
  ///
  /// - Parameters:
  ///   - url: the URL.
  ///   - path: the file, which appears when it is complete.
  ///   - existing: what to do with an existing file.
  /// - Returns: the result.
  /// - Throws: why the transfer failed.
  public func download(
    _ url: RemoteURL, to path: String, existing: ExistingFile = .replaceResult
  ) async throws(TransferError) -> TransferResult {
    try await transfer(Request(url: url, destination: .file(path, existing: existing))).result()
  }
}
