internal import HTTPTransferCore
internal import HTTPTypes

/// Carries one transfer out: prepares its destination, has its requests sent and their responses
/// checked before the first byte, begins anew, and finishes.
///
/// `@unchecked Sendable`: everything in it belongs to the network thread. Others hold it only to send
/// it there by ``HTTPClient/perform(_:)``.
final class TransferDriver: @unchecked Sendable {
  enum Phase {
    case idle, preparing, running, paused
    /// All is there, and pieces are still compared with their hashes.
    case verifying
    case finishing, ended
  }

  let request: Request
  let client: HTTPClient
  let monitor: TransferMonitor
  let store: BodyStore
  private(set) var phase = Phase.idle
  /// What is known of the file.
  var representation: Representation
  /// Sends the requests.
  private(set) lazy var fetcher = SegmentFetcher(
    driver: self, trust: trust, connections: connections)
  /// Tries again what has failed.
  private(set) lazy var retries = SegmentRetries(driver: self)
  /// Compares pieces.
  private(set) lazy var pieces = PieceVerifier(driver: self, hashes: hashes)
  /// What pieces of the file must hash to.
  private let hashes: PieceHashes?
  private let connections: Connections
  /// What the request sends.
  private(set) var body: BodyReader?
  /// Whether a pause came before the first request was sent.
  private var isHeld = false
  /// Whether the destination is complete.
  private var hasFinished = false
  private var startedAt = ContinuousClock.now
  /// Whether the cancellation that came while the disk was busy removes what is there.
  private var pendingCancel: (isSilent: Bool, removes: Bool)?

  init(request: Request, client: HTTPClient, monitor: TransferMonitor, sink: any BodySink) {
    self.request = request
    self.client = client
    self.monitor = monitor
    var mayWait = request.body != nil || request.checksum != nil
    if case .file = request.destination { mayWait = true }
    store = BodyStore(sink: sink, client: client, mayWait: mayWait)
    hashes = PieceVerifier.hashes(of: request, into: store)
    let isWhole =
      request.method != .get || request.decodesContent || request.body != nil
      || (request.range == nil && (!sink.isRandomAccess || request.connections.maximum == 1))
    connections = isWhole || !sink.isRandomAccess ? .exactly(1) : request.connections
    representation = Representation(request, hashes: hashes, isSequential: isWhole)
  }

  /// What shows that two servers have the same bytes: hashes, where nothing is handed on before they are
  /// compared.
  private var trust: MirrorSet.Trust {
    store.canBeginAnew && (request.checksum != nil || hashes != nil)
      ? .hashesBeforeUse : .validators
  }

  // MARK: Verbs

  func start() {
    guard phase == .idle else { return }
    phase = .preparing
    client.transferBegan()
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
    if let body { body.isPaused = true }
    // Of a body that cannot be gone on with elsewhere the connection is kept, and not read.
    if representation.isSequential { return fetcher.setStallTimeout(nil) }
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
    body?.isPaused = false
    // The answer may have come meanwhile.
    if fetcher.table.isComplete, representation.isConfirmed { return finish() }
    if representation.isSequential, !fetcher.isIdle {
      fetcher.setStallTimeout(request.stallTimeout)
      return fetcher.unpauseAll()
    }
    // A segment that waited to be tried again is not left beside the new one.
    fetcher.table.removeAll()
    // What the pause has cut is stored first, so that it is not fetched again.
    store.follow { [self] in
      guard phase == .running, fetcher.hasNothing else { return }
      if fetcher.table.isComplete, representation.isConfirmed { finish() } else { fetcher.launch() }
    }
  }

  /// Ends without success; what was stored can be gone on with unless it `removes` that too.
  func cancel(isSilent: Bool, removes: Bool) {
    switch phase {
    case .ended:
      // What a failed or cancelled transfer has left goes, too.
      if removes, !hasFinished { store.run({ $0.remove() }, then: { _ in }) }
    case .preparing, .finishing: pendingCancel = (isSilent, removes)
    case .idle, .running, .paused, .verifying:
      end(
        .failure(TransferError(.cancelled, request.url, "cancelled")), isSilent: isSilent,
        removes: removes)
    }
  }

  /// There is room again at the destination.
  func unpauseAll() { fetcher.unpauseAll() }

  /// Whether an exchange may not deliver more for now.
  func mustPause(_ id: ExchangeID) -> Bool { phase == .paused || !store.hasRoom(for: id) }

  // MARK: Beginning

  /// What the disk says before the first request.
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
    body = preparation.body
    if let body { monitor.update { $0.bodyByteCount = body.byteCount } }
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
      representation.recover(recovered.version)
      fetcher.adopt(recovered)
    } else {
      representation.setEarlier(preparation.earlierVersion)
    }
    monitor.emit(.started(totalByteCount: fetcher.begin()))
    if let refusal { monitor.emit(.restarted(reason: refusal)) }
    if recovered != nil { monitor.emit(.resumed(byteCount: fetcher.table.presentByteCount)) }
    if isHeld {
      phase = .paused
      return monitor.update { $0.state = .paused }
    }
    fetcher.launch()
  }

  // MARK: Responses

  /// What a response's head means for the transfer, decided before the first byte of its body.
  func receive(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    guard phase == .running || phase == .paused, let segment = fetcher.table[exchange.segmentID]
    else { return .stop }
    let answer = Representation.Answer(
      head: head, url: url, range: segment.isWhole ? nil : segment.start..<segment.end,
      mirror: exchange.mirror, isConditional: exchange.isConditional)
    switch fetcher.judge(answer, asked: exchange.asked) {
    case .reject(let verdict, let disposition):
      exchange.verdict = verdict
      return disposition
    case .refused(let error, let final):
      exchange.verdict = fetcher.refused(exchange, error, final: final)
      return .discard
    case .askWhole(let disposition):
      exchange.verdict = .superseded
      fetcher.clear(except: exchange)
      return disposition
    case .take(let body, let content, let acceptance):
      guard accept(acceptance, body, content, answer, by: exchange) else { return .stop }
      return take(body, isWhole: segment.isWhole, by: exchange)
    }
  }

  /// Takes note of a good response.
  ///
  /// - Returns: whether its body is wanted.
  private func accept(
    _ acceptance: Representation.Acceptance, _ body: Representation.Body,
    _ content: ContentVersion, _ answer: Representation.Answer, by exchange: SegmentExchange
  ) -> Bool {
    if case .confirmed = acceptance { return true }
    if case .startsOver = acceptance {
      guard forget("the remote file has changed since the partial file was begun", except: exchange)
      else { return false }
      if case .part = body {
        exchange.verdict = .superseded
        return false
      }
      fetcher.makeWhole(exchange)
      representation.makeSequential()
    }
    let begins = if case .agrees = acceptance { false } else { true }
    fetcher.confirm(content, by: answer, begins: begins)
    monitor.emit(.responded(answer.head, from: answer.url))
    guard begins else { return true }
    let target = fetcher.table.target
    let wanted = content.completeLength.map { length in
      max(0, min(target.upperBound, length) - min(target.lowerBound, length))
    }
    store.begin(version: content.provable, wantedByteCount: wanted) { [self] result in
      if case .failure(let failure) = result { fail(failure) }
    }
    return phase != .ended
  }

  private func take(
    _ body: Representation.Body, isWhole: Bool, by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    switch body {
    case .part(let range, let length):
      representation.noteRange()
      if fetcher.table.isLengthKnown { fetcher.reportTotal() } else { fetcher.setLength(length) }
      guard let segment = fetcher.table[exchange.segmentID] else { return .stop }
      exchange.acceptBody(range, isEndKnown: true, start: segment.start)
      fetcher.plan()
    case .whole(let length):
      if !isWhole {
        // One stream brings all; the others would bring the same.
        fetcher.endExchanges(except: exchange)
        representation.makeSequential()
        fetcher.makeWhole(exchange)
      }
      if let length, !fetcher.table.isLengthKnown {
        fetcher.setLength(length)
      } else {
        fetcher.reportTotal()
      }
      exchange.acceptBody(
        0..<(length ?? .max), isEndKnown: length != nil, start: fetcher.table.target.lowerBound)
    case .nothing:
      fetcher.endExchanges(except: exchange)
      fetcher.setLength(0)
      return .discard
    case .reply:
      if request.method == .head { fetcher.setLength(0, isReported: false) }
      exchange.acceptBody(0..<Int64.max, isEndKnown: false, start: 0)
    }
    return .proceed
  }

  /// Forgets everything that was fetched; false where it has been handed on already.
  ///
  /// - Parameters:
  ///   - reason: why, for the user.
  ///   - kept: an exchange that goes on.
  /// - Returns: whether the transfer goes on.
  func forget(_ reason: String, except kept: SegmentExchange? = nil) -> Bool {
    fetcher.endExchanges(flushing: false, except: kept)
    let progress = monitor.progress
    guard store.canBeginAnew || progress.receivedByteCount == 0 else {
      fail(TransferError(.changed, request.url, "\(reason), and a part of it has been handed on"))
      return false
    }
    monitor.emit(.restarted(reason: reason))
    let received = progress.receivedByteCount - progress.resumedByteCount
    if received != 0 { monitor.emit(.received(byteCount: -received)) }
    if progress.resumedByteCount != 0 {
      monitor.emit(.resumed(byteCount: -progress.resumedByteCount))
    }
    fetcher.forget()
    representation.forget()
    pieces.forget()
    return true
  }

  // MARK: Verification

  /// All is there, and pieces are still compared.
  func awaitVerification() {
    phase = .verifying
    showFinishing()
  }

  func goOnAfterVerification() {
    if phase == .verifying {
      if pieces.areAllVerified {
        phase = .running
        return finish()
      }
      guard !fetcher.table.isComplete else { return }
      phase = .running
      monitor.update { $0.state = .running }
    }
    guard phase == .running, !fetcher.table.isComplete else { return }
    fetcher.plan()
    if fetcher.hasNothing { fetcher.fetchRefutedPieces() }
  }

  private func showFinishing() {
    monitor.update {
      $0.state = .finishing
      $0.connections = 0
    }
  }

  // MARK: The end

  func finish() {
    guard phase == .running, let response = representation.response else { return }
    if let wanted = body?.byteCount, monitor.progress.sentByteCount < wanted {
      return fail(
        TransferError(
          .invalidResponse, response.url,
          "the server answered HTTP \(response.head.status.code) before it had the whole body",
          response: response.head))
    }
    fetcher.clear()
    guard pieces.isDone(fetcher.table) else { return }
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
        return fail(transferError(error).naming(fetcher.mirrors.refusals(besides: nil)))
      }
      phase = .running
      monitor.update { $0.state = .connecting }
      if forget("what came has another checksum; trying other mirrors") { fetcher.launch() }
    }
  }

  /// Ends with success, and with the file as it is.
  func leaveEarlier(_ head: HTTPResponse, from url: RemoteURL) {
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

  /// Completes the destination by `work`, which may wait for the disk, and ends with the result that its
  /// function makes; `otherwise` gets its failure, unless the transfer was cancelled meanwhile.
  private func complete(
    by work:
      @escaping @Sendable (any BodySink) throws(FileFailure) -> @Sendable () -> TransferResult,
    otherwise: @escaping @Sendable (FileFailure) -> Void
  ) {
    phase = .finishing
    showFinishing()
    store.run(work) { [self] result in
      // What was asked of the destination before may have failed meanwhile, and has ended it all.
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

  func fail(_ error: TransferError) {
    guard phase != .ended else { return }
    if let response = error.response, representation.response == nil {
      monitor.emit(.responded(response, from: error.url))
    }
    end(.failure(error))
  }

  /// The destination or the body to be sent has failed.
  func fail(_ failure: FileFailure) { fail(transferError(failure)) }

  func end(
    _ outcome: Result<TransferResult, TransferError>, isSilent: Bool = false, removes: Bool = false
  ) {
    if phase != .idle { client.transferEnded() }
    client.noteConnections(of: fetcher.table, at: request.url.normalizedOrigin)
    phase = .ended
    fetcher.clear()
    body = nil
    guard case .failure(let error) = outcome else {
      return monitor.end(outcome, isSilent: isSilent)
    }
    // Whoever hears of the end may look at what is left.
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

  private func transferError(_ failure: FileFailure) -> TransferError {
    TransferError(failure.code, request.url, failure.reason, errno: failure.errno)
  }
}
