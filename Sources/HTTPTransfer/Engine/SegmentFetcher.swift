internal import HTTPTransferCore
internal import HTTPTypes

/// Sends the requests of one transfer and stores what they bring.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentFetcher: @unchecked Sendable {
  /// Owns this; whatever runs later holds it.
  private unowned let driver: TransferDriver
  private let request: Request
  private let client: HTTPClient
  private let store: BodyStore
  private let monitor: TransferMonitor
  var table: SegmentTable
  /// The servers.
  var mirrors: MirrorSet
  /// Which URL of each server is asked.
  private var locations: TransferLocations
  /// Who has brought the bytes that are there.
  private var wholeCheck = WholeCheck()
  /// Whether a look for requests to hedge is due.
  private var watchesForHedges = false
  private var exchanges: [Int: (id: ExchangeID, receiver: SegmentExchange)] = [:]
  /// The total as reported so far.
  private var reportedTotal: Int64?
  private(set) var rawByteCount: Int64 = 0
  /// How often all has come again because a piece was wrong.
  private var refetchCount = 0

  init(driver: TransferDriver, trust: MirrorSet.Trust, connections: Connections) {
    self.driver = driver
    (request, client) = (driver.request, driver.client)
    (store, monitor) = (driver.store, driver.monitor)
    let isSigned = request.signer != nil && request.method == .get
    // The signer makes URLs of the first one.
    let others = request.method == .get && !isSigned ? request.mirrors : []
    mirrors = MirrorSet(urls: [request.url] + others, trust: trust, rests: request.retryPolicy)
    locations = TransferLocations(servers: mirrors.mirrors.map(\.url), isSigned: isSigned)
    table = SegmentTable(range: request.range, connections: connections)
  }

  private var representation: Representation { driver.representation }
  private var isRunning: Bool { driver.phase == .running }

  /// Whether no request is under way.
  var isIdle: Bool { exchanges.isEmpty }

  /// Whether nothing is under way or planned.
  var hasNothing: Bool { exchanges.isEmpty && table.segments.isEmpty }

  // MARK: Beginning

  /// Takes over what an earlier run has stored.
  func adopt(_ remains: PartialFile.Remains) {
    wholeCheck.hasEarlierBytes = true
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

  /// Reports the total where it is not the one reported last.
  func reportTotal() {
    if let total = table.wantedByteCount { report(total: total) }
  }

  func report(total: Int64?) {
    guard total != reportedTotal else { return }
    monitor.emit(.totalChanged(by: (total ?? 0) - (reportedTotal ?? 0)))
    reportedTotal = total
  }

  /// Sends the first requests, at the start and after a pause or a new beginning.
  func launch() {
    let representation = representation
    if representation.isSequential {
      if table.presentByteCount > 0, !representation.canSkip {
        guard driver.forget("a body without validator cannot be gone on with") else { return }
      }
      send(table.add(0..<table.target.upperBound, isWhole: true))
    } else if representation.isConfirmed, table.isLengthKnown {
      if table.isComplete { return driver.finish() }
      plan()
    } else if table.isComplete {
      // All is there from an earlier run: one byte shows whether the remote file is still the same.
      let first = table.target.lowerBound
      if table.target.isEmpty { return driver.finish() }
      send(table.add(first..<(first + 1), isWhole: false))
    } else {
      send(table.add(table.firstRange, isWhole: false))
    }
  }

  func plan() {
    guard isRunning, representation.isConfirmed, !representation.isSequential else { return }
    let pieces = driver.pieces
    // Each piece that was wrong comes by a request of its own, from one mirror: that shows who has
    // served the wrong bytes, and the other requests continue meanwhile.
    for suspect in pieces.suspects {
      guard
        let segment = table.add(piece: suspect.piece, suspect.range, except: suspect.excluded)
      else { continue }
      if let range = pieces.restart(suspect.piece) { forget(range) }
      send(segment)
    }
    for segment in table.plan(except: pieces.suspectRanges, now: .now) { send(segment) }
  }

  /// Sends the request for a segment, to `mirror` if that is given.
  func send(_ segment: SegmentTable.Segment, to mirror: Int? = nil) {
    let index = mirror ?? nextMirror(for: segment)
    let now = ContinuousClock.now
    if locations.takeSignerTurn(now: now) { sign() }
    guard let url = locations.place(segment.id, at: index, now: now) else { return }
    table.noteAsked(segment.id, of: index)
    var exchange = ExchangeRequest(
      request, range: segment.isWhole ? nil : segment.start..<segment.end, to: url,
      of: mirrors[index].url, at: locations[index], body: driver.body)
    let receiver = SegmentExchange(
      driver: driver, segmentID: segment.id, mirror: index, asked: url, pool: client.buffers)
    receiver.isConditional =
      representation.askedEarlier?.setCondition(of: &exchange, isAlone: mirrors.count == 1) ?? false
    exchanges[segment.id] = (client.start(exchange, receiver: receiver), receiver)
    mirrors.began(index)
    driver.retries.hedgeBudget.noteRequests(1, hedges: 0)
    showConnections()
    watchForHedges()
  }

  /// The whole is asked for, by the request of `receiver`.
  func makeWhole(_ receiver: SegmentExchange) {
    table.removeAll()
    move(receiver, to: table.add(0..<table.target.upperBound, isWhole: true).id)
  }

  /// Forgets everything that was fetched.
  func forget() {
    if reportedTotal != statedTotal {
      report(total: statedTotal)
      monitor.update { [statedTotal] in $0.totalByteCount = statedTotal }
    }
    table.reset(range: request.range)
    mirrors.forgetVersion()
    wholeCheck.forgetBytes()
  }

  /// Forgets bytes that turned out wrong.
  func forget(_ range: ByteRange) {
    let removed = table.forget(range)
    if removed != 0 { monitor.emit(.received(byteCount: -removed)) }
  }

  // MARK: Requests under way

  private func showConnections() {
    let count = table.activeCount
    monitor.update { $0.connections = count }
  }

  /// A request is held back, or is being sent now: the server has asked to wait.
  func held(until moment: ContinuousClock.Instant?) {
    guard isRunning else { return }
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
    if !representation.isConfirmed || locations[mirror].redirected == nil {
      monitor.emit(.redirected(to: url, status: status))
    }
  }

  /// There is room again at the destination.
  func unpauseAll() {
    for exchange in exchanges.values { client.unpause(exchange.id) }
  }

  func setStallTimeout(_ timeout: Duration?) {
    for exchange in exchanges.values { client.setStallTimeout(timeout, of: exchange.id) }
  }

  /// An exchange is over, or what comes of it is not wanted.
  private func drop(_ id: Int) {
    guard let exchange = exchanges.removeValue(forKey: id) else { return }
    mirrors.ended(exchange.receiver.mirror)
  }

  /// Ends every exchange under way.
  func endExchanges(flushing: Bool = true, except kept: SegmentExchange? = nil) {
    let running = exchanges
    for (id, exchange) in running where exchange.receiver !== kept { drop(id) }
    for exchange in running.values where exchange.receiver !== kept {
      if flushing { exchange.receiver.handOver(now: .now) }
      client.cancel(exchange.id)
    }
    if let scout = locations.scout, exchanges[scout] == nil { locations.endScout() }
  }

  /// Ends all exchanges except `kept`; no segment is left.
  func clear(except kept: SegmentExchange? = nil) {
    endExchanges(except: kept)
    table.removeAll()
  }

  /// The exchange goes on as that of another segment.
  private func move(_ receiver: SegmentExchange, to id: Int) {
    guard let exchange = exchanges.removeValue(forKey: receiver.segmentID) else { return }
    receiver.segmentID = id
    exchanges[id] = exchange
  }

  // MARK: Heads

  func judge(_ answer: Representation.Answer, asked: RemoteURL) -> Representation.Decision {
    // Of a GET only: another method may have become one on the way, and must not go to its target.
    if request.method == .get, (200..<300).contains(answer.head.status.code),
      locations.noteAnswer(from: answer.url, asked: asked, by: answer.mirror, now: .now)
    {
      sendUnplaced()
    }
    return driver.representation.judge(answer, &mirrors, &driver.retries.patience)
  }

  /// What is to be done after a refusal by `error`, or by `final` if there is no other URL.
  func refused(
    _ exchange: SegmentExchange, _ error: TransferError, final: TransferError
  ) -> SegmentVerdict {
    switch locations.noteRefusal(of: exchange.asked, by: exchange.mirror, now: .now) {
    case .expired: .expired(error)
    case .tooMany: .retry(error, after: nil)
    // A server that has served others and refuses this one finds them too many.
    case .final where representation.isConfirmed && mirrors[exchange.mirror].flightCount > 1:
      .retry(error, after: nil)
    case .final: .fail(final)
    }
  }

  func confirm(_ content: ContentVersion, by answer: Representation.Answer, begins: Bool) {
    driver.representation.confirm(content, by: answer, begins: begins, &mirrors)
  }

  func setLength(_ length: Int64, isReported: Bool = true) {
    table.setLength(length)
    if isReported { reportTotal() }
  }

  // MARK: Storing

  /// A rate limit holds a request back.
  func throttled() { table.throttled(now: .now) }

  /// Bytes have arrived.
  ///
  /// - Returns: where the segment ends; nil if nobody wants the bytes.
  func advance(_ id: Int, to position: Int64, now: ContinuousClock.Instant) -> Int64? {
    guard isRunning else { return nil }
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
  func handOver(_ handed: HandedBuffer, as range: ByteRange, by exchange: SegmentExchange) {
    guard exchange.generation == driver.pieces.generation else { return }
    driver.pieces.begin(table)
    let runs = table.handOver(range)
    let (id, mirror) = (exchange.segmentID, exchange.mirror)
    let generation = driver.pieces.generation
    store.store(handed, at: range.lowerBound, runs: runs, from: table.target.lowerBound) {
      [driver] result in
      // The bytes of an earlier beginning have been thrown away since.
      guard generation == driver.pieces.generation else { return }
      switch result {
      case .success: driver.fetcher.stored(range, runs: runs, by: id, of: mirror)
      case .failure(let failure): driver.fail(failure)
      }
    }
  }

  private func stored(_ range: ByteRange, runs: [ByteRange], by id: Int, of mirror: Int) {
    let added = table.stored(id, range, runs: runs, now: .now)
    driver.retries.patience.noteConnection()
    if added > 0 { monitor.emit(.received(byteCount: added)) }
    if mirrors.count > 1 {
      wholeCheck.noteStored(from: mirror)
      mirrors.answered(mirror)
      mirrors.measured(mirror, bytesPerSecond: table[id]?.rate(now: .now))
    }
    if driver.pieces.isActive {
      for run in runs { driver.pieces.noteArrival(of: run, from: mirror) }
      driver.pieces.verify()
    }
    plan()
  }

  // MARK: Hedges

  /// Looks for requests to hedge, again and again while there are requests.
  private func watchForHedges() {
    guard request.isHedged, !watchesForHedges, !representation.isSequential else { return }
    watchesForHedges = true
    let delay = HedgePlanner(roundTrip: table.roundTrip, patience: request.stallTimeout).delay
    client.schedule(after: delay / 2) { [weak driver] in
      guard let driver else { return }
      withExtendedLifetime(driver) { driver.fetcher.hedge(after: delay) }
    }
  }

  private func hedge(after delay: Duration) {
    watchesForHedges = false
    guard isRunning, !isIdle else { return }
    defer { watchForHedges() }
    guard representation.isConfirmed, !representation.isSequential, !locations.areUnknown,
      driver.body == nil
    else { return }
    let now = ContinuousClock.now
    let hedges = table.planHedges(
      now: now, after: delay,
      allowance: driver.retries.hedgeBudget.allowance(at: Array(locations.origins), now: now)
    ) { id in
      exchanges[id]?.receiver.isServed == true
    }
    driver.retries.hedgeBudget.noteRequests(0, hedges: hedges.count)
    for segment in hedges { send(segment) }
  }

  /// A request has failed.
  ///
  /// - Returns: whether it was a hedge, so that the request beside which it was sent goes on.
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

  // MARK: Ends

  func ended(
    _ receiver: SegmentExchange, _ completion: ExchangeCompletion, _ metrics: ExchangeMetrics
  ) {
    rawByteCount += metrics.rawByteCount
    let id = receiver.segmentID
    guard let exchange = exchanges[id], exchange.receiver === receiver else { return }
    drop(id)
    guard isRunning || driver.phase == .paused else { return }
    if metrics.newConnections == 0, metrics.timeToFirstByte > .zero {
      table.noteRoundTrip(metrics.timeToFirstByte)
    }
    if !receiver.verdict.isFailure || !dropFailedHedge(id) { conclude(receiver, completion) }
    // If it was to find the way, another one may.
    if locations.scout == id, exchanges[id] == nil {
      locations.endScout()
      sendUnplaced()
    }
    showConnections()
  }

  private func conclude(_ receiver: SegmentExchange, _ completion: ExchangeCompletion) {
    let id = receiver.segmentID
    switch receiver.verdict {
    case .superseded:
      if isRunning, hasNothing { launch() }
    case .fail(let error):
      if !driver.retries.failOver(id, error, after: nil, from: receiver.mirror) {
        driver.fail(error)
      }
    case .retry(let error, let delay):
      driver.retries.retry(id, error, after: delay, from: receiver.mirror)
    case .expired(let error): driver.retries.askElsewhere(id, error)
    case .unchanged(let head, let url): driver.leaveEarlier(head, from: url)
    case .none: bodyEnded(receiver, completion)
    }
  }

  private func bodyEnded(_ receiver: SegmentExchange, _ completion: ExchangeCompletion) {
    let id = receiver.segmentID
    guard let segment = table[id] else { return }
    switch completion {
    case .cancelled:
      // Only a body that nobody wants is ended like that: that of an empty file.
      table.remove(id)
      if table.isComplete { driver.finish() }
    case .failed(let error):
      if error.code == .unreadableBody, let failure = driver.body?.failure {
        return driver.fail(failure)
      }
      driver.retries.retry(id, TransferError(error), after: nil, from: receiver.mirror)
    // Nobody ends a body on purpose before the segment's end.
    case .stopped where segment.storedEnd < segment.end: retryCut(receiver)
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
          guard driver.phase != .ended else { return }
        }
        if !segment.isWhole, position < segment.end, !table.isComplete {
          // A server may send a shorter part than asked for.
          return sendRest(of: segment, after: position, receiver)
        }
      }
      if isRunning, representation.isSequential, !table.isComplete {
        // The whole has come without all that was wanted of it; never asked for without an end.
        guard driver.pieces.refutation != nil else { return retryCut(receiver) }
        table.remove(id)
        return fetchRefutedPieces()
      }
      table.remove(id)
      if table.isComplete { driver.finish() } else { plan() }
      // Nothing is under way and nothing was planned: an answer that brought nothing.
      if isRunning, hasNothing { launch() }
    }
  }

  /// Asks for what a part that was shorter than asked for lacks: the rest of a piece that has to come
  /// from one mirror at that mirror.
  private func sendRest(
    of segment: SegmentTable.Segment, after position: Int64, _ receiver: SegmentExchange
  ) {
    guard segment.suspectPiece != nil, isRunning else {
      table.remove(segment.id)
      return plan()
    }
    guard position > segment.start else { return retryCut(receiver) }
    table.fail(segment.id, isCounted: false)
    if let rest = table.retry(segment.id) { send(rest, to: receiver.mirror) } else { plan() }
  }

  /// A body without a declared length has ended.
  private func learnEnd(_ length: Int64) {
    if request.method == .get, let range = request.range, range.lowerBound >= length,
      let response = representation.response
    {
      let error = TransferError.beyondTheEnd(length, response.head, response.url)
      return driver.end(.failure(error), removes: true)
    }
    setLength(length)
    store.run { sink throws(FileFailure) in
      try sink.recordLength(length)
    } then: { [driver] result in
      // A file that is being finished needs no record any more.
      if case .failure(let failure) = result, driver.phase != .finishing { driver.fail(failure) }
    }
  }

  /// Asks for what has turned out wrong, where nothing is under way: by ranges where the server has them.
  func fetchRefutedPieces() {
    guard let error = driver.pieces.takeRefutation() else { return launch() }
    if representation.canSkip, !representation.haveRangesBeenRefused {
      driver.representation.useRanges()
    }
    if representation.isSequential {
      // All of it has to come again, which forgets how often the piece was wrong.
      refetchCount += 1
      guard refetchCount <= PieceTable.attemptLimit * mirrors.count else {
        return driver.fail(error)
      }
    }
    launch()
  }

  private func retryCut(_ receiver: SegmentExchange) {
    let index = receiver.mirror
    let error = TransferError(
      .connectionLost, locations[index].current ?? mirrors[index].url, "response cut short",
      isTransient: true)
    driver.retries.retry(receiver.segmentID, error, after: nil, from: index)
  }

  // MARK: Servers

  /// The mirror that the request for a segment goes to; the first if none is left.
  func nextMirror(for segment: SegmentTable.Segment) -> Int {
    // A piece that has to come from one mirror stays with it for as long as that can be asked.
    if segment.suspectPiece != nil, let mirror = segment.mirror, !mirrors[mirror].isRefused {
      return mirror
    }
    let others =
      segment.excludedMirrors.isEmpty ? nil : nextMirror(except: segment.excludedMirrors)
    return others ?? nextMirror() ?? 0
  }

  /// The mirror that a request goes to; nil if none is left.
  func nextMirror(except excluded: Set<Int> = []) -> Int? {
    guard mirrors.count > 1 else { return 0 }
    // A download can wait until it can be asked, which a reader would not.
    if let sole = mirrors.sole { return sole }
    return representation.canSpread(mirrors.trust)
      ? mirrors.choose(isUrgent: false, except: excluded, now: .now)
      : mirrors.contact(except: excluded, now: .now)
  }

  /// A mirror is not asked again, and the user is told.
  func exclude(_ index: Int, _ reason: String) {
    mirrors.exclude(index, reason: reason)
    monitor.emit(.mirrorExcluded(mirrors[index].url, reason: reason))
  }

  /// A mirror has served wrong bytes: nothing more of it is wanted.
  func excludeLiar(_ index: Int, _ reason: String) {
    guard mirrors.hasTrusted(besides: index) else { return }
    exclude(index, reason)
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
    guard mirrors.count > 1, !driver.pieces.isActive, store.canBeginAnew,
      case .refetch(let liar) = wholeCheck.fail(trusted: mirrors.trusted)
    else { return false }
    if let liar { exclude(liar, "what it serves has another checksum") }
    mirrors.sole = nextMirror()
    return true
  }

  // MARK: URLs

  private func sendUnplaced() {
    let waiting = locations.takeUnplaced()
    guard isRunning else { return }
    for id in waiting where exchanges[id] == nil {
      if let segment = table[id], !segment.isWaiting { send(segment) }
    }
  }

  private func sign() {
    guard let signer = request.signer, locations.beginSigning() else { return }
    signer.sign(request.url, name: request.name) { [driver] result in
      driver.client.perform { driver.fetcher.signerAnswered(result) }
    }
  }

  private func signerAnswered(_ result: Result<RemoteURL, URLSigningError>) {
    locations.endSigning()
    guard isRunning || driver.phase == .paused else { return }
    switch result {
    case .success(let url):
      locations.noteSigned(url, now: .now)
      sendUnplaced()
    case .failure(let failure):
      // Nobody waits for it: the last URL is used until it refuses.
      guard locations.areAwaited, isRunning else { return }
      let attempt = locations.noteSignerFailure()
      let error = TransferError(.other, request.url, failure.description, isTransient: true)
      guard attempt <= request.retryCount else { return driver.fail(error) }
      let delay = request.retryPolicy.delay(
        failures: attempt, retryAfter: nil, random: .random(in: 0..<1))
      monitor.emit(.retrying(error, attempt: attempt, after: delay))
      if isIdle { monitor.update { $0.state = .waiting } }
      client.schedule(after: delay) { [driver] in
        let fetcher = driver.fetcher
        if fetcher.isRunning, fetcher.locations.areAwaited { fetcher.sign() }
      }
    }
  }
}
