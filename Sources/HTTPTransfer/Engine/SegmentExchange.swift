internal import HTTPTransferCore
internal import HTTPTypes

/// One exchange of a transfer: takes its response, gathers the body's pieces and hands them to the
/// driver in large runs.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentExchange: ExchangeReceiver, @unchecked Sendable {
  /// The segment that it serves; another one once the server has answered with the whole.
  var segmentID: Int
  /// Which of the transfer's servers it asks.
  let mirror: Int
  var verdict = SegmentVerdict.none
  /// Whether the server was asked for its version on the condition that it is another one.
  var isConditional = false
  /// The URL that was asked.
  let asked: RemoteURL
  private(set) var exchangeID: ExchangeID?
  /// Whether the request is with the server, and nothing else delays the next byte.
  var isServed: Bool { isSent && !isPaused && !isHeld && !isThrottled }
  private var isSent = false
  private var isPaused = false
  private var isHeld = false
  /// Whether a rate limit holds the next piece back.
  private var isThrottled = false
  private let driver: TransferDriver
  private let pool: BufferPool
  /// Takes the body; nil before one is accepted.
  private var gatherer: BodyGatherer?
  private var lastHandOver = ContinuousClock.now

  /// The offset of the next byte to arrive; nil before a body is accepted.
  var position: Int64? { gatherer?.position }
  /// The beginning of the transfer to which the body belongs.
  private(set) var generation = 0
  /// Where the body ends, as the head says; nil where only its end will tell.
  private(set) var expectedEnd: Int64?

  /// Bytes are handed over after so long at the latest, so that progress shows and a crash costs
  /// little.
  private static let interval = Duration.milliseconds(200)

  init(
    driver: TransferDriver, segmentID: Int, mirror: Int, asked: RemoteURL, pool: BufferPool
  ) {
    self.driver = driver
    self.mirror = mirror
    self.segmentID = segmentID
    self.asked = asked
    self.pool = pool
  }

  /// The head was good: what follows are the bytes from `body.lowerBound`, of which those before
  /// `start` are not wanted.
  func acceptBody(_ body: ByteRange, isEndKnown: Bool, start: Int64) {
    generation = driver.pieces.generation
    gatherer = BodyGatherer(position: body.lowerBound, start: start, pool: pool)
    expectedEnd = isEndKnown ? body.upperBound : nil
  }

  // MARK: ExchangeReceiver

  func redirected(to url: RemoteURL, status: Int) {
    driver.fetcher.redirected(to: url, status: status, by: mirror)
  }

  func held(until moment: ContinuousClock.Instant?, transfer: ExchangeID) {
    isHeld = moment != nil
    driver.fetcher.held(until: moment)
  }

  func requestSent() { isSent = true }

  func receive(
    head: HTTPResponse, from url: RemoteURL, transfer: ExchangeID
  ) -> ExchangeDisposition {
    exchangeID = transfer
    return driver.receive(head, from: url, by: self)
  }

  func throttled() {
    isThrottled = true
    driver.fetcher.throttled()
  }

  func receive(body piece: UnsafeRawBufferPointer) -> ExchangeDisposition {
    isThrottled = false
    guard let gatherer else { return .discard }
    isPaused = exchangeID.map { driver.mustPause($0) } ?? false
    if isPaused { return .pause }
    var rest = gatherer.skip(piece)
    if rest.isEmpty { return .proceed }
    let now = ContinuousClock.now
    let arrived = gatherer.position + Int64(rest.count)
    guard let end = driver.fetcher.advance(segmentID, to: arrived, now: now) else { return .stop }
    while !rest.isEmpty, gatherer.position < end {
      if gatherer.gather(&rest, upTo: end) { handOver(now: now) }
    }
    // Who takes a body as it comes does not want to wait for more of it.
    if !driver.store.isRandomAccess || gatherer.position >= end
      || now - lastHandOver >= Self.interval
    {
      handOver(now: now)
    }
    guard gatherer.position >= end else { return .proceed }
    return rest.isEmpty && gatherer.position == expectedEnd ?? end ? .proceed : .stop
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    handOver(now: .now)
    // What it has brought counts before its end does.
    driver.store.follow { [self] in driver.fetcher.ended(self, completion, metrics) }
  }

  /// Has what is gathered stored.
  func handOver(now: ContinuousClock.Instant) {
    lastHandOver = now
    guard let (handed, range) = gatherer?.handOver() else { return }
    driver.fetcher.handOver(handed, as: range, by: self)
  }
}
