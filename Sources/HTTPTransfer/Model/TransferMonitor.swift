internal import HTTPTransferCore
internal import Synchronization

/// What the outside can see of one transfer: its progress, its events, its end.
///
/// The network thread reports; anyone may look, listen or wait. Nothing here waits for a listener.
///
/// Lock order: `state` is a leaf; continuations are resumed after its release.
final class TransferMonitor: Sendable {
  private typealias Waiter = CheckedContinuation<Result<TransferResult, TransferError>, Never>

  private struct State {
    var progress = TransferProgress()
    var meter = SpeedMeter()
    var startedAt: ContinuousClock.Instant?
    var endedAt: ContinuousClock.Instant?
    /// The difference-carrying events so far in few words, for listeners who come late.
    var history: [TransferEvent.Kind] = []
    var listeners: [WeakListener<TransferEvent.Kind>] = []
    /// Whether listeners are not told of the failure that ``outcome`` is.
    var isSilent = false
    var outcome: Result<TransferResult, TransferError>?
    var waiters: [Waiter] = []
    var endActions: [@Sendable () -> Void] = []
  }

  private let state = Mutex(State())

  init(bodyByteCount: Int64?) {
    state.withLock { $0.progress.bodyByteCount = bodyByteCount }
  }

  // MARK: Looking

  /// The progress now.
  var progress: TransferProgress {
    state.withLock { state in
      var progress = state.progress
      guard let start = state.startedAt else { return progress }
      let now = ContinuousClock.now
      progress.elapsed = (state.endedAt ?? now) - start
      progress.bytesPerSecond =
        progress.state.isFinal ? 0 : state.meter.bytesPerSecond(now: now)
      let moved = Double(
        progress.receivedByteCount - progress.resumedByteCount + progress.sentByteCount)
      progress.averageBytesPerSecond = max(0, moved / max(1e-6, progress.elapsed / .seconds(1)))
      return progress
    }
  }

  /// The events from the start; what has happened already comes in few words.
  func events() -> TransferEvents {
    let buffer = EventBuffer(sum: TransferEvent.Kind.sum)
    state.withLock { state in
      for kind in Self.summary(of: state.progress, state.history) { buffer.append(kind) }
      if let outcome = state.outcome {
        Self.append(state.isSilent ? nil : outcome, to: buffer)
      } else {
        state.listeners.append(WeakListener(buffer))
      }
    }
    return TransferEvents(buffer: buffer)
  }

  /// The end, when it comes; `onCancel` runs where the waiting task is cancelled.
  func outcome(
    onCancel: @escaping @Sendable () -> Void
  ) async -> Result<TransferResult, TransferError> {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state -> Result<TransferResult, TransferError>? in
          if let outcome = state.outcome { return outcome }
          state.waiters.append(continuation)
          return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      onCancel()
    }
  }

  /// The end, if it has come.
  var outcomeNow: Result<TransferResult, TransferError>? { state.withLock { $0.outcome } }

  /// Runs `action` at the end, or now where that has come.
  func whenEnded(_ action: @escaping @Sendable () -> Void) {
    let isEnded = state.withLock { state in
      if state.outcome == nil { state.endActions.append(action) }
      return state.outcome != nil
    }
    if isEnded { action() }
  }

  // MARK: Reporting

  /// Changes what is shown without an event.
  func update(_ change: (inout TransferProgress) -> Void) {
    // What has ended stays as it ended.
    state.withLock { state in
      if state.outcome == nil { change(&state.progress) }
    }
  }

  /// Takes note of an event and passes it on.
  func emit(_ kind: TransferEvent.Kind) {
    // In order without the lock, because the network thread alone reports.
    let listeners = state.withLock { state -> [WeakListener<TransferEvent.Kind>] in
      guard state.outcome == nil else { return [] }
      Self.apply(kind, to: &state)
      state.listeners.removeAll { $0.buffer == nil }
      return state.listeners
    }
    for listener in listeners { listener.buffer?.append(kind) }
  }

  /// Whether the end was asked for without a word.
  var hasEndedSilently: Bool { state.withLock { $0.isSilent } }

  /// The end: nothing is reported after it.
  ///
  /// - Parameters:
  ///   - outcome: what the transfer has come to.
  ///   - isSilent: whether listeners are not told of the failure; their sequences just end.
  func end(_ outcome: Result<TransferResult, TransferError>, isSilent: Bool = false) {
    let end = state.withLock { state -> End? in
      guard state.outcome == nil else { return nil }
      state.outcome = outcome
      state.endedAt = .now
      state.progress.connections = 0
      switch outcome {
      case .success:
        state.progress.state = .finished
        state.progress.reason = nil
      case .failure(let error):
        state.progress.state = error.code == .cancelled ? .cancelled : .failed
        state.progress.reason = error.reason
      }
      state.isSilent = isSilent
      defer {
        state.listeners = []
        state.waiters = []
        state.endActions = []
      }
      return End(listeners: state.listeners, waiters: state.waiters, actions: state.endActions)
    }
    guard let end else { return }
    for listener in end.listeners {
      if let buffer = listener.buffer { Self.append(isSilent ? nil : outcome, to: buffer) }
    }
    for waiter in end.waiters { waiter.resume(returning: outcome) }
    for action in end.actions { action() }
  }

  /// Who is told of the end.
  private struct End {
    let listeners: [WeakListener<TransferEvent.Kind>]
    let waiters: [Waiter]
    let actions: [@Sendable () -> Void]
  }

  // MARK: The sums

  private static func append(
    _ outcome: Result<TransferResult, TransferError>?, to buffer: EventBuffer<TransferEvent.Kind>
  ) {
    switch outcome {
    case nil: break
    case .success(let result): buffer.append(.finished(result))
    case .failure(let error): buffer.append(.failed(error))
    }
    buffer.end()
  }

  private static func apply(_ kind: TransferEvent.Kind, to state: inout State) {
    let now = ContinuousClock.now
    switch kind {
    case .started(let total):
      state.startedAt = state.startedAt ?? now
      state.progress.totalByteCount = total
      state.progress.state = .connecting
      state.history.append(kind)
    case .redirected, .restarted, .mirrorExcluded: state.history.append(kind)
    case .responded:
      if state.progress.state != .paused { state.progress.state = .running }
      state.progress.reason = nil
      state.history.append(kind)
    case .resumed(let byteCount):
      state.progress.resumedByteCount += byteCount
      state.progress.receivedByteCount += byteCount
    case .received(let byteCount):
      state.progress.receivedByteCount += byteCount
      if byteCount > 0 {
        state.meter.note(byteCount: Int(byteCount), now: now)
        if state.progress.state == .waiting { state.progress.state = .running }
        state.progress.reason = nil
      }
    case .sent(let byteCount):
      state.progress.sentByteCount += byteCount
      if byteCount > 0 {
        state.meter.note(byteCount: Int(byteCount), now: now)
        if state.progress.state != .paused { state.progress.state = .running }
      }
    case .totalChanged(let difference):
      state.progress.totalByteCount = (state.progress.totalByteCount ?? 0) + difference
    case .retrying(let error, _, _):
      state.progress.retryCount += 1
      state.progress.reason = error.reason
    case .finished, .failed: break
    }
    // A transfer that fails for weeks must not fill the memory of a process that never looks.
    if state.history.count > 64 { state.history.removeSubrange(1..<32) }
  }

  /// What has happened so far, for one who comes late: the same sums in as few events as can be.
  private static func summary(
    of progress: TransferProgress, _ history: [TransferEvent.Kind]
  ) -> [TransferEvent.Kind] {
    guard let first = history.first else { return [] }
    var kinds = history
    if case .started(let total) = first, progress.totalByteCount != total {
      kinds.append(.totalChanged(by: (progress.totalByteCount ?? 0) - (total ?? 0)))
    }
    if progress.resumedByteCount != 0 {
      kinds.append(.resumed(byteCount: progress.resumedByteCount))
    }
    let received = progress.receivedByteCount - progress.resumedByteCount
    if received != 0 { kinds.append(.received(byteCount: received)) }
    if progress.sentByteCount != 0 { kinds.append(.sent(byteCount: progress.sentByteCount)) }
    return kinds
  }
}
