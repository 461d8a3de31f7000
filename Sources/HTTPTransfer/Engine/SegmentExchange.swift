internal import HTTPTransferCore
internal import HTTPTypes

/// One exchange of a transfer: takes its response, gathers the body's pieces and hands them to the
/// driver in large runs.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentExchange: ExchangeReceiver, @unchecked Sendable {
  /// What is to be done when the exchange has ended, where that is not what its body says.
  enum Verdict {
    /// The body decides.
    case none
    case fail(TransferError)
    case retry(TransferError, after: Duration?)
    /// The URL that was asked refuses, and another one is to be asked.
    case expired(TransferError)
    /// The server still has the version of the file that is there.
    case unchanged(HTTPResponse, from: RemoteURL)
    /// The exchange was ended because everything begins anew.
    case superseded

    var isFailure: Bool {
      switch self {
      case .fail, .retry, .expired: true
      case .none, .unchanged, .superseded: false
      }
    }
  }

  /// The segment that it serves; another one once the server has answered with the whole.
  var segmentID: Int
  /// Which of the transfer's servers it asks.
  let mirror: Int
  var verdict = Verdict.none
  /// Whether the server was asked for its version on the condition that it is another one.
  var isConditional = false
  /// The URL that was asked.
  let asked: RemoteURL
  private(set) var exchangeID: ExchangeID?
  /// Whether the request is with the server, and nothing else delays the next byte.
  var isServed: Bool { isSent && !isPaused && !isHeld }
  private var isSent = false
  private var isPaused = false
  private var isHeld = false
  private let driver: TransferDriver
  private let pool: BufferPool
  private var buffer: GatherBuffer?
  private var bufferedByteCount = 0
  private var bufferStart: Int64 = 0
  private var lastHandOver = ContinuousClock.now

  /// The offset of the next byte to arrive; nil before a body is accepted.
  private(set) var position: Int64?
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

  deinit {
    if let buffer { pool.giveBack(buffer) }
  }

  /// The head was good: what follows are the bytes from `body.lowerBound`, of which those before
  /// `start` are not wanted.
  func acceptBody(_ body: ByteRange, isEndKnown: Bool, start: Int64) {
    position = body.lowerBound
    expectedEnd = isEndKnown ? body.upperBound : nil
    bufferStart = max(body.lowerBound, start)
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

  func throttled() { driver.fetcher.throttled() }

  func receive(body piece: UnsafeRawBufferPointer) -> ExchangeDisposition {
    guard var position else { return .discard }
    isPaused = exchangeID.map { driver.mustPause($0) } ?? false
    if isPaused { return .pause }
    defer { self.position = position }
    var piece = piece[...]
    if position < bufferStart {
      let skipped = min(piece.count, Int(bufferStart - position))
      position += Int64(skipped)
      piece = piece.dropFirst(skipped)
      if piece.isEmpty { return .proceed }
    }
    let now = ContinuousClock.now
    guard
      let end = driver.fetcher.advance(segmentID, to: position + Int64(piece.count), now: now)
    else { return .stop }
    let wanted = Int(max(0, min(Int64(piece.count), end - position)))
    var rest = piece.prefix(wanted)
    while !rest.isEmpty {
      let buffer = self.buffer ?? pool.take()
      self.buffer = buffer
      let part = rest.prefix(buffer.capacity - bufferedByteCount)
      UnsafeMutableRawBufferPointer(rebasing: buffer.bytes[bufferedByteCount...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
      bufferedByteCount += part.count
      position += Int64(part.count)
      rest = rest.dropFirst(part.count)
      if bufferedByteCount >= buffer.capacity { handOver(now: now) }
    }
    // Who takes a body as it comes does not want to wait for more of it.
    if !driver.store.isRandomAccess || position >= end || now - lastHandOver >= Self.interval {
      handOver(now: now)
    }
    guard position >= end else { return .proceed }
    return wanted == piece.count && position == expectedEnd ?? end ? .proceed : .stop
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    handOver(now: .now)
    // What it has brought counts before its end does.
    driver.store.follow { [self] in driver.fetcher.ended(self, completion, metrics) }
  }

  /// Has what is gathered stored.
  func handOver(now: ContinuousClock.Instant) {
    lastHandOver = now
    guard bufferedByteCount > 0, let buffer else { return }
    let range = ByteRange(offset: bufferStart, byteCount: Int64(bufferedByteCount))
    self.buffer = nil
    bufferStart = range.upperBound
    bufferedByteCount = 0
    driver.fetcher.handOver(
      HandedBuffer(buffer, byteCount: Int(range.byteCount), pool: pool), as: range, by: self)
  }
}
