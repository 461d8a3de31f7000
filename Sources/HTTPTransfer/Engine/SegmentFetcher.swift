internal import HTTPTransferCore
internal import HTTPTypes

/// Receives the events of a ``SegmentFetcher`` and of its exchanges.
protocol SegmentFetcherOwner: SegmentExchangeOwner {
  /// Called when requests that have brought no bytes for `delay` may be hedged.
  func hedgesAreDue(after delay: Duration)

  /// Called when the signer has answered.
  func signed(_ result: Result<RemoteURL, URLSigningError>)
}

/// Sends the requests of one transfer and stores the bytes that they bring.
///
/// It does not know whether the transfer runs or pauses. Its owner does, and carries out the steps
/// that methods return.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentFetcher: @unchecked Sendable {
  private let request: Request
  private let client: ExchangeClient
  private let store: BodyStore
  private let monitor: TransferMonitor
  /// Receives the events; exchanges retain it while they are in progress.
  private weak var owner: (any SegmentFetcherOwner)?
  /// Compares pieces.
  let pieces: PieceVerifier
  /// The state of the remote file.
  var representation: Representation
  var table: SegmentTable
  /// Decides where requests go.
  var servers: TransferServers
  /// Counts and limits retries.
  var allowance: RetryAllowance
  /// Limits the hedges.
  private var hedgeBudget = HedgeBudget()
  /// The body of the requests.
  var body: BodyReader?
  /// Whether the next check for requests to hedge is scheduled.
  private var watchesForHedges = false
  private var exchanges: [Int: (id: ExchangeID, receiver: SegmentExchange)] = [:]
  /// The total as last reported.
  private var reportedTotal: Int64?
  private(set) var rawByteCount: Int64 = 0

  /// - Parameters:
  ///   - request: the request of the transfer.
  ///   - client: sends the requests.
  ///   - store: takes the bytes.
  ///   - monitor: receives the progress.
  ///   - owner: receives the events; held weakly.
  init(
    _ request: Request, client: ExchangeClient, store: BodyStore, monitor: TransferMonitor,
    owner: any SegmentFetcherOwner
  ) {
    self.request = request
    self.client = client
    self.store = store
    self.monitor = monitor
    self.owner = owner
    pieces = PieceVerifier(request, store: store, client: client)
    let isWhole =
      request.method != .get || request.decodesContent || request.body != nil
      || (request.range == nil && (!store.isRandomAccess || request.connections.maximum == 1))
    representation = Representation(request, hashes: pieces.hashes, isSingleStream: isWhole)
    table = SegmentTable(
      range: request.range,
      connections: isWhole || !store.isRandomAccess ? .exactly(1) : request.connections)
    // Hashes prove that two servers have the same bytes only if no byte is handed on unchecked.
    let isHashed = request.checksum != nil || pieces.hashes != nil
    servers = TransferServers(
      request, trust: store.canBeginAnew && isHashed ? .hashesBeforeUse : .validators)
    allowance = RetryAllowance(retryCount: request.retryCount)
  }

  /// Whether no request is in flight.
  var isIdle: Bool { exchanges.isEmpty }

  /// Whether no request is in flight or planned.
  var hasNothing: Bool { exchanges.isEmpty && table.segments.isEmpty }

  // MARK: Start

  /// Takes over the bytes that an earlier run has stored.
  func adopt(_ remains: PartialFile.Remains) {
    representation.recover(remains.version)
    servers.recordEarlierBytes()
    // If a range was requested, the file contains only that range, from its first byte on.
    let offset = request.range?.lowerBound ?? 0
    table.adopt(
      ExtentSet(remains.extents.extents.map { $0.lowerBound + offset..<$0.upperBound + offset }))
    if let length = remains.version.completeLength { table.setLength(length) }
  }

  /// Begins to count.
  ///
  /// - Returns: the number of wanted bytes; nil while unknown.
  func begin() -> Int64? {
    table.recall(connections: client.learnedConnections(at: request.url.normalizedOrigin))
    reportedTotal = table.wantedByteCount ?? statedTotal
    return reportedTotal
  }

  /// The number of bytes according to the request itself.
  private var statedTotal: Int64? { request.method == .get ? request.range?.byteCount : nil }

  /// Reports the total; `length`, if given, is the complete length that has become known.
  func reportTotal(length: Int64? = nil) {
    if let length { table.setLength(length) }
    if let total = table.wantedByteCount { report(total: total) }
  }

  func report(total: Int64?) {
    guard total != reportedTotal else { return }
    monitor.emit(.totalChanged(by: (total ?? 0) - (reportedTotal ?? 0)))
    reportedTotal = total
  }

  /// Sends the first requests, at the start and after a pause or a restart.
  func launch() -> TransferStep {
    if representation.isSingleStream {
      if table.presentByteCount > 0, !representation.canSkip {
        return .startOver("the body cannot be resumed")
      }
      send(table.add(0..<table.target.upperBound, isWhole: true))
    } else if representation.isConfirmed, table.isLengthKnown {
      if table.isComplete { return .finish }
      plan()
    } else if table.isComplete {
      // An earlier run left all bytes: one byte shows whether the remote file is still the same.
      let first = table.target.lowerBound
      if table.target.isEmpty { return .finish }
      send(table.add(first..<(first + 1), isWhole: false))
    } else {
      send(table.add(table.firstRange, isWhole: false))
    }
    return .wait
  }

  func plan() {
    guard representation.isConfirmed, !representation.isSingleStream else { return }
    // Each wrong piece is requested separately, from one mirror. That shows which one served the
    // wrong bytes, and the other requests continue meanwhile.
    let suspects = pieces.suspects(atMost: table.freeCount) { !table.isFetching(piece: $0) }
    for suspect in suspects {
      guard
        let segment = table.add(piece: suspect.piece, suspect.range, except: suspect.excluded)
      else { continue }
      if let range = pieces.restart(suspect.piece, by: segment.id) { forget(range) }
      send(segment)
    }
    for segment in table.plan(except: pieces.wrongBytes, now: .now) { send(segment) }
  }

  /// Sends the request for a segment, to `mirror` if given.
  func send(_ segment: SegmentTable.Segment, to mirror: Int? = nil) {
    let index = mirror ?? nextMirror(for: segment)
    let now = ContinuousClock.now
    if servers.locations.takeSignerTurn(now: now) { sign() }
    guard let owner, let url = servers.locations.place(segment.id, at: index, now: now) else {
      return
    }
    table.recordAsked(segment.id, of: index)
    var exchange = ExchangeRequest(
      request, range: segment.isWhole ? nil : segment.start..<segment.end, to: url,
      of: servers.mirrors[index].url, at: servers.locations[index], body: body)
    let receiver = SegmentExchange(
      owner: owner, store: store, segmentID: segment.id, mirror: index, asked: url, client: client)
    receiver.isConditional =
      representation.askedEarlier?.setCondition(
        of: &exchange, isAlone: servers.mirrors.count == 1) ?? false
    let id = client.start(exchange, receiver: receiver)
    receiver.exchangeID = id
    exchanges[segment.id] = (id, receiver)
    servers.mirrors.began(index)
    hedgeBudget.recordRequests(1, hedges: 0)
    showConnections()
    watchForHedges()
  }

  /// Forgets bytes that turned out to be wrong.
  func forget(_ range: ByteRange) {
    let removed = table.forget(range)
    if removed != 0 { monitor.emit(.received(byteCount: -removed)) }
  }

  /// Forgets everything that was fetched.
  ///
  /// - Parameters:
  ///   - reason: the reason, for the user.
  ///   - kept: an exchange that continues.
  /// - Throws: if a part has already been handed on.
  func forget(
    _ reason: String, except kept: SegmentExchange? = nil
  ) throws(TransferError) {
    endExchanges(flushing: false, except: kept)
    let progress = monitor.progress
    guard store.canBeginAnew || progress.receivedByteCount == 0 else {
      throw TransferError(.changed, request.url, "\(reason), and a part of it has been handed on")
    }
    monitor.emit(.restarted(reason: reason))
    let received = progress.receivedByteCount - progress.resumedByteCount
    if received != 0 { monitor.emit(.received(byteCount: -received)) }
    if progress.resumedByteCount != 0 {
      monitor.emit(.resumed(byteCount: -progress.resumedByteCount))
    }
    if reportedTotal != statedTotal {
      report(total: statedTotal)
      monitor.update { [statedTotal] in $0.totalByteCount = statedTotal }
    }
    table.reset(range: request.range)
    servers.forget()
    representation.forget()
    pieces.forget()
  }

  // MARK: Active requests

  func showConnections() {
    let count = table.activeCount
    monitor.update { $0.connections = count }
  }

  /// Reports that a request is held back because the server asked to wait, or that it is sent now.
  func held(until moment: ContinuousClock.Instant?) {
    monitor.update { progress in
      // The answer ends the displayed wait.
      guard let moment else {
        progress.reason = nil
        return
      }
      // Requests that were sent earlier may still bring bytes.
      if exchanges.count <= 1 { progress.state = .waiting }
      let seconds = Int(((moment - .now) / .seconds(1)).rounded(.up))
      progress.reason = "the server has asked for no request for \(seconds) s"
    }
  }

  func redirected(to url: RemoteURL, status: Int, by mirror: Int) {
    if !representation.isConfirmed || servers.locations[mirror].redirected == nil {
      monitor.emit(.redirected(to: url, status: status))
    }
  }

  /// Resumes all exchanges, because the destination has room again.
  func unpauseAll() {
    for exchange in exchanges.values { exchange.receiver.resume() }
  }

  func setStallTimeout(_ timeout: Duration?) {
    for exchange in exchanges.values { client.setStallTimeout(timeout, of: exchange.id) }
  }

  /// Records the end of an exchange.
  ///
  /// - Returns: whether its result is still wanted.
  func takeEnd(of receiver: SegmentExchange, _ metrics: ExchangeMetrics) -> Bool {
    rawByteCount += metrics.rawByteCount
    guard exchanges[receiver.segmentID]?.receiver === receiver else { return false }
    drop(receiver.segmentID)
    return true
  }

  /// Removes an exchange that is over, or whose result is not wanted.
  private func drop(_ id: Int) {
    guard let exchange = exchanges.removeValue(forKey: id) else { return }
    servers.mirrors.ended(exchange.receiver.mirror)
  }

  /// Ends every exchange in flight.
  func endExchanges(flushing: Bool = true, except kept: SegmentExchange? = nil) {
    let running = exchanges
    for (id, exchange) in running where exchange.receiver !== kept { drop(id) }
    for exchange in running.values where exchange.receiver !== kept {
      if flushing { exchange.receiver.enqueue(now: .now) }
      client.cancel(exchange.id)
      exchange.receiver.endDecoding()
    }
    if let scout = servers.locations.scout, exchanges[scout] == nil {
      servers.locations.endScout()
    }
  }

  /// Ends all exchanges except `kept`, and removes all segments.
  func clear(except kept: SegmentExchange? = nil) {
    endExchanges(except: kept)
    table.removeAll()
  }

  /// Switches to a request for the whole, which `receiver` has sent.
  func makeWhole(_ receiver: SegmentExchange) {
    representation.makeSingleStream()
    table.removeAll()
    let id = table.add(0..<table.target.upperBound, isWhole: true).id
    guard let exchange = exchanges.removeValue(forKey: receiver.segmentID) else { return }
    receiver.segmentID = id
    exchanges[id] = exchange
  }

  // MARK: Updates

  func judge(_ answer: Representation.Answer) -> Representation.Decision {
    representation.judge(answer, &servers.mirrors, &allowance)
  }

  func confirm(_ content: ContentVersion, by answer: Representation.Answer, begins: Bool) {
    representation.confirm(content, by: answer, begins: begins, &servers.mirrors)
  }

  // MARK: Storing

  /// Records that bytes have arrived.
  ///
  /// - Returns: the end of the segment; nil if the bytes are not wanted.
  func advance(_ id: Int, to position: Int64, now: ContinuousClock.Instant) -> Int64? {
    let target = table.parallelism.target
    let end = table.advance(
      id, to: position, idle: client.idleSeconds - store.fullSeconds, now: now)
    endRival(of: id)
    // Open more connections at once, not only when the next buffer is stored.
    if table.parallelism.target > target { plan() }
    return table[id]?.end ?? end
  }

  /// Stores the bytes `range`, which an exchange has gathered in a buffer.
  ///
  /// Bytes of an earlier generation are dropped, because they may be of another version.
  ///
  /// - Parameters:
  ///   - handed: the buffer.
  ///   - range: its bytes.
  ///   - exchange: the exchange that brought them.
  ///   - body: called with the result; not called if the transfer starts over meanwhile.
  func enqueue(
    _ handed: HandedBuffer, as range: ByteRange, by exchange: SegmentExchange,
    then body: @escaping @Sendable (Result<Void, FileFailure>) -> Void
  ) {
    guard exchange.generation == pieces.generation, !pieces.isLiar(exchange.mirror) else { return }
    pieces.begin(table)
    let carrier = carrier(of: exchange.segmentID)
    let runs = pieces.admitted(range, by: carrier).flatMap { table.enqueue($0) }
    let (id, mirror, generation) = (exchange.segmentID, exchange.mirror, exchange.generation)
    store.store(handed, at: range.lowerBound, runs: runs, from: table.target.lowerBound) {
      [self] result in
      // The bytes of an earlier generation have been discarded since.
      guard generation == pieces.generation else { return }
      if case .success = result { stored(range, runs: runs, by: id, of: mirror) }
      body(result)
    }
  }

  /// The carrier of a segment's bytes.
  private func carrier(of id: Int) -> PieceTable.Carrier {
    table[id]?.isWhole == true ? .stream : .request(id)
  }

  private func stored(_ range: ByteRange, runs: [ByteRange], by id: Int, of mirror: Int) {
    let carrier = carrier(of: id)
    // A piece may have been found wrong meanwhile, and be requested separately.
    let kept =
      pieces.isLiar(mirror) ? [] : runs.flatMap { pieces.admitted($0, by: carrier) }
    let added = table.stored(id, range, runs: runs, kept: kept, now: .now)
    allowance.recordConnection()
    if added > 0 { monitor.emit(.received(byteCount: added)) }
    servers.recordStored(
      added, enough: table.progressByteCount, from: mirror, rate: table[id]?.rate(now: .now))
    if pieces.isActive {
      for run in kept { pieces.recordArrival(of: run, from: mirror, by: carrier) }
    }
  }

  /// Takes the hashes of pieces; wrong pieces become absent.
  ///
  /// - Throws: why the transfer fails because of them.
  func take(_ batch: PieceVerifier.Batch) throws(TransferError) {
    try pieces.compare(batch, trusted: servers.mirrors.trusted) {
      finding throws(TransferError) in
      if finding.error != nil { forget(finding.range) }
      if let culprit = finding.culprit { excludeCulprit(culprit) }
      guard let error = finding.error else { return }
      if finding.isLost { throw error.naming(servers.mirrors.refusals(besides: nil)) }
      monitor.emit(.retrying(error, attempt: finding.failureCount, after: .zero))
    }
  }

  // MARK: Hedging

  /// Schedules a check for requests to hedge, repeatedly while there are requests.
  private func watchForHedges() {
    guard request.isHedged, !watchesForHedges, !representation.isSingleStream else { return }
    watchesForHedges = true
    let delay = HedgePlanner(roundTrip: table.roundTrip, timeout: request.stallTimeout).delay
    client.schedule(after: delay / 2) { [weak owner] in owner?.hedgesAreDue(after: delay) }
  }

  func hedge(after delay: Duration, isRunning: Bool) {
    watchesForHedges = false
    guard isRunning, !isIdle else { return }
    defer { watchForHedges() }
    guard representation.isConfirmed, !representation.isSingleStream,
      !servers.locations.areUnknown, body == nil
    else { return }
    let now = ContinuousClock.now
    let hedges = table.planHedges(
      now: now, after: delay,
      allowance: hedgeBudget.allowance(at: Array(servers.locations.origins), now: now)
    ) { id in
      exchanges[id]?.receiver.isServed == true
    }
    hedgeBudget.recordRequests(0, hedges: hedges.count)
    for segment in hedges { send(segment) }
  }

  /// Handles a refusal by the server of `url`: it gets fewer connections, and no hedges for a
  /// while.
  func recordRefusal(by url: RemoteURL) {
    let now = ContinuousClock.now
    table.stepDown(now: now)
    hedgeBudget.recordRefusal(by: url.normalizedOrigin, now: now)
  }

  /// Removes the segment of a request that `error` has ended if it was a hedge.
  ///
  /// - Returns: whether it was a hedge, so that the original request continues.
  func dropFailedHedge(
    _ id: Int, _ error: TransferError, after retryAfter: Duration?, from mirror: Int
  ) -> Bool {
    guard dropHedge(id) else { return false }
    if servers.recordHedgeFailure(error, after: retryAfter, of: mirror) {
      hedgeBudget.takeBackHedge()
    }
    return true
  }

  /// Removes a segment if it is a hedge.
  ///
  /// - Returns: whether it was one, so that the original request continues.
  func dropHedge(_ id: Int) -> Bool {
    guard table[id]?.hedgeOf != nil else { return false }
    table.remove(id)
    return true
  }

  /// Ends the request that competes with a segment which has brought bytes.
  private func endRival(of id: Int) {
    guard let rival = table.endRival(of: id) else { return }
    guard let exchange = exchanges[rival] else { return table.remove(rival) }
    // The bytes that it gathered are stored when it ends.
    client.cancel(exchange.id)
  }

  // MARK: Servers

  /// The mirror for the request of a segment; the first one if none is left.
  func nextMirror(for segment: SegmentTable.Segment) -> Int {
    servers.next(
      for: segment, avoiding: table.silentMirror(of: segment), of: representation)
  }

  /// The mirror for a request; nil if none is left.
  func nextMirror() -> Int? { servers.next(of: representation) }

  /// Excludes a mirror and tells the user.
  func exclude(_ index: Int, _ reason: String) {
    servers.mirrors.exclude(index, reason: reason)
    monitor.emit(.mirrorExcluded(servers.mirrors[index].url, reason: reason))
  }

  /// Excludes a mirror that served wrong bytes, and drops its requests.
  private func excludeCulprit(_ index: Int) {
    guard servers.mirrors.hasTrusted(besides: index) else { return }
    exclude(index, "it has served bytes that do not hash to what they should")
    for (id, exchange) in exchanges where exchange.receiver.mirror == index {
      drop(id)
      table.remove(id)
      client.cancel(exchange.id)
    }
    for range in pieces.disown(index) { forget(range) }
  }

  /// Chooses other mirrors for a file that does not have the expected checksum.
  ///
  /// If a single mirror served the file, it is excluded. The next attempt uses one mirror only.
  ///
  /// - Returns: false if there is no other mirror to try.
  func choosesOthers() -> Bool {
    guard servers.mirrors.count > 1, !pieces.isActive, store.canBeginAnew,
      case .refetch(let culprit) = servers.judgeWhole()
    else { return false }
    if let culprit { exclude(culprit, "what it serves has another checksum") }
    servers.mirrors.exclusive = nextMirror()
    return true
  }

  /// Lets another request find the location if that of a segment was the scout and has ended.
  func releaseScout(_ id: Int, isRunning: Bool) {
    guard servers.locations.scout == id, exchanges[id] == nil else { return }
    servers.locations.endScout()
    sendUnplaced(isRunning: isRunning)
  }

  /// Sends the requests that waited for a URL.
  func sendUnplaced(isRunning: Bool) {
    let waiting = servers.locations.takeUnplaced()
    guard isRunning else { return }
    for id in waiting where exchanges[id] == nil {
      if let segment = table[id], !segment.isWaiting { send(segment) }
    }
  }

  // MARK: URL signing

  /// Asks the signer for a URL, unless a call is in progress.
  private func sign() {
    guard let owner, let signer = request.signer, servers.locations.beginSigning() else { return }
    signer.sign(request.url, name: request.name) { [client] result in
      client.perform { owner.signed(result) }
    }
  }

  /// Asks the signer again if requests wait for its URL.
  func signIfAwaited() {
    if servers.locations.areAwaited { sign() }
  }

  func signed(_ result: Result<RemoteURL, URLSigningError>, isRunning: Bool) -> TransferStep {
    servers.locations.endSigning()
    switch result {
    case .success(let url):
      servers.locations.recordSigned(url, now: .now)
      sendUnplaced(isRunning: isRunning)
      return .wait
    case .failure(let failure):
      // No request waits for the signer: the last URL is used until it is refused.
      guard servers.locations.areAwaited, isRunning else { return .wait }
      let attempt = servers.locations.recordSignerFailure()
      let error = TransferError(.other, request.url, failure.description, isTransient: true)
      guard attempt <= request.retryCount else { return .fail(error) }
      let delay = request.retryPolicy.delay(
        failures: attempt, retryAfter: nil, random: .random(in: 0..<1))
      monitor.emit(.retrying(error, attempt: attempt, after: delay))
      return .signAgain(after: delay)
    }
  }
}
