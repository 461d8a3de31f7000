internal import HTTPTransferCore
internal import HTTPTypes

/// Decides what the responses and bytes of a transfer's exchanges mean.
///
/// Every method is called on the network thread. Each exchange holds its owner until its end.
protocol SegmentExchangeOwner: AnyObject, Sendable {
  /// Decides what the head of a response means, before the first byte of its body.
  func receive(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) -> ExchangeDisposition

  /// Whether an exchange must not deliver more for now.
  func mustPause(_ exchange: SegmentExchange) -> Bool

  /// Records that bytes up to `position` have arrived.
  ///
  /// - Returns: the end of the segment; nil if the bytes are not wanted.
  func advance(
    _ exchange: SegmentExchange, to position: Int64, now: ContinuousClock.Instant
  ) -> Int64?

  /// Stores the bytes `range`, which an exchange has gathered in a buffer.
  func enqueue(_ handed: HandedBuffer, as range: ByteRange, by exchange: SegmentExchange)

  /// Handles an event of an exchange that brings no bytes.
  func note(_ event: SegmentExchange.Event, of exchange: SegmentExchange)

  /// Called when an exchange has ended and all its bytes are stored.
  func ended(
    _ exchange: SegmentExchange, _ completion: ExchangeCompletion, _ metrics: ExchangeMetrics)
}

/// One exchange of a transfer.
///
/// It takes the response, gathers the pieces of the body and hands them to its owner in large runs.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentExchange: ExchangeReceiver, @unchecked Sendable {
  enum Event {
    case redirected(to: RemoteURL, status: Int)
    /// The server asked to wait until then; nil if the request is being sent now.
    case held(until: ContinuousClock.Instant?)
    /// A rate limit holds the body back.
    case throttled
  }

  /// The segment that it serves; another one after the server answered with the whole.
  var segmentID: Int
  /// The index of its server.
  let mirror: Int
  var verdict = SegmentVerdict.none
  /// Whether the request has the condition that there is another version.
  var isConditional = false
  /// The URL of the request.
  let asked: RemoteURL
  /// Set before the client calls any method.
  var exchangeID: ExchangeID?
  /// Whether the request is with the server, and nothing else delays the next byte.
  var isServed: Bool { isSent && !isPaused && !isHeld && !isThrottled }
  private var isSent = false
  private var isPaused = false
  private var isHeld = false
  /// Whether a rate limit holds the next piece back.
  private var isThrottled = false
  private let owner: any SegmentExchangeOwner
  private let store: BodyStore
  private let client: ExchangeClient
  /// Takes the body; nil before one is accepted.
  private var gatherer: BodyGatherer?
  private var lastHandOver = ContinuousClock.now
  /// Decodes the body; nil if the body has no coding, and after the end of the decoding.
  private var decoder: BodyDecoder?
  /// Whether the coded body may be empty, because its head said where it ends.
  private var mayBeEmpty = false
  private var hasCodedBytes = false
  /// How the exchange ends, if the decoding decided that.
  private var outcome: ExchangeCompletion?
  /// The metrics of an exchange that has ended while its body is still being decoded.
  private var endMetrics: ExchangeMetrics?

  /// The offset of the next byte to arrive; nil before a body is accepted.
  var position: Int64? { gatherer?.position }
  /// The generation of the transfer to which the body belongs.
  private(set) var generation = 0
  /// The end of the body according to its head; nil if the head does not tell it.
  private(set) var expectedEnd: Int64?

  /// The maximum interval between two hand-overs, so that progress shows and a crash loses little.
  private static let interval = Duration.milliseconds(200)

  init(
    owner: any SegmentExchangeOwner, store: BodyStore, segmentID: Int, mirror: Int,
    asked: RemoteURL, client: ExchangeClient
  ) {
    self.owner = owner
    self.store = store
    self.mirror = mirror
    self.segmentID = segmentID
    self.asked = asked
    self.client = client
  }

  /// Accepts the body after a good head.
  ///
  /// - Parameters:
  ///   - body: the offsets of the body's bytes.
  ///   - isEndKnown: whether the head tells where the body ends.
  ///   - start: the first wanted byte; earlier ones are skipped.
  ///   - generation: the generation of the transfer to which they belong.
  func acceptBody(_ body: ByteRange, isEndKnown: Bool, start: Int64, generation: Int) {
    self.generation = generation
    gatherer = BodyGatherer(position: body.lowerBound, start: start, pool: client.buffers)
    expectedEnd = isEndKnown ? body.upperBound : nil
  }

  /// Decodes the accepted body by `codings`, at least one.
  ///
  /// - Parameters:
  ///   - codings: the codings in the order in which they were applied.
  ///   - mayBeEmpty: whether an empty body is complete.
  func decode(_ codings: [ContentCoding], mayBeEmpty: Bool) {
    decoder = BodyDecoder(codings, client: client, owner: self)
    self.mayBeEmpty = mayBeEmpty
  }

  /// Continues the body, because there may be room again.
  func resume() {
    if let decoder { return decoder.resume() }
    if let exchangeID { client.unpause(exchangeID) }
  }

  // MARK: ExchangeReceiver

  func redirected(to url: RemoteURL, status: Int) {
    owner.note(.redirected(to: url, status: status), of: self)
  }

  func held(until moment: ContinuousClock.Instant?, exchange: ExchangeID) {
    isHeld = moment != nil
    owner.note(.held(until: moment), of: self)
  }

  func requestSent() { isSent = true }

  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    owner.receive(head, from: url, by: self)
  }

  func throttled() {
    isThrottled = true
    owner.note(.throttled, of: self)
  }

  func receive(body piece: UnsafeRawBufferPointer) -> ExchangeDisposition {
    isThrottled = false
    guard gatherer != nil else { return .discard }
    guard outcome == nil else { return .stop }
    if let decoder {
      hasCodedBytes = true
      isPaused = !decoder.add(piece)
      return isPaused ? .pause : .proceed
    }
    isPaused = owner.mustPause(self)
    return isPaused ? .pause : take(piece)
  }

  /// Takes a piece of the body, decoded if it was coded.
  private func take(_ piece: UnsafeRawBufferPointer) -> ExchangeDisposition {
    guard let gatherer else { return .discard }
    var rest = gatherer.skip(piece)
    if rest.isEmpty { return .proceed }
    let now = ContinuousClock.now
    let arrived = gatherer.position + Int64(rest.count)
    guard let end = owner.advance(self, to: arrived, now: now) else { return .stop }
    while !rest.isEmpty, gatherer.position < end {
      if gatherer.gather(&rest, upTo: end) { enqueue(now: now) }
    }
    // The consumer of a stream must not wait for more bytes.
    if !store.isRandomAccess || gatherer.position >= end
      || now - lastHandOver >= Self.interval
    {
      enqueue(now: now)
    }
    guard gatherer.position >= end else { return .proceed }
    return rest.isEmpty && gatherer.position == expectedEnd ?? end ? .proceed : .stop
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    guard let decoder, case .finished = completion else {
      return conclude(outcome ?? completion, metrics)
    }
    endMetrics = metrics
    decoder.end()
  }

  private func conclude(_ completion: ExchangeCompletion, _ metrics: ExchangeMetrics) {
    decoder?.cancel()
    decoder = nil
    enqueue(now: .now)
    // Its bytes must count before its end does.
    store.follow { [self] in owner.ended(self, completion, metrics) }
  }

  /// Ends the decoding of a body, which may have arrived completely.
  func endDecoding() { endDecoding(with: .cancelled) }

  private func endDecoding(with completion: ExchangeCompletion) {
    guard decoder != nil else { return }
    decoder?.cancel()
    decoder = nil
    outcome = completion
    // As for any exchange, the end comes after this call: the caller may be about to start over.
    if let endMetrics { return client.perform { [self] in conclude(completion, endMetrics) } }
    if let exchangeID { client.cancel(exchangeID) }
  }

  /// Hands the gathered bytes to the owner, which stores them.
  func enqueue(now: ContinuousClock.Instant) {
    lastHandOver = now
    guard let (handed, range) = gatherer?.enqueue() else { return }
    owner.enqueue(handed, as: range, by: self)
  }
}

// MARK: - BodyDecoderOwner

extension SegmentExchange: BodyDecoderOwner {
  func mayTakeDecoded() -> Bool { !owner.mustPause(self) }

  func take(decoded piece: UnsafeRawBufferPointer) -> Bool {
    switch take(piece) {
    case .proceed: break
    case .discard, .pause, .stop: endDecoding(with: .stopped)
    }
    return decoder != nil
  }

  func decoderHasRoom() {
    if let exchangeID { client.unpause(exchangeID) }
  }

  func decodingEnded(unfinished: ContentCoding?) {
    let mayBeEmpty = mayBeEmpty || endMetrics?.isMultiplexed == true
    guard let unfinished, hasCodedBytes || !mayBeEmpty else {
      return endDecoding(with: .finished)
    }
    let detail = "the \(unfinished.rawValue) data ends too early"
    endDecoding(with: .failed(ExchangeError(code: .truncated, url: asked, detail: detail)))
  }

  func decodingFailed(_ failure: DecodingFailure) {
    var code = ExchangeError.Code.malformedResponse
    if case .noMemory = failure { code = .outOfResources }
    endDecoding(
      with: .failed(ExchangeError(code: code, url: asked, detail: failure.description)))
  }
}
