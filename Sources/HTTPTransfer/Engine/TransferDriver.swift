internal import HTTPTransferCore
internal import HTTPTypes

/// Carries one transfer out: asks for segments, checks each response against the pinned version
/// before its first byte, stores, retries, begins anew, and finishes.
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
  let sink: any BodySink
  var table: SegmentTable
  var phase = Phase.idle

  /// The version that every response must be of; nil before the first one.
  var version: ContentVersion?
  /// Whether a response of this run has confirmed ``version``.
  var isConfirmed = false
  /// The first good head and where it came from.
  var response: (head: HTTPResponse, url: RemoteURL)?
  /// Whether the representation is asked for as a whole, without ranges.
  var isSequential: Bool
  /// How often a range was answered with the whole, though ranges have worked.
  var ignoredRangeCount = 0
  /// Whether the server has answered a range with the whole.
  var haveRangesBeenRefused = false
  /// Whether a range has been answered with a part.
  var haveRangesWorked = false
  /// Whether a pause came before the first request was sent.
  private var isHeld = false
  /// Whether the destination is complete.
  private var hasFinished = false
  /// How often a body that cannot be gone on with was fetched, or sent, again.
  var repeatCount = 0
  /// How often an answer was asked for again because it looks like a stand-in for the file.
  var doubtCount = 0
  /// How often the first answer was asked for again because its modification date was too fresh.
  var freshCount = 0
  /// Since when no route has led to the server.
  var disconnectedSince: ContinuousClock.Instant?
  /// How often everything has begun anew.
  var restartCount = 0
  /// The servers.
  var mirrors: MirrorSet
  /// Which URL of each server is asked.
  var locations: [ResourceLocation]
  /// Who has brought the bytes that are there.
  var wholeCheck = WholeCheck()
  /// What has arrived of pieces that are not verified; nil where none are to be, or before the length is
  /// known.
  var pieces: PieceTable?
  /// The bytes of the pieces that are verified.
  var verified = ExtentSet()
  /// The pieces that are there and are to be hashed.
  var pendingChecks: [PieceTable.Check] = []
  /// Counts the new beginnings, which make the results of earlier verifications void.
  var pieceGeneration = 0
  /// Whether a piece was wrong since the last request was planned, and is absent again.
  var hasRefutedPiece = false
  /// Whether a thread hashes pieces.
  var isVerifying = false
  /// The segments that wait for a URL.
  var unplaced: [Int] = []
  /// The segment whose request finds out where the bytes are, for all.
  var scout: Int?
  /// Whether nobody knows where the bytes are: one request asks.
  var isLost = false
  var isSigning = false
  /// How often in a row the signer has failed.
  var signerFailureCount = 0
  /// The total as reported so far.
  var reportedTotal: Int64?

  var exchanges: [Int: (id: ExchangeID, receiver: SegmentExchange)] = [:]
  private var body: BodyReader?
  private var rawByteCount: Int64 = 0
  private var startedAt = ContinuousClock.now
  /// Whether the cancellation that came while the disk was busy removes what is there.
  private var pendingCancel: (isSilent: Bool, removes: Bool)?

  /// How often a transfer may begin anew because the remote file has changed: once for an upload
  /// under way, once more for good measure, and then it is a server that cannot make up its mind.
  static let restartLimit = 3

  init(request: Request, client: HTTPClient, monitor: TransferMonitor, sink: any BodySink) {
    self.request = request
    self.client = client
    self.monitor = monitor
    self.sink = sink
    let isSigned = request.signer != nil && request.method == .get
    // The signer makes URLs of the first one.
    let others = request.method == .get && !isSigned ? request.mirrors : []
    mirrors = MirrorSet(
      urls: [request.url] + others, trust: Self.trust(of: request, into: sink),
      rests: request.retryPolicy)
    locations = mirrors.mirrors.map { ResourceLocation(listed: $0.url, isSigned: isSigned) }
    let isWhole =
      request.method != .get || request.decodesContent || request.body != nil
      || (request.range == nil && (!sink.isRandomAccess || request.connections.maximum == 1))
    isSequential = isWhole
    table = SegmentTable(
      range: request.range,
      connections: isWhole || !sink.isRandomAccess ? .exactly(1) : request.connections)
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
    onDisk("httpfs-prepare") { [self] in
      do throws(FileFailure) {
        let remains = try sink.prepare()
        let body = try makeBody()
        client.perform { [self] in prepared(remains, body) }
      } catch {
        client.perform { [self] in
          phase = .running
          if !takePendingCancel() { fail(transferError(error)) }
        }
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
    if isSequential {
      for exchange in exchanges.values { client.setStallTimeout(nil, of: exchange.id) }
      return
    }
    endExchanges()
    table.removeAll()
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
    if table.isComplete, isConfirmed { return finish() }
    if isSequential, !exchanges.isEmpty {
      for exchange in exchanges.values {
        client.setStallTimeout(request.stallTimeout, of: exchange.id)
      }
      return unpauseAll()
    }
    // A segment that waited to be tried again is not left beside the new one.
    table.removeAll()
    launch()
  }

  /// Ends without success; what was stored can be gone on with unless it `removes` that too.
  func cancel(isSilent: Bool, removes: Bool) {
    switch phase {
    case .ended:
      // What a failed or cancelled transfer has left goes, too.
      if removes, !hasFinished { sink.remove() }
    case .preparing, .finishing: pendingCancel = (isSilent, removes)
    case .idle, .running, .paused, .verifying:
      end(
        .failure(TransferError(.cancelled, request.url, "cancelled")), isSilent: isSilent,
        removes: removes)
    }
  }

  /// There is room again at the destination.
  func unpauseAll() {
    for exchange in exchanges.values { client.unpause(exchange.id) }
  }

  /// Whether pieces are to stay where they are for now.
  var mustPause: Bool { phase == .paused || sink.isFull }

  // MARK: Beginning

  /// Runs `work` on a thread of its own where it may wait for the disk.
  private func onDisk(_ name: String, _ work: @escaping @Sendable () -> Void) {
    var mayWait = false
    if case .file = request.destination { mayWait = true }
    if request.body != nil || request.checksum != nil { mayWait = true }
    // Without a thread to spare the network thread waits: slow, and right.
    if !mayWait || !spawnThread(name: name, work) { work() }
  }

  private func makeBody() throws(FileFailure) -> BodyReader? {
    guard let content = request.body else { return nil }
    let reader = try BodyReader(content)
    reader.onProgress = { [monitor] in monitor.emit(.sent(byteCount: $0)) }
    return reader
  }

  private func prepared(_ remains: PartialFile.Remains?, _ body: BodyReader?) {
    phase = .running
    if takePendingCancel() { return }
    self.body = body
    if let body { monitor.update { $0.bodyByteCount = body.byteCount } }
    var refusal = sink.refusal
    var recovered: PartialFile.Remains?
    if let remains, !remains.extents.isEmpty {
      if remains.version.isResumable || remains.version.lastModified != nil {
        recovered = remains
      } else {
        refusal = "the server gave no validator that would prove the partial file's bytes"
      }
    }
    if let recovered {
      isSequential = false
      wholeCheck.hasEarlierBytes = true
      // Of a range the file holds, from its first byte on, nothing else.
      let offset = request.range?.lowerBound ?? 0
      table.adopt(
        ExtentSet(
          recovered.extents.extents.map { $0.lowerBound + offset..<$0.upperBound + offset }))
      version = recovered.version
      // A record holds no other modification date than a strong one.
      version?.dateStrength = .strong
      if let length = recovered.version.completeLength { table.setLength(length) }
    }
    let total = table.wantedByteCount ?? (request.method == .get ? request.range?.byteCount : nil)
    reportedTotal = total
    monitor.emit(.started(totalByteCount: total))
    if let refusal { monitor.emit(.restarted(reason: refusal)) }
    if recovered != nil { monitor.emit(.resumed(byteCount: table.presentByteCount)) }
    if isHeld {
      phase = .paused
      return monitor.update { $0.state = .paused }
    }
    launch()
  }

  /// Sends the first requests, at the start and after a pause or a new beginning.
  func launch() {
    if isSequential {
      if table.presentByteCount > 0, !canSkip {
        guard forget("a body without validator cannot be gone on with") else { return }
      }
      send(table.add(0..<table.target.upperBound, isWhole: true))
    } else if isConfirmed, table.isLengthKnown {
      if table.isComplete { return finish() }
      plan()
    } else if table.isComplete {
      // All is there from an earlier run: one byte shows whether the remote file is still the same.
      let first = table.target.lowerBound
      if table.target.isEmpty { return finish() }
      send(table.add(first..<(first + 1), isWhole: false))
    } else {
      send(table.add(table.firstRange, isWhole: false))
    }
  }

  func plan() {
    guard phase == .running, isConfirmed, !isSequential else { return }
    for segment in table.plan(now: .now) { send(segment) }
  }

  func send(_ segment: SegmentTable.Segment) {
    let index = nextMirror()
    guard let url = place(segment, at: index) else { return }
    let (server, location) = (mirrors[index].url, locations[index])
    var exchange = ExchangeRequest(
      method: request.method, url: url,
      range: segment.isWhole ? nil : segment.start..<segment.end, fields: request.fields,
      confidentialFields: request.confidentialFields, confidentialOrigin: server.origin,
      maximumRedirects: request.redirects.maximum, connectTimeout: request.connectTimeout)
    exchange.userInfo = server.userInfo
    exchange.namedOrigin = location.base?.origin
    if location.isSigned, url == location.base { exchange.useOwnCredentials() }
    exchange.keepsMethodOnRedirect = request.redirects.keepsMethod
    exchange.authenticatesOnChallenge = request.authenticatesOnChallenge
    exchange.decodesContent = request.decodesContent
    exchange.stallTimeout = request.stallTimeout
    exchange.headTimeout = request.stallTimeout
    exchange.retryAfterCeiling = request.retryPolicy.retryAfterCeiling
    exchange.rateLimit = request.rateLimit
    exchange.body = body
    if let type = body?.contentType {
      let given = exchange.fields[.contentType] ?? exchange.confidentialFields[.contentType]
      exchange.confidentialFields[.contentType] = nil
      // One value only; that of a form says how the body is to be read.
      exchange.fields[.contentType] = request.body?.isForm == true ? type : given ?? type
    }
    let receiver = SegmentExchange(
      driver: self, segmentID: segment.id, mirror: index, asked: url, pool: client.buffers)
    let id = client.start(exchange, receiver: receiver)
    exchanges[segment.id] = (id, receiver)
    mirrors.began(index)
    showConnections()
  }

  /// An exchange is over, or what comes of it is not wanted.
  func drop(_ id: Int) {
    guard let exchange = exchanges.removeValue(forKey: id) else { return }
    mirrors.ended(exchange.receiver.mirror)
  }

  private func showConnections() {
    let count = table.activeCount
    monitor.update { $0.connections = count }
  }

  // MARK: Storing

  /// Bytes have arrived; where the segment is to end, nil where nobody wants them.
  func advance(_ id: Int, to position: Int64, now: ContinuousClock.Instant) -> Int64? {
    guard phase == .running else { return nil }
    return table.advance(id, to: position, now: now)
  }

  /// How much is gathered before it is written: 512 KiB, less where many exchanges gather, so that a
  /// crash loses little.
  var gatherByteCount: Int {
    guard sink.isRandomAccess else { return 16 << 10 }
    let share = (3 << 20) / max(1, exchanges.count)
    return max(64 << 10, min(BufferPool.bufferByteCount, share))
  }

  /// Stores what is absent of a run of bytes.
  ///
  /// - Returns: why that failed.
  func store(
    _ bytes: UnsafeRawBufferPointer, at start: Int64, by id: Int, of mirror: Int,
    now: ContinuousClock.Instant
  ) -> TransferError? {
    let range = ByteRange(offset: start, byteCount: Int64(bytes.count))
    beginPieces()
    do throws(FileFailure) {
      for hole in table.holes(in: range.clamped(to: table.target)) {
        let slice = bytes[Int(hole.lowerBound - start)..<Int(hole.upperBound - start)]
        try sink.write(
          UnsafeRawBufferPointer(rebasing: slice), at: hole.lowerBound - table.target.lowerBound)
      }
    } catch {
      return transferError(error)
    }
    let added = table.stored(
      id, range.clamped(to: table.target), idle: client.idleSeconds, now: now)
    disconnectedSince = nil
    if added > 0 { monitor.emit(.received(byteCount: added)) }
    if mirrors.count > 1 {
      wholeCheck.noteStored(from: mirror)
      mirrors.answered(mirror)
      mirrors.measured(mirror, bytesPerSecond: table[id]?.rate(now: now))
    }
    if pieces != nil {
      noteArrival(of: range.clamped(to: table.target), from: mirror)
      verifyPieces()
    }
    plan()
    return nil
  }

  // MARK: The end of an exchange

  /// A request is held back, or is being sent now: the server has asked to wait.
  func held(until moment: ContinuousClock.Instant?) {
    guard phase == .running else { return }
    monitor.update { progress in
      // The answer ends the wait that is shown.
      guard let moment else {
        progress.reason = nil
        return
      }
      // Others that were sent before may still bring bytes.
      if exchanges.count <= 1 { progress.state = .waiting }
      let seconds = Int(((moment - .now) / .seconds(1)).rounded(.up))
      progress.reason = "the server has asked for no request for \(seconds) s"
    }
  }

  func redirected(to url: RemoteURL, status: Int, by mirror: Int) {
    if !isConfirmed || locations[mirror].redirected == nil {
      monitor.emit(.redirected(to: url, status: status))
    }
  }

  func ended(
    _ receiver: SegmentExchange, _ completion: ExchangeCompletion, _ metrics: ExchangeMetrics
  ) {
    rawByteCount += metrics.rawByteCount
    let id = receiver.segmentID
    guard let exchange = exchanges[id], exchange.receiver === receiver else { return }
    drop(id)
    guard phase == .running || phase == .paused else { return }
    if metrics.newConnections == 0, metrics.timeToFirstByte > .zero {
      table.roundTrip = table.roundTrip * 0.7 + metrics.timeToFirstByte / .seconds(1) * 0.3
    }
    _ = receiver.flush(now: .now)
    switch receiver.verdict {
    case .superseded:
      if phase == .running, exchanges.isEmpty, table.segments.isEmpty { launch() }
    case .fail(let error):
      if !failOver(id, error, after: nil, from: receiver.mirror) { fail(error) }
    case .retry(let error, let delay): retry(id, error, after: delay, from: receiver.mirror)
    case .expired(let error): askElsewhere(id, error)
    case .none: bodyEnded(receiver, completion)
    }
    scoutEnded(id)
    showConnections()
  }

  private func bodyEnded(_ receiver: SegmentExchange, _ completion: ExchangeCompletion) {
    let id = receiver.segmentID
    guard let segment = table[id] else { return }
    switch completion {
    case .cancelled:
      // Only a body that nobody wants is ended like that: that of an empty file.
      table.remove(id)
      if table.isComplete { finish() }
    case .failed(let error):
      if error.code == .unreadableBody, let failure = body?.failure {
        return fail(transferError(failure))
      }
      retry(id, TransferError(error), after: nil, from: receiver.mirror)
    case .stopped where table[id].map({ $0.storedEnd < $0.end }) == true:
      // Nobody ends a body on purpose before the segment's end.
      retryCut(receiver)
    case .finished where receiver.position == nil && !table.isComplete:
      // Neither a body nor a verdict on it: that must not be asked for without an end.
      retryCut(receiver)
    case .finished, .stopped:
      if let position = receiver.position {
        if let expected = receiver.expectedEnd, position < expected, position < segment.end {
          return retryCut(receiver)
        }
        if receiver.expectedEnd == nil, segment.isWhole {
          // What the length was known to be, it stays.
          if table.isLengthKnown, position < table.target.upperBound {
            return retryCut(receiver)
          }
          learnEnd(position)
          guard phase != .ended else { return }
        }
        if !segment.isWhole, position < segment.end, !table.isComplete {
          // A part shorter than asked for, which a server may send: the rest is asked for anew.
          table.remove(id)
          return plan()
        }
      }
      if phase == .running, isSequential, !table.isComplete, hasRefutedPiece {
        table.remove(id)
        return fetchRefutedPieces()
      }
      if phase == .running, isSequential, !table.isComplete {
        // The whole has come without all that was wanted of it; never asked for without an end.
        return retryCut(receiver)
      }
      table.remove(id)
      if table.isComplete { finish() } else { plan() }
      if phase == .running, exchanges.isEmpty, table.segments.isEmpty {
        // Nothing is under way and nothing was planned: an answer that brought nothing.
        launch()
      }
    }
  }

  private func retryCut(_ receiver: SegmentExchange) {
    let index = receiver.mirror
    let error = TransferError(
      .connectionLost, locations[index].current ?? mirrors[index].url, "response cut short",
      isTransient: true)
    retry(receiver.segmentID, error, after: nil, from: receiver.mirror)
  }

  /// A body without a declared length has ended.
  private func learnEnd(_ length: Int64) {
    if request.method == .get, let range = request.range, range.lowerBound >= length, let response {
      let error = beyondTheEnd(length, response.head, response.url)
      return end(.failure(error), removes: true)
    }
    table.setLength(length)
    reportTotal()
    do throws(FileFailure) {
      try sink.recordLength(length)
    } catch {
      fail(transferError(error))
    }
  }

  /// Reports the total where it is not the one reported last.
  func reportTotal() {
    guard let total = table.wantedByteCount, total != reportedTotal else { return }
    monitor.emit(.totalChanged(by: total - (reportedTotal ?? 0)))
    reportedTotal = total
  }

  // MARK: The end

  func finish() {
    guard phase == .running, let response else { return }
    if let wanted = body?.byteCount, monitor.progress.sentByteCount < wanted {
      return fail(
        TransferError(
          .invalidResponse, response.url,
          "the server answered HTTP \(response.head.status.code) before it had the whole body",
          response: response.head))
    }
    endExchanges()
    table.removeAll()
    guard arePiecesVerified() else { return }
    phase = .finishing
    monitor.update {
      $0.state = .finishing
      $0.connections = 0
    }
    sink.stopCommitting()
    let length = table.target.byteCount
    let checksum = request.checksum
    onDisk("httpfs-finish") { [self] in
      do throws(FileFailure) {
        let bytes = try sink.finish(length: length, checksum: checksum)
        client.perform { [self] in
          hasFinished = true
          let progress = monitor.progress
          end(
            .success(
              TransferResult(
                response: response.head, url: response.url, body: bytes, byteCount: length,
                resumedByteCount: progress.resumedByteCount, rawByteCount: rawByteCount,
                duration: ContinuousClock.now - startedAt)))
        }
      } catch {
        client.perform { [self] in
          guard !takePendingCancel(), !beginAnew(afterMismatch: error) else { return }
          fail(naming(transferError(error), besides: nil))
        }
      }
    }
  }

  func fail(_ error: TransferError) {
    guard phase != .ended else { return }
    if let response = error.response, self.response == nil {
      monitor.emit(.responded(response, from: error.url))
    }
    end(.failure(error))
  }

  private func end(
    _ outcome: Result<TransferResult, TransferError>, isSilent: Bool = false, removes: Bool = false
  ) {
    if phase != .idle { client.transferEnded() }
    phase = .ended
    endExchanges()
    table.removeAll()
    if case .failure(let error) = outcome { sink.release(error) }
    if removes { sink.remove() }
    body = nil
    monitor.end(outcome, isSilent: isSilent)
  }

  /// Carries out a cancellation that came while the disk was busy.
  private func takePendingCancel() -> Bool {
    guard let pending = pendingCancel else { return false }
    phase = .running
    cancel(isSilent: pending.isSilent, removes: pending.removes)
    return true
  }

  func transferError(_ failure: FileFailure) -> TransferError {
    TransferError(failure.code, request.url, failure.reason, errno: failure.errno)
  }
}

extension ContentVersion {
  /// Whether equal validators prove that bytes from another time belong to the same file.
  ///
  /// A weak entity tag does not: it promises equivalent bytes, not equal ones. Neither does a
  /// modification date of the second in which the response was made.
  var isResumable: Bool { strength == .strong }
}
