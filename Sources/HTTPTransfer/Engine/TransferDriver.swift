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
  let store: BodyStore
  var table: SegmentTable
  var phase = Phase.idle

  /// The version that every response must be of; nil before the first one.
  var version: ContentVersion?
  /// Whether a response of this run has confirmed ``version``.
  var isConfirmed = false
  /// The version of the whole file that is at the destination already; the server is asked whether it
  /// has another one.
  var earlier: ContentVersion?
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
  var hasFinished = false
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
  /// Counts the new beginnings, which make what is under way on other threads void.
  var generation = 0
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
  /// How many requests may be hedged.
  var hedgeBudget = HedgeBudget()
  /// Whether a look for requests to hedge is due.
  var watchesForHedges = false
  /// The total as reported so far.
  var reportedTotal: Int64?

  var exchanges: [Int: (id: ExchangeID, receiver: SegmentExchange)] = [:]
  /// What the request sends.
  var body: BodyReader?
  var rawByteCount: Int64 = 0
  private(set) var startedAt = ContinuousClock.now
  /// Whether the cancellation that came while the disk was busy removes what is there.
  var pendingCancel: (isSilent: Bool, removes: Bool)?

  /// How often a transfer may begin anew because the remote file has changed: once for an upload
  /// under way, once more for good measure, and then it is a server that cannot make up its mind.
  static let restartLimit = 3

  init(request: Request, client: HTTPClient, monitor: TransferMonitor, sink: any BodySink) {
    self.request = request
    self.client = client
    self.monitor = monitor
    var mayWait = request.body != nil || request.checksum != nil
    if case .file = request.destination { mayWait = true }
    store = BodyStore(sink: sink, client: client, mayWait: mayWait)
    let isSigned = request.signer != nil && request.method == .get
    // The signer makes URLs of the first one.
    let others = request.method == .get && !isSigned ? request.mirrors : []
    mirrors = MirrorSet(
      urls: [request.url] + others, trust: Self.trust(of: request, into: store),
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
    store.run { [request, monitor] sink throws(FileFailure) in
      try Preparation(sink, request: request, monitor: monitor)
    } then: { [self] result in
      phase = .running
      if takePendingCancel() { return }
      switch result {
      case .success(let preparation): prepared(preparation)
      case .failure(let failure): fail(transferError(failure))
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
    // What the pause has cut is stored first, so that it is not fetched again.
    store.follow { [self] in
      guard phase == .running, exchanges.isEmpty, table.segments.isEmpty else { return }
      if table.isComplete, isConfirmed { finish() } else { launch() }
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
  func unpauseAll() {
    for exchange in exchanges.values { client.unpause(exchange.id) }
  }

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
    } else if !hasCondition(request) {
      earlier = preparation.earlierVersion
    }
    table.recall(connections: client.learnedConnections(at: request.url.normalizedOrigin))
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
    sendSuspects()
    for segment in table.plan(except: suspectRanges, now: .now) { send(segment) }
  }

  func send(_ segment: SegmentTable.Segment) {
    let index = nextMirror(for: segment)
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
    receiver.isConditional = setCondition(of: &exchange)
    let id = client.start(exchange, receiver: receiver)
    exchanges[segment.id] = (id, receiver)
    mirrors.began(index)
    hedgeBudget.noteRequests(1, hedges: 0)
    showConnections()
    watchForHedges()
  }

  /// An exchange is over, or what comes of it is not wanted.
  func drop(_ id: Int) {
    guard let exchange = exchanges.removeValue(forKey: id) else { return }
    mirrors.ended(exchange.receiver.mirror)
  }

  func showConnections() {
    let count = table.activeCount
    monitor.update { $0.connections = count }
  }
}
