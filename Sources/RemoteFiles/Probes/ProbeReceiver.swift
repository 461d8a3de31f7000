internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes

/// Receives the answer to "what is this file now?".
///
/// The request is a range request that brings validators, length and first bytes in one round trip,
/// or a conditional one that confirms what is known.
///
/// `@unchecked Sendable`: created by one thread and handed to the client, it is used on the network
/// thread only.
final class ProbeReceiver: ExchangeReceiver, @unchecked Sendable {
  private let id: ProbeID
  private let prober: FileProber
  /// The version that the condition names, if there is one.
  private let known: RemoteVersion?
  private let asked: ByteRange?
  /// The index of the server that is asked.
  private let mirror: Int
  private let askedURL: RemoteURL
  private var outcome = Outcome.awaited
  private var fetchedByteCount = 0

  /// The result of the response.
  ///
  /// Its head decides, at most once: `awaited` becomes any other case. The end of the exchange
  /// carries that case out; `awaited` and `unusable` become `reported` then.
  private enum Outcome {
    /// No head has arrived: the exchange's end is reported as a failure.
    case awaited
    /// The head cannot be used; this is reported at the end, unless the exchange fails otherwise.
    case unusable(FileError)
    /// The failure was reported with the head; the body is of no interest.
    case reported
    /// A range brought no length: request the whole.
    case askWhole
    /// Ask the same question again immediately.
    case askAgain
    /// Ask the same question again in a second.
    case askLater
    /// This version is the answer, and was delivered.
    case answered(RemoteVersion)
    /// This version is the answer, and the body brings bytes of it. With `isAwaited`, the end of
    /// the mount waits for them.
    case storing(RemoteVersion, SegmentWriter, isAwaited: Bool)
  }

  init(
    id: ProbeID, prober: FileProber, known: RemoteVersion?, asked: ByteRange?, mirror: Int,
    askedURL: RemoteURL
  ) {
    self.id = id
    self.prober = prober
    self.known = known
    self.asked = asked
    self.mirror = mirror
    self.askedURL = askedURL
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    prober.context.recordHead(mirror: mirror)
    let verdict = ResponseVerdict(head, asked: asked, now: Int64(time(nil)))
    let content = ContentVersion(head.headerFields, completeLength: nil)
    if (200..<300).contains(head.status.code),
      head.headerFields.isDoubtful(for: prober.context.source.url),
      known?.compare(content) != .same, prober.doubts(content, to: id)
    {
      outcome = .unusable(
        FileError(.invalidResponse, ResponseFault.otherDocument))
      return .stop
    }
    switch verdict {
    case .part(let content, let range):
      guard let length = content.completeLength else {
        // Only the end of the whole body shows the length.
        outcome = .askWhole
        return .discard
      }
      if contradicts(content) { return .stop }
      if prober.wantsSecondOpinion(id, on: content, from: mirror) { return hearAgain() }
      if waitsForDate(content) { return .stop }
      return receivePart(content, range: range, length: length, from: url, exchange: exchange)
    case .whole(let content):
      if contradicts(content) { return .stop }
      if prober.wantsSecondOpinion(id, on: content, from: mirror) { return hearAgain() }
      if waitsForDate(content) { return .stop }
      return receiveWhole(content, from: url, exchange: exchange)
    case .notModified:
      guard let known else { break }
      // It may name the validators that it is about (RFC 9110 §15.4.5).
      var named = content
      named.contentCoding = known.content.contentCoding
      if known.content.compare(named) == .different {
        report(FileError(.invalidResponse, "HTTP 304 about another version"))
        return .discard
      }
      prober.adopter.confirm(known, by: mirror)
      return answer(known, from: url)
    case .unsatisfiable(let length?) where asked?.lowerBound == 0 && length == 0:
      // No range of an empty file can be satisfied. Its bytes are the same in all versions.
      if let known, known.length == 0 {
        prober.adopter.confirm(known, by: mirror)
        return answer(known, from: url)
      }
      let empty = ContentVersion(completeLength: 0)
      if contradicts(empty) { return .stop }
      if prober.wantsSecondOpinion(id, on: empty, from: mirror) { return hearAgain() }
      return answer(prober.adopter.adopt(empty, from: mirror), from: url)
    case .unsatisfiable where asked != nil:
      outcome = .askWhole
      return .discard
    case .unavailable(let status, let delay):
      if status >= 500 { _ = prober.context.recordUnavailable(askedURL, mirror: mirror) }
      // The body of a refusal may take long to arrive, and adds nothing to the status.
      report(prober.context.refusal(verdict, mirror: mirror), retryAfter: delay)
      return .discard
    case .missing, .denied, .rejected:
      if prober.mayAskAnotherURL(id, after: askedURL) {
        outcome = .askAgain
        return .discard
      }
    case .preconditionFailed:
      // The question had no condition.
      report(FileError(.rejected, StatusPhrase.text(of: 412), contact: .refused))
      return .discard
    case .unsatisfiable, .invalid:
      break
    }
    report(prober.context.refusal(verdict, mirror: mirror))
    // Neither the body after an invalid head nor its connection can be trusted.
    if case .invalid = verdict { return .stop }
    return .discard
  }

  /// Whether the answer describes a file that cannot be the wanted one; if so, its server is not
  /// asked again.
  private func contradicts(_ content: ContentVersion) -> Bool {
    guard let reason = prober.adopter.objection(to: content, from: mirror) else { return false }
    prober.context.refuseMirror(mirror, reason)
    // A retry does not help.
    outcome = .unusable(FileError(.refused, reason))
    return true
  }

  private func hearAgain() -> ExchangeDisposition {
    outcome = .askAgain
    return .stop
  }

  /// Whether the answer is from the same second in which the file was modified.
  ///
  /// If so, the question is asked again a second later, when the date proves something.
  private func waitsForDate(_ content: ContentVersion) -> Bool {
    guard content.isTooFresh, known?.content.compare(content) != .same,
      prober.mayAskLater(id, after: FetchConstants.freshAnswerDelay)
    else { return false }
    outcome = .askLater
    return true
  }

  func connecting() { prober.connecting(id) }

  func requestSent() { prober.sent(id) }

  func held(until moment: ContinuousClock.Instant?, exchange: ExchangeID) {
    if let moment { prober.held(id, until: moment, from: mirror, exchange: exchange) }
  }

  private func receivePart(
    _ content: ContentVersion, range: ByteRange, length: Int64, from url: RemoteURL,
    exchange: ExchangeID
  ) -> ExchangeDisposition {
    let version = prober.adopter.adopt(content, from: mirror)
    version.markRanged()
    // The part of the requested range that exists and is absent from the cache.
    let start = asked?.lowerBound ?? 0
    let end = min(range.upperBound, asked?.upperBound ?? length, length)
    guard let hole = version.firstHole(in: start..<max(start, end)) else {
      return answer(version, from: url)
    }
    // The waiters will read these bytes: the segment must be entered before they are answered.
    let segment = version.adoptSegment(
      range: hole.lowerBound..<end, isWhole: false, exchange: exchange, mirror: mirror)
    let writer = SegmentWriter(
      version: version, id: segment, exchange: exchange, body: range, start: hole.lowerBound)
    prober.environment.firstBytes.began()
    outcome = .storing(version, writer, isAwaited: true)
    tell(version, from: url)
    return .proceed
  }

  private func receiveWhole(
    _ content: ContentVersion, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    let version = prober.adopter.adopt(content, from: mirror)
    // One such answer proves nothing if ranges have worked.
    let haveRangesWorked = version.hasCachedBytes && version.length != nil
    if asked != nil, !haveRangesWorked { version.markSingleStream() }
    guard !version.isComplete, !version.isStreaming, asked == nil || !haveRangesWorked else {
      return stop(version, from: url)
    }
    if let length = content.completeLength, length > FileSettings.smallFileByteCount {
      // No read has asked for its bytes yet.
      return stop(version, from: url)
    }
    let segment = version.adoptSegment(
      range: 0..<(content.completeLength ?? Int64.max), isWhole: true, exchange: exchange,
      mirror: mirror)
    let writer = SegmentWriter(
      version: version, id: segment, exchange: exchange,
      body: content.completeLength.map { 0..<$0 }, start: 0)
    outcome = .storing(version, writer, isAwaited: false)
    if content.completeLength == nil {
      // The end of the body shows the length; for a short body it is worth the wait.
      prober.context.recordAnswer(from: url, asked: askedURL, mirror: mirror)
      prober.answerProvisionally(id, version)
    } else {
      tell(version, from: url)
    }
    return .proceed
  }

  private func answer(_ version: RemoteVersion, from url: RemoteURL) -> ExchangeDisposition {
    outcome = .answered(version)
    tell(version, from: url)
    return .discard
  }

  private func stop(_ version: RemoteVersion, from url: RemoteURL) -> ExchangeDisposition {
    _ = answer(version, from: url)
    return .stop
  }

  /// Answers the question with `version`.
  private func tell(_ version: RemoteVersion, from url: RemoteURL) {
    prober.context.recordAnswer(from: url, asked: askedURL, mirror: mirror)
    prober.end(id, .success(version))
  }

  private var writer: SegmentWriter? {
    if case .storing(_, let writer, _) = outcome { writer } else { nil }
  }

  func throttled() { writer?.throttled() }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition {
    if let writer, !writer.hasRoom() { return .pause }
    fetchedByteCount += body.count
    prober.context.recordFetched(body.count)
    return writer?.take(body) ?? .discard
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    prober.context.recordRequests(metrics)
    switch outcome {
    case .storing(let version, let writer, let isAwaited):
      version.recordFetched(fetchedByteCount)
      writer.finish(completion, failure: nil) { [prober, id] in
        prober.end(id, .success(version))
        if isAwaited { prober.environment.firstBytes.ended() }
      }
    case .answered(let version): prober.end(id, .success(version))
    case .askLater: prober.send(id, after: FetchConstants.freshAnswerDelay)
    case .askWhole: prober.send(id, whole: true)
    case .askAgain: prober.send(id)
    case .reported: break
    case .awaited:
      reportEnd(completion, FileError(.timedOut, "no answer from the server"), metrics)
    case .unusable(let error): reportEnd(completion, error, metrics)
    }
  }

  /// Reports the failure of the exchange, or else `failure`.
  private func reportEnd(
    _ completion: ExchangeCompletion, _ failure: FileError, _ metrics: ExchangeMetrics
  ) {
    switch completion {
    case .failed(let error):
      _ = prober.context.recordFailure(error, asked: askedURL, mirror: mirror, metrics)
      report(FileError(error))
    case .finished, .stopped, .cancelled: report(failure)
    }
  }

  private func report(_ error: FileError, retryAfter: Duration? = nil) {
    outcome = .reported
    prober.failed(id, error, from: mirror, retryAfter: retryAfter)
  }
}
