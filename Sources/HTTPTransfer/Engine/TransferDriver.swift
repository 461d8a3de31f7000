internal import HTTPTransferCore
internal import HTTPTypes

/// Carries out one transfer: prepares its destination, sends its requests, starts over and
/// finishes.
///
/// Only this object knows the phase of the transfer. Its parts return steps, which it carries out.
///
/// `@unchecked Sendable`: everything in it belongs to the network thread. Other threads hold it
/// only to pass it there by ``ExchangeClient/perform(_:)``.
final class TransferDriver: @unchecked Sendable {
  enum Phase {
    case idle, preparing, running, paused
    /// All bytes are present, and pieces are still being compared with their hashes.
    case verifying
    case finishing, ended
  }

  let client: ExchangeClient
  /// Counts the transfers of the client.
  private let transfers: ActiveTransfers
  private let request: Request
  private let monitor: TransferMonitor
  private let store: BodyStore
  private var phase = Phase.idle
  /// Sends the requests.
  private lazy var fetcher = SegmentFetcher(
    request, client: client, store: store, monitor: monitor, owner: self)
  /// Decides what responses mean.
  private lazy var responses = SegmentResponses(
    request, fetcher: fetcher, store: store, monitor: monitor)
  /// Decides how failed segments are retried.
  private lazy var retries = SegmentRetries(request, fetcher: fetcher, monitor: monitor)
  /// Decides what follows when an exchange has ended.
  private lazy var ends = SegmentEnds(
    request, fetcher: fetcher, responses: responses, retries: retries)
  /// Whether a pause came before the first request was sent.
  private var isHeld = false
  /// Whether the destination is complete.
  private var hasFinished = false
  private var startedAt = ContinuousClock.now
  /// A cancellation that came while the disk was busy, and whether it removes stored bytes.
  private var pendingCancel: (isSilent: Bool, removes: Bool)?

  init(
    request: Request, client: ExchangeClient, transfers: ActiveTransfers, monitor: TransferMonitor,
    sink: any BodySink
  ) {
    self.transfers = transfers
    self.request = request
    self.client = client
    self.monitor = monitor
    var mayWait = request.body != nil || request.checksum != nil
    if case .file = request.destination { mayWait = true }
    store = BodyStore(sink: sink, client: client, mayWait: mayWait)
  }

  // MARK: Commands

  func start() {
    guard phase == .idle else { return }
    phase = .preparing
    transfers.began()
    startedAt = .now
    if let flaw = request.flaw {
      return fail(TransferError(.invalidRequest, request.url, flaw))
    }
    monitor.update { $0.state = .connecting }
    store.run { [request, monitor] sink throws(FileFailure) in
      try Preparation(sink, request: request, monitor: monitor)
    } then: { [self] result in
      phase = .running
      if takePendingCancel() { return }
      switch result {
      case .success(let preparation): prepared(preparation)
      case .failure(let failure): fail(failure)
      }
    }
  }

  func pause() {
    if phase == .idle || phase == .preparing {
      isHeld = true
      return monitor.update { $0.state = .paused }
    }
    guard phase == .running else { return }
    phase = .paused
    monitor.update { $0.state = .paused }
    if let body = fetcher.body { body.isPaused = true }
    // A body that no other connection can continue keeps its connection, which is not read.
    if fetcher.representation.isSingleStream { return fetcher.setStallTimeout(nil) }
    fetcher.clear()
    monitor.update { $0.connections = 0 }
  }

  func resume() {
    if isHeld {
      isHeld = false
      if phase != .paused { return monitor.update { $0.state = .queued } }
    }
    guard phase == .paused else { return }
    phase = .running
    monitor.update {
      $0.state = $0.receivedByteCount + $0.sentByteCount > 0 ? .running : .connecting
    }
    fetcher.body?.isPaused = false
    // The answer may have arrived meanwhile.
    if isComplete { return finish() }
    if fetcher.representation.isSingleStream, !fetcher.isIdle {
      fetcher.setStallTimeout(request.stallTimeout)
      return fetcher.unpauseAll()
    }
    // A segment that waits for a retry must not remain beside the new one.
    fetcher.table.removeAll()
    // First store the bytes that arrived before the pause, so that they are not fetched again.
    store.follow { [self] in
      guard phase == .running, fetcher.hasNothing else { return }
      if isComplete { finish() } else { launch() }
    }
  }

  /// Whether every wanted byte is present, in the version that the server has.
  private var isComplete: Bool {
    fetcher.table.isComplete && fetcher.representation.isConfirmed
  }

  /// Ends without success; stored bytes can be resumed later, unless `removes` is set.
  func cancel(isSilent: Bool, removes: Bool) {
    switch phase {
    case .ended:
      // This also removes what a failed or cancelled transfer has left.
      if removes, !hasFinished { store.run({ $0.remove() }, then: { _ in }) }
    case .preparing, .finishing: pendingCancel = (isSilent, removes)
    case .idle, .running, .paused, .verifying:
      end(
        .failure(TransferError(.cancelled, request.url, "cancelled")), isSilent: isSilent,
        removes: removes)
    }
  }

  /// Resumes the exchanges, because the destination has room again.
  func unpauseAll() { fetcher.unpauseAll() }

  // MARK: Start

  /// The state of the destination and the body, determined before the first request.
  private struct Preparation: Sendable {
    let remains: PartialFile.Remains?
    let refusal: String?
    let earlierVersion: ContentVersion?
    let body: BodyReader?

    init(
      _ sink: any BodySink, request: Request, monitor: TransferMonitor
    ) throws(FileFailure) {
      remains = try sink.prepare()
      refusal = sink.refusal
      earlierVersion = sink.earlierVersion
      guard let content = request.body else {
        body = nil
        return
      }
      let reader = try BodyReader(content)
      reader.onProgress = { monitor.emit(.sent(byteCount: $0)) }
      body = reader
    }
  }

  private func prepared(_ preparation: Preparation) {
    fetcher.body = preparation.body
    if let body = fetcher.body { monitor.update { $0.bodyByteCount = body.byteCount } }
    var refusal = preparation.refusal
    var recovered: PartialFile.Remains?
    if let remains = preparation.remains, !remains.extents.isEmpty {
      if remains.version.isResumable || remains.version.lastModified != nil {
        recovered = remains
      } else {
        refusal = "the server gave no validator that would prove the partial file's bytes"
      }
    }
    if let recovered {
      fetcher.adopt(recovered)
    } else {
      fetcher.representation.setEarlier(preparation.earlierVersion)
    }
    monitor.emit(.started(totalByteCount: fetcher.begin()))
    if let refusal { monitor.emit(.restarted(reason: refusal)) }
    if recovered != nil { monitor.emit(.resumed(byteCount: fetcher.table.presentByteCount)) }
    if isHeld {
      phase = .paused
      return monitor.update { $0.state = .paused }
    }
    launch()
  }

  // MARK: Steps

  private var isRunning: Bool { phase == .running }

  private func launch() { perform(fetcher.launch()) }

  private func plan() {
    if isRunning { fetcher.plan() }
  }

  private func perform(_ step: TransferStep) {
    switch step {
    case .wait: break
    case .plan: plan()
    case .launch: if isRunning { launch() }
    case .tryAgain(let id, let delay):
      // The bytes are planned again when the pause ends.
      if phase == .paused { return fetcher.table.remove(id) }
      guard let delay else { return perform(retries.resume(with: id)) }
      if fetcher.isIdle { monitor.update { $0.state = .waiting } }
      client.schedule(after: delay) { [self] in
        guard isRunning, fetcher.table[id]?.isWaiting == true else { return }
        perform(retries.resume(with: id))
      }
    case .signAgain(let delay):
      if fetcher.isIdle { monitor.update { $0.state = .waiting } }
      client.schedule(after: delay) { [self] in
        if isRunning { fetcher.signIfAwaited() }
      }
    case .finish: finish()
    case .startOver(let reason): startOver(reason)
    case .leaveEarlier(let head, let url): leaveEarlier(head, from: url)
    case .fail(let error, removes: true): end(.failure(error), removes: true)
    case .fail(let error, removes: false): fail(error)
    }
  }

  /// Forgets all fetched bytes and starts at the first byte.
  private func startOver(_ reason: String) {
    do throws(TransferError) {
      try fetcher.forget(reason)
      launch()
    } catch {
      fail(error)
    }
  }

  // MARK: Verification

  /// Compares present pieces with their hashes.
  private func verifyPieces() {
    // After the end, the process may exit while a thread still hashes.
    guard isVerifiable else { return }
    fetcher.pieces.verify { [self] in verified($0) }
  }

  private var isVerifiable: Bool { [.running, .paused, .verifying].contains(phase) }

  private func verified(_ result: Result<PieceVerifier.Batch, TransferError>) {
    do throws(TransferError) {
      let batch = try result.get()
      guard isVerifiable else { return }
      // Hashes of bytes that were discarded meanwhile say nothing.
      guard fetcher.pieces.isCurrent(batch) else { return verifyPieces() }
      try fetcher.take(batch)
    } catch {
      return fail(error)
    }
    verifyPieces()
    goOnAfterVerification()
  }

  private func goOnAfterVerification() {
    if phase == .verifying {
      if fetcher.pieces.areAllVerified {
        phase = .running
        return finish()
      }
      guard !fetcher.table.isComplete else { return }
      phase = .running
      monitor.update { $0.state = .running }
    }
    guard isRunning, !fetcher.table.isComplete else { return }
    fetcher.plan()
    if fetcher.hasNothing { perform(ends.refetch()) }
  }

  private func showFinishing() {
    monitor.update {
      $0.state = .finishing
      $0.connections = 0
    }
  }

  // MARK: Completion

  private func finish() {
    guard isRunning, let response = fetcher.representation.response else { return }
    if let wanted = fetcher.body?.byteCount, monitor.progress.sentByteCount < wanted {
      return fail(
        TransferError(
          .invalidResponse, response.url,
          "the server answered HTTP \(response.head.status.code) before it had the whole body",
          response: response.head))
    }
    fetcher.clear()
    switch fetcher.pieces.state(of: fetcher.table) {
    case .verified: break
    case .unverified:
      phase = .verifying
      showFinishing()
      return verifyPieces()
    case .mismatch(let error): return fail(error)
    }
    let length = fetcher.table.target.byteCount
    let checksum = request.checksum
    complete { [self] sink throws(FileFailure) in
      let bytes = try sink.finish(length: length, checksum: checksum)
      return { [self] in
        TransferResult(
          response: response.head, url: response.url, body: bytes, byteCount: length,
          resumedByteCount: monitor.progress.resumedByteCount, isUnchanged: false,
          rawByteCount: fetcher.rawByteCount, duration: ContinuousClock.now - startedAt)
      }
    } otherwise: { [self] error in
      guard error.code == .checksumMismatch, fetcher.choosesOthers() else {
        let refusals = fetcher.servers.mirrors.refusals(besides: nil)
        return fail(error.error(at: request.url).naming(refusals))
      }
      phase = .running
      monitor.update { $0.state = .connecting }
      startOver("what came has another checksum; trying other mirrors")
    }
  }

  /// Ends with success, and leaves the file as it is.
  private func leaveEarlier(_ head: HTTPResponse, from url: RemoteURL) {
    fetcher.clear()
    complete { [self] sink throws(FileFailure) in
      let length = try sink.keepEarlier()
      return { [self] in
        monitor.emit(.responded(head, from: url))
        fetcher.report(total: length)
        monitor.emit(.resumed(byteCount: length))
        return TransferResult(
          response: head, url: url, body: [], byteCount: length, resumedByteCount: length,
          isUnchanged: true, rawByteCount: fetcher.rawByteCount,
          duration: ContinuousClock.now - startedAt)
      }
    } otherwise: { [self] error in
      fail(error)
    }
  }

  /// Completes the destination by `work`, which may wait for the disk.
  ///
  /// The transfer ends with the result of the function that `work` returns. `otherwise` gets the
  /// failure, unless the transfer was cancelled meanwhile.
  private func complete(
    by work:
      @escaping @Sendable (any BodySink) throws(FileFailure) -> @Sendable () -> TransferResult,
    otherwise: @escaping @Sendable (FileFailure) -> Void
  ) {
    phase = .finishing
    showFinishing()
    store.run(work) { [self] result in
      // An earlier call of the sink may have failed meanwhile, which has ended the transfer.
      guard phase == .finishing else { return }
      switch result {
      case .success(let makeResult):
        hasFinished = true
        end(.success(makeResult()))
      case .failure(let failure):
        if !takePendingCancel() { otherwise(failure) }
      }
    }
  }

  private func fail(_ error: TransferError) {
    guard phase != .ended else { return }
    if let response = error.response, fetcher.representation.response == nil {
      monitor.emit(.responded(response, from: error.url))
    }
    end(.failure(error))
  }

  /// Fails because of the destination or the body to send.
  private func fail(_ failure: FileFailure) { fail(failure.error(at: request.url)) }

  private func end(
    _ outcome: Result<TransferResult, TransferError>, isSilent: Bool = false, removes: Bool = false
  ) {
    if phase != .idle { transfers.ended() }
    client.recordConnections(at: request.url.normalizedOrigin) { [table = fetcher.table] in
      table.report(to: &$0, of: request.url.normalizedOrigin, today: $1)
    }
    phase = .ended
    fetcher.clear()
    fetcher.body = nil
    guard case .failure(let error) = outcome else {
      return monitor.end(outcome, isSilent: isSilent)
    }
    // Code that learns of the end may look at the remaining files.
    store.run { sink in
      sink.release(error)
      if removes { sink.remove() }
    } then: { [monitor] _ in
      monitor.end(outcome, isSilent: isSilent)
    }
  }

  /// Carries out a cancellation that came while the disk was busy.
  private func takePendingCancel() -> Bool {
    guard let pending = pendingCancel else { return false }
    phase = .running
    cancel(isSilent: pending.isSilent, removes: pending.removes)
    return true
  }
}

// MARK: - Request results

extension TransferDriver: SegmentFetcherOwner {
  func receive(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    guard isRunning || phase == .paused else { return .stop }
    do throws(TransferError) {
      return try responses.receive(head, from: url, by: exchange, isRunning: isRunning) {
        [self] in fail($0)
      }
    } catch {
      fail(error)
      return .stop
    }
  }

  func mustPause(_ exchange: SegmentExchange) -> Bool {
    phase == .paused || !store.hasRoom(for: exchange)
  }

  func advance(
    _ exchange: SegmentExchange, to position: Int64, now: ContinuousClock.Instant
  ) -> Int64? {
    isRunning ? fetcher.advance(exchange.segmentID, to: position, now: now) : nil
  }

  func enqueue(_ handed: HandedBuffer, as range: ByteRange, by exchange: SegmentExchange) {
    fetcher.enqueue(handed, as: range, by: exchange) { [self] result in
      if case .failure(let failure) = result { return fail(failure) }
      if fetcher.pieces.isActive { verifyPieces() }
      plan()
    }
  }

  func note(_ event: SegmentExchange.Event, of exchange: SegmentExchange) {
    switch event {
    case .redirected(let url, let status):
      fetcher.redirected(to: url, status: status, by: exchange.mirror)
    case .held(let moment): if isRunning { fetcher.held(until: moment) }
    case .throttled: fetcher.table.throttled(now: .now)
    }
  }

  func ended(
    _ exchange: SegmentExchange, _ completion: ExchangeCompletion, _ metrics: ExchangeMetrics
  ) {
    guard fetcher.takeEnd(of: exchange, metrics), isRunning || phase == .paused else { return }
    let step = ends.conclude(exchange, completion, metrics, isRunning: isRunning) { [self] in
      // A file that is being finished no longer needs a record.
      if phase != .finishing { fail($0) }
    }
    perform(step)
    fetcher.releaseScout(exchange.segmentID, isRunning: isRunning)
    fetcher.showConnections()
  }

  func hedgesAreDue(after delay: Duration) { fetcher.hedge(after: delay, isRunning: isRunning) }

  func signed(_ result: Result<RemoteURL, URLSigningError>) {
    perform(fetcher.signed(result, isRunning: isRunning))
  }
}
