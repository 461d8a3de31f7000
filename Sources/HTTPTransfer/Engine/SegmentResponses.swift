internal import HTTPTransferCore
internal import HTTPTypes

/// Decides what the responses of one transfer mean, and records what they tell about the file.
///
/// `@unchecked Sendable`: used on the network thread only.
final class SegmentResponses: @unchecked Sendable {
  private let request: Request
  private let fetcher: SegmentFetcher
  private let store: BodyStore
  private let monitor: TransferMonitor

  init(
    _ request: Request, fetcher: SegmentFetcher, store: BodyStore, monitor: TransferMonitor
  ) {
    self.request = request
    self.fetcher = fetcher
    self.store = store
    self.monitor = monitor
  }

  /// Decides what a response's head means for the transfer, before the first byte of its body.
  ///
  /// - Parameters:
  ///   - head: the head.
  ///   - url: the source of the response.
  ///   - exchange: the exchange that received it.
  ///   - isRunning: whether requests may be sent.
  ///   - onFailure: called if the destination fails to begin.
  /// - Returns: what to do with the body.
  /// - Throws: why the transfer fails because of it.
  func receive(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange, isRunning: Bool,
    onFailure: @escaping @Sendable (FileFailure) -> Void
  ) throws(TransferError) -> ExchangeDisposition {
    guard let segment = fetcher.table[exchange.segmentID] else { return .stop }
    let answer = Representation.Answer(
      head: head, url: url, range: segment.isWhole ? nil : segment.start..<segment.end,
      mirror: exchange.mirror, isConditional: exchange.isConditional)
    let decision = fetcher.judge(answer)
    if case .reject(let verdict, let disposition) = decision, let error = verdict.complaint,
      fetcher.servers.locations.recordFailure(
        of: exchange.asked, by: exchange.mirror, now: .now)
    {
      // The redirects may lead elsewhere now: this answer says nothing about the file yet.
      exchange.verdict = .expired(error)
      return disposition
    }
    // Only for GET: a redirect may have turned another method into GET, and later requests of that
    // method must not go to its target.
    if request.method == .get, (200..<300).contains(head.status.code),
      fetcher.servers.locations.recordAnswer(
        from: url, asked: exchange.asked, by: exchange.mirror, now: .now)
    {
      fetcher.sendUnplaced(isRunning: isRunning)
    }
    switch decision {
    case .reject(let verdict, let disposition):
      exchange.verdict = verdict
      return disposition
    case .refused(let error, let final):
      exchange.verdict = fetcher.servers.verdict(
        onRefusalOf: exchange.asked, by: exchange.mirror, error, final: final,
        isConfirmed: fetcher.representation.isConfirmed)
      return .discard
    case .askWhole(let disposition):
      exchange.verdict = .superseded
      fetcher.clear(except: exchange)
      return disposition
    case .take(let body, let content, let acceptance):
      guard try accept(acceptance, body, content, answer, by: exchange, onFailure: onFailure)
      else { return .stop }
      let disposition = take(body, isWhole: segment.isWhole, by: exchange, isRunning: isRunning)
      decode(answer, by: exchange)
      return disposition
    }
  }

  /// Records a good response.
  ///
  /// - Returns: whether its body is wanted.
  private func accept(
    _ acceptance: Representation.Acceptance, _ body: Representation.Body,
    _ content: ContentVersion, _ answer: Representation.Answer, by exchange: SegmentExchange,
    onFailure: @escaping @Sendable (FileFailure) -> Void
  ) throws(TransferError) -> Bool {
    if case .confirmed = acceptance { return true }
    if case .startsOver = acceptance {
      try fetcher.forget(
        "the remote file has changed since the partial file was begun", except: exchange)
      if case .part = body {
        exchange.verdict = .superseded
        return false
      }
      fetcher.makeWhole(exchange)
    }
    let begins = if case .agrees = acceptance { false } else { true }
    fetcher.confirm(content, by: answer, begins: begins)
    monitor.emit(.responded(answer.head, from: answer.url))
    guard begins else { return true }
    let target = fetcher.table.target
    let wanted = content.completeLength.map { length in
      max(0, min(target.upperBound, length) - min(target.lowerBound, length))
    }
    store.begin(version: content.provable, wantedByteCount: wanted) { result in
      if case .failure(let failure) = result { onFailure(failure) }
    }
    // An immediate failure has ended the transfer and all its segments.
    return fetcher.table[exchange.segmentID] != nil
  }

  /// Decodes the body of an accepted response if it is coded and the request wants that.
  private func decode(_ answer: Representation.Answer, by exchange: SegmentExchange) {
    // A response without a body has the fields that one with a body would have.
    guard request.decodesContent, request.method != .head, answer.head.status.code != 204,
      exchange.position != nil,
      let codings = try? ContentCoding.list(of: answer.head.headerFields), !codings.isEmpty
    else { return }
    let fields = answer.head.headerFields
    let isChunked = fields[.transferEncoding]?.lowercased().contains("chunked") == true
    exchange.decode(codings, mayBeEmpty: fields[.contentLength] != nil || isChunked)
  }

  private func take(
    _ body: Representation.Body, isWhole: Bool, by exchange: SegmentExchange, isRunning: Bool
  ) -> ExchangeDisposition {
    let generation = fetcher.pieces.generation
    switch body {
    case .part(let range, let length):
      fetcher.representation.recordRange()
      fetcher.reportTotal(length: fetcher.table.isLengthKnown ? nil : length)
      guard let segment = fetcher.table[exchange.segmentID] else { return .stop }
      exchange.acceptBody(
        range, isEndKnown: true, start: segment.start, generation: generation)
      if isRunning { fetcher.plan() }
    case .whole(let length):
      if !isWhole {
        // One stream brings everything; the other requests would bring the same bytes.
        fetcher.endExchanges(except: exchange)
        fetcher.makeWhole(exchange)
      }
      fetcher.reportTotal(length: fetcher.table.isLengthKnown ? nil : length)
      exchange.acceptBody(
        0..<(length ?? .max), isEndKnown: length != nil,
        start: fetcher.table.target.lowerBound, generation: generation)
    case .nothing:
      fetcher.endExchanges(except: exchange)
      fetcher.reportTotal(length: 0)
      return .discard
    case .reply:
      if request.method == .head { fetcher.table.setLength(0) }
      exchange.acceptBody(
        0..<Int64.max, isEndKnown: false, start: 0, generation: generation)
    }
    return .proceed
  }

  /// Records the length, which became known at the end of a body that did not declare it.
  ///
  /// - Parameters:
  ///   - length: the length.
  ///   - exchange: the exchange that brought the body.
  ///   - onFailure: called if the destination cannot record it.
  /// - Returns: whether the transfer continues.
  func learnLength(
    _ length: Int64, by exchange: SegmentExchange,
    onFailure: @escaping @Sendable (FileFailure) -> Void
  ) -> Bool {
    fetcher.reportTotal(length: length)
    store.run { sink throws(FileFailure) in
      try sink.recordLength(length)
    } then: { result in
      if case .failure(let failure) = result { onFailure(failure) }
    }
    return fetcher.table[exchange.segmentID] != nil
  }
}
