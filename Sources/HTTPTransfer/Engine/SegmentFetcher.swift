internal import HTTPTransferCore
internal import HTTPTypes

/// What a ``SegmentFetcher`` tells its owner besides what its exchanges tell.
protocol SegmentFetcherOwner: SegmentExchangeOwner {
  /// The requests that have brought nothing for `delay` may be hedged now.
  func hedgesAreDue(after delay: Duration)

  /// The signer has answered.
  func signed(_ result: Result<RemoteURL, URLSigningError>)
}

/// Sends the requests of one transfer and has stored what they bring.
///
/// It does not know whether the transfer runs or pauses: its owner does, and carries out the steps
/// that methods return.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentFetcher: @unchecked Sendable {
  private let request: Request
  private let client: HTTPClient
  private let store: BodyStore
  private let monitor: TransferMonitor
  /// Hears of the requests; exchanges hold it, so that it stays while there are some.
  private weak var owner: (any SegmentFetcherOwner)?
  /// Compares pieces.
  let pieces: PieceVerifier
  /// What is known of the file.
  var representation: Representation
  var table: SegmentTable
  /// Where requests go.
  var servers: TransferServers
  /// How often is tried again.
  var patience: TransferPatience
  /// How many requests may be hedged.
  private var hedgeBudget = HedgeBudget()
  /// What the requests send.
  var body: BodyReader?
  /// Whether a look for requests to hedge is due.
  private var watchesForHedges = false
  private var exchanges: [Int: (id: ExchangeID, receiver: SegmentExchange)] = [:]
  /// The total as reported so far.
  private var reportedTotal: Int64?
  private(set) var rawByteCount: Int64 = 0

  /// - Parameters:
  ///   - request: what is fetched.
  ///   - client: sends the requests.
  ///   - store: takes the bytes.
  ///   - monitor: is told of progress.
  ///   - owner: hears of the requests; it is not held.
  init(
    _ request: Request, client: HTTPClient, store: BodyStore, monitor: TransferMonitor,
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
    representation = Representation(request, hashes: pieces.hashes, isSequential: isWhole)
    table = SegmentTable(
      range: request.range,
      connections: isWhole || !store.isRandomAccess ? .exactly(1) : request.connections)
    // Hashes show that two servers have the same bytes if nothing is handed on before it is compared.
    let isHashed = request.checksum != nil || pieces.hashes != nil
    servers = TransferServers(
      request, trust: store.canBeginAnew && isHashed ? .hashesBeforeUse : .validators)
    patience = TransferPatience(retryCount: request.retryCount)
  }

  /// Whether no request is under way.
  var isIdle: Bool { exchanges.isEmpty }

  /// Whether nothing is under way or planned.
  var hasNothing: Bool { exchanges.isEmpty && table.segments.isEmpty }

  // MARK: Beginning

  /// Takes over what an earlier run has stored.
  func adopt(_ remains: PartialFile.Remains) {
    representation.recover(remains.version)
    servers.noteEarlierBytes()
    // Of a range the file holds, from its first byte on, nothing else.
    let offset = request.range?.lowerBound ?? 0
    table.adopt(
      ExtentSet(remains.extents.extents.map { $0.lowerBound + offset..<$0.upperBound + offset }))
    if let length = remains.version.completeLength { table.setLength(length) }
  }

  /// Begins to count.
  ///
  /// - Returns: the number of bytes wanted; nil while unknown.
  func begin() -> Int64? {
    table.recall(connections: client.learnedConnections(at: request.url.normalizedOrigin))
    reportedTotal = table.wantedByteCount ?? statedTotal
    return reportedTotal
  }

  /// The number of bytes that the request itself names.
  private var statedTotal: Int64? { request.method == .get ? request.range?.byteCount : nil }

  /// Reports the total, after it has become known by `length` if that is given.
  func reportTotal(length: Int64? = nil) {
    if let length { table.setLength(length) }
    if let total = table.wantedByteCount { report(total: total) }
  }

  func report(total: Int64?) {
    guard total != reportedTotal else { return }
    monitor.emit(.totalChanged(by: (total ?? 0) - (reportedTotal ?? 0)))
    reportedTotal = total
  }

  /// Sends the first requests, at the start and after a pause or a new beginning.
  func launch() -> TransferStep {
    if representation.isSequential {
      if table.presentByteCount > 0, !representation.canSkip {
        return .startOver("a body without validator cannot be gone on with")
      }
      send(table.add(0..<table.target.upperBound, isWhole: true))
    } else if representation.isConfirmed, table.isLengthKnown {
      if table.isComplete { return .finish }
      plan()
    } else if table.isComplete {
      // All is there from an earlier run: one byte shows whether the remote file is still the same.
      let first = table.target.lowerBound
      if table.target.isEmpty { return .finish }
      send(table.add(first..<(first + 1), isWhole: false))
    } else {
      send(table.add(table.firstRange, isWhole: false))
    }
    return .wait
  }

  func plan() {
    guard representation.isConfirmed, !representation.isSequential else { return }
    // Each piece that was wrong comes by a request of its own, from one mirror: that shows which one
    // has served the wrong bytes, and the other requests continue meanwhile.
    for suspect in pieces.suspects {
      guard
        let segment = table.add(piece: suspect.piece, suspect.range, except: suspect.excluded)
      else { continue }
      if let range = pieces.restart(suspect.piece, by: segment.id) { forget(range) }
      send(segment)
    }
    for segment in table.plan(except: pieces.suspectRanges, now: .now) { send(segment) }
  }

  /// Sends the request for a segment, to `mirror` if that is given.
  func send(_ segment: SegmentTable.Segment, to mirror: Int? = nil) {
    let index = mirror ?? nextMirror(for: segment)
    let now = ContinuousClock.now
    if servers.locations.takeSignerTurn(now: now) { sign() }
    guard let owner, let url = servers.locations.place(segment.id, at: index, now: now) else {
      return
    }
    table.noteAsked(segment.id, of: index)
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
    hedgeBudget.noteRequests(1, hedges: 0)
    showConnections()
    watchForHedges()
  }

  /// Forgets bytes that turned out wrong.
  func forget(_ range: ByteRange) {
    let removed = table.forget(range)
    if removed != 0 { monitor.emit(.received(byteCount: -removed)) }
  }

  /// Forgets everything that was fetched.
  ///
  /// - Parameters:
  ///   - reason: why, for the user.
  ///   - kept: an exchange that continues.
  /// - Throws: where a part has been handed on already.
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

  // MARK: Requests under way

  func showConnections() {
    let count = table.activeCount
    monitor.update { $0.connections = count }
  }

  /// A request is held back, or is being sent now: the server has asked to wait.
  func held(until moment: ContinuousClock.Instant?) {
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
    if !representation.isConfirmed || servers.locations[mirror].redirected == nil {
      monitor.emit(.redirected(to: url, status: status))
    }
  }

  /// There is room again at the destination.
  func unpauseAll() {
    for exchange in exchanges.values { exchange.receiver.resume() }
  }

  func setStallTimeout(_ timeout: Duration?) {
    for exchange in exchanges.values { client.setStallTimeout(timeout, of: exchange.id) }
  }

  /// An exchange has ended.
  ///
  /// - Returns: whether what comes of it is wanted.
  func takeEnd(of receiver: SegmentExchange, _ metrics: ExchangeMetrics) -> Bool {
    rawByteCount += metrics.rawByteCount
    guard exchanges[receiver.segmentID]?.receiver === receiver else { return false }
    drop(receiver.segmentID)
    return true
  }

  /// An exchange is over, or what comes of it is not wanted.
  private func drop(_ id: Int) {
    guard let exchange = exchanges.removeValue(forKey: id) else { return }
    servers.mirrors.ended(exchange.receiver.mirror)
  }

  /// Ends every exchange under way.
  func endExchanges(flushing: Bool = true, except kept: SegmentExchange? = nil) {
    let running = exchanges
    for (id, exchange) in running where exchange.receiver !== kept { drop(id) }
    for exchange in running.values where exchange.receiver !== kept {
      if flushing { exchange.receiver.handOver(now: .now) }
      client.cancel(exchange.id)
      exchange.receiver.endDecoding()
    }
    if let scout = servers.locations.scout, exchanges[scout] == nil {
      servers.locations.endScout()
    }
  }

  /// Ends all exchanges except `kept`; no segment is left.
  func clear(except kept: SegmentExchange? = nil) {
    endExchanges(except: kept)
    table.removeAll()
  }

  /// The whole is asked for, by the request of `receiver`.
  func makeWhole(_ receiver: SegmentExchange) {
    representation.makeSequential()
    table.removeAll()
    let id = table.add(0..<table.target.upperBound, isWhole: true).id
    guard let exchange = exchanges.removeValue(forKey: receiver.segmentID) else { return }
    receiver.segmentID = id
    exchanges[id] = exchange
  }

  // MARK: What becomes known

  func judge(_ answer: Representation.Answer) -> Representation.Decision {
    representation.judge(answer, &servers.mirrors, &patience)
  }

  func confirm(_ content: ContentVersion, by answer: Representation.Answer, begins: Bool) {
    representation.confirm(content, by: answer, begins: begins, &servers.mirrors)
  }

  // MARK: Storing

  /// Bytes have arrived.
  ///
  /// - Returns: where the segment ends; nil if nobody wants the bytes.
  func advance(_ id: Int, to position: Int64, now: ContinuousClock.Instant) -> Int64? {
    let target = table.parallelism.target
    let end = table.advance(
      id, to: position, idle: client.idleSeconds - store.fullSeconds, now: now)
    endRival(of: id)
    // More connections begin at once, not only when the next buffer is stored.
    if table.parallelism.target > target { plan() }
    return table[id]?.end ?? end
  }

  /// Has the bytes `range`, which an exchange has gathered in a buffer, stored.
  ///
  /// What an exchange of an earlier beginning has gathered is dropped: it may be of another version.
  ///
  /// - Parameters:
  ///   - handed: the buffer.
  ///   - range: its bytes.
  ///   - exchange: which exchange has brought them.
  ///   - body: what follows; not called if everything starts over meanwhile.
  func handOver(
    _ handed: HandedBuffer, as range: ByteRange, by exchange: SegmentExchange,
    then body: @escaping @Sendable (Result<Void, FileFailure>) -> Void
  ) {
    guard exchange.generation == pieces.generation else { return }
    pieces.begin(table)
    let carrier = carrier(of: exchange.segmentID)
    let runs = pieces.admitted(range, by: carrier).flatMap { table.handOver($0) }
    let (id, mirror, generation) = (exchange.segmentID, exchange.mirror, exchange.generation)
    store.store(handed, at: range.lowerBound, runs: runs, from: table.target.lowerBound) {
      [self] result in
      // The bytes of an earlier beginning have been thrown away since.
      guard generation == pieces.generation else { return }
      if case .success = result { stored(range, runs: runs, by: id, of: mirror) }
      body(result)
    }
  }

  /// What brings the bytes of a segment.
  private func carrier(of id: Int) -> PieceTable.Carrier {
    table[id]?.isWhole == true ? .stream : .request(id)
  }

  private func stored(_ range: ByteRange, runs: [ByteRange], by id: Int, of mirror: Int) {
    let carrier = carrier(of: id)
    // A piece may have been found wrong meanwhile, and be asked for alone.
    let kept = runs.flatMap { pieces.admitted($0, by: carrier) }
    let added = table.stored(id, range, runs: runs, kept: kept, now: .now)
    patience.noteConnection()
    if added > 0 { monitor.emit(.received(byteCount: added)) }
    servers.noteStored(from: mirror, rate: table[id]?.rate(now: .now))
    if pieces.isActive {
      for run in kept { pieces.noteArrival(of: run, from: mirror, by: carrier) }
    }
  }

  /// Takes the hashes of pieces: those that are wrong become absent.
  ///
  /// - Throws: why the transfer fails with them.
  func take(_ batch: PieceVerifier.Batch) throws(TransferError) {
    try pieces.compare(batch, trusted: servers.mirrors.trusted) {
      finding throws(TransferError) in
      if finding.error != nil { forget(finding.range) }
      if let liar = finding.liar { excludeLiar(liar) }
      guard let error = finding.error else { return }
      if finding.isLost { throw error.naming(servers.mirrors.refusals(besides: nil)) }
      monitor.emit(.retrying(error, attempt: finding.failureCount, after: .zero))
    }
  }

  // MARK: Hedges

  /// Looks for requests to hedge, again and again while there are requests.
  private func watchForHedges() {
    guard request.isHedged, !watchesForHedges, !representation.isSequential else { return }
    watchesForHedges = true
    let delay = HedgePlanner(roundTrip: table.roundTrip, patience: request.stallTimeout).delay
    client.schedule(after: delay / 2) { [weak owner] in owner?.hedgesAreDue(after: delay) }
  }

  func hedge(after delay: Duration, isRunning: Bool) {
    watchesForHedges = false
    guard isRunning, !isIdle else { return }
    defer { watchForHedges() }
    guard representation.isConfirmed, !representation.isSequential,
      !servers.locations.areUnknown, body == nil
    else { return }
    let now = ContinuousClock.now
    let hedges = table.planHedges(
      now: now, after: delay,
      allowance: hedgeBudget.allowance(at: Array(servers.locations.origins), now: now)
    ) { id in
      exchanges[id]?.receiver.isServed == true
    }
    hedgeBudget.noteRequests(0, hedges: hedges.count)
    for segment in hedges { send(segment) }
  }

  /// The server of `url` refuses or drops connections: it gets fewer, and no hedges for a while.
  func noteRefusal(by url: RemoteURL) {
    let now = ContinuousClock.now
    table.stepDown(now: now)
    hedgeBudget.noteRefusal(by: url.normalizedOrigin, now: now)
  }

  /// A request has failed.
  ///
  /// - Returns: whether it was a hedge, so that the request beside which it was sent continues.
  func dropFailedHedge(_ id: Int) -> Bool {
    guard table[id]?.hedgeOf != nil else { return false }
    table.remove(id)
    return true
  }

  /// A segment has brought bytes: ends the request that was to bring the same.
  private func endRival(of id: Int) {
    guard let rival = table.endRival(of: id) else { return }
    guard let exchange = exchanges[rival] else { return table.remove(rival) }
    // What it has gathered is stored when it ends.
    client.cancel(exchange.id)
  }

  // MARK: Servers

  /// The mirror that the request for a segment goes to; the first if none is left.
  func nextMirror(for segment: SegmentTable.Segment) -> Int {
    servers.next(for: segment, of: representation)
  }

  /// The mirror that a request goes to; nil if none is left.
  func nextMirror() -> Int? { servers.next(of: representation) }

  /// A mirror is not asked again, and the user is told.
  func exclude(_ index: Int, _ reason: String) {
    servers.mirrors.exclude(index, reason: reason)
    monitor.emit(.mirrorExcluded(servers.mirrors[index].url, reason: reason))
  }

  /// A mirror has served wrong bytes: nothing more of it is wanted.
  private func excludeLiar(_ index: Int) {
    guard servers.mirrors.hasTrusted(besides: index) else { return }
    exclude(index, "it has served bytes that do not hash to what they should")
    for (id, exchange) in exchanges where exchange.receiver.mirror == index {
      drop(id)
      table.remove(id)
      client.cancel(exchange.id)
    }
  }

  /// What came does not hash to the checksum: leaves out the mirror that has served it, or has one
  /// mirror alone asked where it came from several.
  ///
  /// - Returns: false where there is no other way to get it.
  func choosesOthers() -> Bool {
    guard servers.mirrors.count > 1, !pieces.isActive, store.canBeginAnew,
      case .refetch(let liar) = servers.judgeWhole()
    else { return false }
    if let liar { exclude(liar, "what it serves has another checksum") }
    servers.mirrors.sole = nextMirror()
    return true
  }

  /// The segment's request has ended: if it was to find the way, another one may.
  func releaseScout(_ id: Int, isRunning: Bool) {
    guard servers.locations.scout == id, exchanges[id] == nil else { return }
    servers.locations.endScout()
    sendUnplaced(isRunning: isRunning)
  }

  /// Sends the requests that have waited for a URL.
  func sendUnplaced(isRunning: Bool) {
    let waiting = servers.locations.takeUnplaced()
    guard isRunning else { return }
    for id in waiting where exchanges[id] == nil {
      if let segment = table[id], !segment.isWaiting { send(segment) }
    }
  }

  // MARK: The signer

  /// Asks the signer for a URL, unless it is being asked.
  private func sign() {
    guard let owner, let signer = request.signer, servers.locations.beginSigning() else { return }
    signer.sign(request.url, name: request.name) { [client] result in
      client.perform { owner.signed(result) }
    }
  }

  /// Asks the signer again where requests wait for it.
  func signIfAwaited() {
    if servers.locations.areAwaited { sign() }
  }

  func signed(_ result: Result<RemoteURL, URLSigningError>, isRunning: Bool) -> TransferStep {
    servers.locations.endSigning()
    switch result {
    case .success(let url):
      servers.locations.noteSigned(url, now: .now)
      sendUnplaced(isRunning: isRunning)
      return .wait
    case .failure(let failure):
      // Nobody waits for it: the last URL is used until it refuses.
      guard servers.locations.areAwaited, isRunning else { return .wait }
      let attempt = servers.locations.noteSignerFailure()
      let error = TransferError(.other, request.url, failure.description, isTransient: true)
      guard attempt <= request.retryCount else { return .fail(error) }
      let delay = request.retryPolicy.delay(
        failures: attempt, retryAfter: nil, random: .random(in: 0..<1))
      monitor.emit(.retrying(error, attempt: attempt, after: delay))
      return .signAgain(after: delay)
    }
  }
}
