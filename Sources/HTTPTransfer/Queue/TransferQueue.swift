internal import HTTPTransferCore
internal import HTTPTypes
internal import Synchronization

/// Runs transfers, a few at a time.
///
/// A queue starts suspended: add requests, listen, then call ``start()``. A failure does not affect
/// the other transfers unless ``Configuration/stopsAtFailure`` is set.
///
/// Lock order: `state` is a leaf; verbs and events are carried out after its release.
public final class TransferQueue: Sendable {
  public struct Configuration: Sendable {
    /// How many transfers run at a time.
    public var maximumConcurrent = 4
    /// How many of them may use one host; nil for no separate limit.
    public var maximumPerHost: Int?
    /// Whether the first failure cancels all unfinished transfers.
    public var stopsAtFailure = false
    /// Whether the queue asks for the lengths of waiting downloads, which makes
    /// ``QueueProgress/accurateFraction`` available early.
    public var learnsLengths = false

    public init() {}
  }

  public let client: TransferClient
  public let configuration: Configuration
  private let state: Mutex<State>

  private struct State {
    var queue: QueueState<TransferID>
    var transfers: [TransferID: Transfer] = [:]
    var order: [TransferID] = []
    var listeners: [WeakListener<QueueEvent.Kind>] = []
    var waiters: [CheckedContinuation<Void, Never>] = []
    /// Totals that the queue learned before the transfers did.
    var lengths: [TransferID: Int64] = [:]
    var probing: Set<TransferID> = []
    /// The transfers whose servers do not report a length, which are not asked again.
    var lengthless: Set<TransferID> = []
  }

  /// The maximum number of concurrent requests for lengths.
  private static let probeLimit = 4

  public init(
    client: TransferClient = TransferClient(), configuration: Configuration = Configuration()
  ) {
    self.client = client
    self.configuration = configuration
    state = Mutex(
      State(
        queue: QueueState(
          maximumConcurrent: configuration.maximumConcurrent,
          maximumPerHost: configuration.maximumPerHost)))
  }

  deinit {
    for listener in state.withLock({ $0.listeners }) { listener.buffer?.end() }
  }

  // MARK: Insertion

  /// Adds a request; it runs when the queue is started and a slot is free.
  ///
  /// - Returns: its transfer.
  @discardableResult
  public func add(_ request: Request) -> Transfer {
    let transfer = Transfer(request, client: client, queue: self)
    state.withLock { state in
      state.transfers[transfer.id] = transfer
      state.order.append(transfer.id)
    }
    emit(.added(transfer.id))
    let actions = state.withLock { state in
      state.queue.add(transfer.id, host: request.url.authority, priority: request.priority)
    }
    transfer.monitor.whenEnded { [weak self, weak transfer] in
      guard let self, let transfer else { return }
      ended(transfer)
    }
    carryOut(actions)
    if state.withLock({ !$0.queue.isSuspended }) { learnLengths() }
    return transfer
  }

  // MARK: Transfers

  /// The transfers in the order in which they were added.
  public var transfers: [Transfer] {
    state.withLock { state in state.order.compactMap { state.transfers[$0] } }
  }

  /// The progress of all transfers.
  public var progress: QueueProgress {
    let (transfers, lengths) = state.withLock { state in
      (state.order.compactMap { state.transfers[$0] }, state.lengths)
    }
    var sum = QueueProgress()
    sum.totalByteCount = 0
    for transfer in transfers {
      sum.add(transfer.progress, knownTotal: lengths[transfer.id])
    }
    return sum
  }

  /// The events from now on, for one listener.
  public var events: QueueEvents {
    let buffer = EventBuffer<QueueEvent.Kind>()
    state.withLock { $0.listeners.append(WeakListener(buffer)) }
    return QueueEvents(buffer: buffer)
  }

  /// Returns when all added transfers have ended.
  ///
  /// Cancelling the waiting task cancels all transfers of the queue.
  public func finished() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isFinished = state.withLock { state in
          if !state.queue.isFinished { state.waiters.append(continuation) }
          return state.queue.isFinished
        }
        if isFinished { continuation.resume() }
      }
    } onCancel: {
      cancelAll()
    }
  }

  // MARK: Commands

  /// Starts the queue, or continues it after ``suspend()``.
  public func start() {
    carryOut(state.withLock { $0.queue.start() })
    learnLengths()
  }

  /// Holds running transfers and starts no others until ``start()``.
  public func suspend() { carryOut(state.withLock { $0.queue.suspend() }) }

  /// Pauses one transfer; others may take its slot.
  public func pause(_ transfer: Transfer) {
    carryOut(state.withLock { $0.queue.pause(transfer.id) })
    if !transfer.state.isFinal { transfer.monitor.update { $0.state = .paused } }
  }

  /// Lets one transfer continue when a slot is free.
  public func resume(_ transfer: Transfer) {
    if transfer.state == .paused { transfer.monitor.update { $0.state = .queued } }
    carryOut(state.withLock { $0.queue.resume(transfer.id) })
  }

  /// Cancels all unfinished transfers; partial files stay.
  public func cancelAll() {
    state.withLock { $0.queue.endAll() }
    for transfer in transfers { transfer.cancel() }
  }

  /// Removes the ended transfers from lists and sums.
  public func removeEnded() {
    state.withLock { state in
      // Keep transfers whose end the queue has not recorded yet.
      for item in state.queue.items where item.phase == .ended { state.transfers[item.id] = nil }
      state.order.removeAll { state.transfers[$0] == nil }
      state.queue.removeEnded()
    }
  }

  // MARK: Next steps

  private func carryOut(_ actions: [QueueState<TransferID>.Action]) {
    for action in actions {
      switch action {
      case .begin(let id):
        emit(.started(id))
        transfer(id)?.begin()
      case .proceed(let id):
        // It may have been held before it started.
        transfer(id)?.begin()
        transfer(id)?.proceed()
      case .hold(let id): transfer(id)?.hold()
      }
    }
  }

  private func transfer(_ id: TransferID) -> Transfer? {
    state.withLock { $0.transfers[id] }
  }

  private func ended(_ transfer: Transfer) {
    transfer.leaveQueue()
    if let outcome = transfer.monitor.outcomeNow {
      switch outcome {
      case .success(let result): emit(.finished(transfer.id, result))
      case .failure(let error):
        if !transfer.monitor.hasEndedSilently { emit(.failed(transfer.id, error)) }
        if configuration.stopsAtFailure, error.code != .cancelled { cancelAll() }
      }
    }
    let (actions, waiters, isFinished) = state.withLock { state in
      let actions = state.queue.end(transfer.id)
      guard state.queue.isFinished else {
        return (actions, [CheckedContinuation<Void, Never>](), false)
      }
      defer { state.waiters = [] }
      return (actions, state.waiters, true)
    }
    carryOut(actions)
    if isFinished { emit(.queueFinished) }
    for waiter in waiters { waiter.resume() }
  }

  private func emit(_ kind: QueueEvent.Kind) {
    let listeners = state.withLock { state -> [WeakListener<QueueEvent.Kind>] in
      state.listeners.removeAll { $0.buffer == nil }
      return state.listeners
    }
    for listener in listeners { listener.buffer?.append(kind) }
  }

  // MARK: Lengths

  private func learnLengths() {
    guard configuration.learnsLengths else { return }
    let next = state.withLock { state -> [Transfer] in
      var next: [Transfer] = []
      for id in state.order {
        guard state.probing.count < Self.probeLimit else { break }
        guard state.lengths[id] == nil, !state.probing.contains(id),
          !state.lengthless.contains(id),
          let transfer = state.transfers[id], transfer.request.method == .get,
          transfer.request.range == nil, !transfer.request.decodesContent,
          transfer.state == .queued
        else { continue }
        state.probing.insert(id)
        next.append(transfer)
      }
      return next
    }
    for transfer in next {
      LengthProbe.run(transfer.request, client: client.exchanges) { [weak self] length in
        guard let self else { return }
        state.withLock { state in
          state.probing.remove(transfer.id)
          if let length {
            state.lengths[transfer.id] = length
          } else {
            state.lengthless.insert(transfer.id)
          }
        }
        learnLengths()
      }
    }
  }
}
