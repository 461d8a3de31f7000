internal import HTTPTransferCore
internal import Synchronization

/// The observable state of one transfer: its progress, its events and its end.
///
/// The network thread reports; any thread may read, listen or wait. No method here waits for a
/// listener.
///
/// Lock order: `state` is held while events are appended to the listeners' buffers, whose locks are
/// leaves. Continuations are resumed after its release.
final class TransferMonitor: Sendable {
  private typealias Waiter = CheckedContinuation<Result<TransferResult, TransferError>, Never>

  private struct State {
    var progress = TransferProgress()
    var meter = SpeedMeter()
    /// Where the decisive response came from.
    var server: RemoteURL?
    var startedAt: ContinuousClock.Instant?
    var endedAt: ContinuousClock.Instant?
    /// The events so far that the sums do not contain, in condensed form, for late listeners.
    var history: [TransferEvent.Kind] = []
    var listeners: [WeakListener<TransferEvent.Kind>] = []
    /// Whether listeners do not receive the failure in ``outcome``.
    var isSilent = false
    var outcome: Result<TransferResult, TransferError>?
    var waiters: [Waiter] = []
    var endActions: [@Sendable () -> Void] = []
  }

  private let state = Mutex(State())

  init(bodyByteCount: Int64?) {
    state.withLock { $0.progress.bodyByteCount = bodyByteCount }
  }

  // MARK: Progress

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

  /// The URL of the decisive response, after redirects; nil before it.
  var server: RemoteURL? { state.withLock { $0.server } }

  /// The events from the start; past events are condensed.
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

  /// Waits for the end; `onCancel` runs if the waiting task is cancelled.
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

  /// The outcome; nil before the end.
  var outcomeNow: Result<TransferResult, TransferError>? { state.withLock { $0.outcome } }

  /// Runs `action` at the end, or now if the transfer has ended.
  func whenEnded(_ action: @escaping @Sendable () -> Void) {
    let isEnded = state.withLock { state in
      if state.outcome == nil { state.endActions.append(action) }
      return state.outcome != nil
    }
    if isEnded { action() }
  }

  // MARK: Reporting

  /// Changes the progress without an event.
  func update(_ change: (inout TransferProgress) -> Void) {
    // The state after the end is final.
    state.withLock { state in
      if state.outcome == nil { change(&state.progress) }
    }
  }

  /// Records an event and passes it on.
  func emit(_ kind: TransferEvent.Kind) {
    // The order is kept without the lock, because only the network thread reports.
    let listeners = state.withLock { state -> [WeakListener<TransferEvent.Kind>] in
      guard state.outcome == nil else { return [] }
      Self.apply(kind, to: &state)
      state.listeners.removeAll { $0.buffer == nil }
      return state.listeners
    }
    for listener in listeners { listener.buffer?.append(kind) }
  }

  /// Whether the transfer was ended silently.
  var hasEndedSilently: Bool { state.withLock { $0.isSilent } }

  /// Ends the transfer; later reports are ignored.
  ///
  /// - Parameters:
  ///   - outcome: the outcome of the transfer.
  ///   - isSilent: whether listeners do not receive the failure; their sequences just end.
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

  /// Everything to notify of the end.
  private struct End {
    let listeners: [WeakListener<TransferEvent.Kind>]
    let waiters: [Waiter]
    let actions: [@Sendable () -> Void]
  }

  // MARK: Totals

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
    case .responded(_, let url):
      state.server = url
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
    // A transfer that fails for weeks must not fill the memory of a process that never reads the
    // events.
    if state.history.count > 64 { state.history.removeSubrange(1..<32) }
  }

  /// Condenses the events so far for a late listener: the same sums in as few events as possible.
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
