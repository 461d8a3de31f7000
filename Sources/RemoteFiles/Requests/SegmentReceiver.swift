internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes

/// Receives the response to a request for bytes of one version.
///
/// It checks the head against the pinned version before the first byte, then writes the body.
///
/// `@unchecked Sendable`: created by one thread and handed to the client, it is used on the network
/// thread only.
final class SegmentReceiver: ExchangeReceiver, @unchecked Sendable {
  private let version: RemoteVersion
  private let segment: Segment
  private var writer: SegmentWriter?
  private var failure: FileError?
  private var retryAfter: Duration?
  private var fetchedByteCount = 0

  /// The requested URL: a redirect's target, one from the signer, or the source itself.
  private let asked: RemoteURL
  /// Whether that URL is refused, and another one is to be requested.
  private var hasExpired = false
  /// Why the bytes of this server are not the version's.
  private var contradiction: String?
  /// Whether a better server is to be asked.
  private var isDeclined = false
  private var firstBodyAt: ContinuousClock.Instant?

  private var ends: RequestEnds { RequestEnds(owner: version) }

  init(version: RemoteVersion, segment: Segment, asked: RemoteURL) {
    self.version = version
    self.segment = segment
    self.asked = asked
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    version.file.recordHead(mirror: segment.mirror)
    let range = segment.isWhole ? nil : segment.start..<segment.end
    let verdict = ResponseVerdict(head, asked: range, now: Int64(time(nil)))
    let disposition = take(verdict, head.headerFields, from: url, exchange: exchange)
    if writer == nil, !isDeclined, verdict.isUseless,
      version.file.recordUnavailable(asked, mirror: segment.mirror)
    {
      // The redirects may lead elsewhere now: this answer says nothing about the file yet.
      hasExpired = true
      contradiction = nil
    }
    return disposition
  }

  private func take(
    _ verdict: ResponseVerdict, _ fields: HTTPFields, from url: RemoteURL, exchange: ExchangeID
  ) -> ExchangeDisposition {
    switch verdict {
    case .part(let content, let range):
      guard accept(content, fields) else { return .stop }
      version.file.recordAnswer(from: url, asked: asked, mirror: segment.mirror)
      writer = SegmentWriter(
        version: version, id: segment.id, exchange: exchange, body: range, start: segment.start)
      return .proceed
    case .whole(let content):
      guard accept(content, fields) else { return .stop }
      version.file.recordAnswer(from: url, asked: asked, mirror: segment.mirror)
      return receiveWhole(content, exchange: exchange)
    case .unsatisfiable, .preconditionFailed:
      // The file no longer reaches as far.
      if version.file.isOneOfSeveral(segment.mirror) {
        contradiction = "the range is beyond the end of its file"
      } else {
        failure = FileError(.stale, "the range is beyond the end of the remote file")
      }
    case .missing, .denied: recordRefusal(verdict)
    case .unavailable(let status, let delay):
      failure = FileError(verdict)
      // The redirects may lead to a server that can serve now, and that asked for no delay.
      let isElsewhere = version.file.servers.placeOrigin(ofMirror: segment.mirror) != asked.origin
      let hasMoved =
        (status >= 500 || isElsewhere)
        && version.file.recordUnavailable(asked, mirror: segment.mirror)
      retryAfter = hasMoved ? nil : delay
    case .notModified:
      failure = FileError(verdict)
    case .rejected, .invalid:
      failure = FileError(verdict)
      // Neither the body after such a head nor its connection can be trusted.
      return .stop
    }
    return .discard
  }

  private func recordRefusal(_ verdict: ResponseVerdict) {
    switch version.file.recordRefusal(of: asked, mirror: segment.mirror) {
    case .expired: hasExpired = true
    case .tooMany: failure = tooMany(verdict)
    case .final: refuse(verdict)
    }
  }

  /// Handles a refusal that is not due to an expired URL.
  private func refuse(_ verdict: ResponseVerdict) {
    if case .denied(403) = verdict, version.isServed(besides: segment.id) {
      // A server that serves other requests at the same time limits their number.
      failure = tooMany(verdict)
    } else {
      failure = version.file.refusal(verdict, mirror: segment.mirror)
    }
  }

  private func tooMany(_ verdict: ResponseVerdict) -> FileError {
    FileError(
      .unavailable, "\(FileError(verdict).reason) to one of several requests", contact: .refused)
  }

  /// Checks the response's version against the pinned one.
  private func accept(_ content: ContentVersion, _ fields: HTTPFields) -> Bool {
    if let mirrors = version.file.mirrors {
      if let reason = mirrors.details.contradiction(ofLength: content.completeLength) {
        // The answer is not about the file.
        if !fields.isDoubtful(for: version.file.source.url) { contradiction = reason }
        failure = FileError(.invalidResponse, reason)
        return false
      }
      let (mirror, pinned) = (segment.mirror, version.pinned)
      guard version.admits(content) else { return refuseShorter(content, fields) }
      switch mirrors.change({ $0.judge(content, from: mirror, pinned: pinned, now: .now) }) {
      case .same, .unproven:
        version.learn(length: content.completeLength)
        return true
      case .declined:
        isDeclined = true
        return false
      case .contradicts where fields.isDoubtful(for: version.file.source.url):
        failure = FileError(.invalidResponse, ResponseFault.otherDocument)
        return false
      case .contradicts(let reason):
        contradiction = reason
        return false
      case .ordinary: break
      }
    }
    switch version.compare(content) {
    case .same:
      version.learn(length: content.completeLength)
      return true
    case .different where fields.isDoubtful(for: version.file.source.url):
      failure = FileError(.invalidResponse, ResponseFault.otherDocument)
    case .different: failure = FileError.hasChanged
    case .unknown where version.content.isTooFresh:
      // No answer can ever confirm a version that was pinned in the second of its modification.
      failure = FileError(.stale, "the remote file was being modified when it was opened")
    case .unknown: failure = FileError(.invalidResponse, ResponseFault.noValidator)
    }
    return false
  }

  /// Handles an answer that claims an end of the file before bytes that are present.
  private func refuseShorter(_ content: ContentVersion, _ fields: HTTPFields) -> Bool {
    if fields.isDoubtful(for: version.file.source.url) {
      failure = FileError(.invalidResponse, ResponseFault.otherDocument)
    } else if version.file.isOneOfSeveral(segment.mirror) {
      contradiction = "its file has \(content.completeLength ?? 0) bytes only"
    } else {
      failure = FileError.hasChanged
    }
    return false
  }

  private func receiveWhole(
    _ content: ContentVersion, exchange: ExchangeID
  ) -> ExchangeDisposition {
    if !version.isIdentified(by: content), version.hasCachedBytes {
      // There is no proof that the earlier bytes belong to this body.
      failure = FileError(.stale, "a body without length and validator cannot be resumed")
      return .stop
    }
    var id = segment.id
    if !segment.isWhole {
      let hasOther = version.file.mirrors?.hasReady(besides: segment.mirror) == true
      guard !hasOther, version.rangeIgnored(segment.id) else {
        failure = FileError(.invalidResponse, ResponseFault.ignoredRange)
        return .stop
      }
      id = version.adoptSegment(
        range: 0..<(content.completeLength ?? Int64.max), isWhole: true, exchange: exchange,
        mirror: segment.mirror)
    }
    writer = SegmentWriter(
      version: version, id: id, exchange: exchange, body: content.completeLength.map { 0..<$0 },
      start: 0)
    return .proceed
  }

  func held(until moment: ContinuousClock.Instant?, exchange: ExchangeID) {
    version.note(.held(until: moment), of: segment.id)
    guard let moment, let mirrors = version.file.mirrors,
      mirrors.hasReady(besides: segment.mirror)
    else { return }
    // Another server can be asked instead of waiting.
    retryAfter = moment - .now
    failure = FileError(.unavailable, "the server has asked for no request for a while")
    version.file.environment.client.cancel(exchange)
  }

  func connecting() { version.note(.connecting, of: segment.id) }

  func requestSent() { version.note(.sent, of: segment.id) }

  func throttled() { writer?.throttled() }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition {
    if let writer, !writer.hasRoom() { return .pause }
    if fetchedByteCount == 0, version.file.mirrors != nil { firstBodyAt = .now }
    fetchedByteCount += body.count
    version.file.recordFetched(body.count)
    return writer?.take(body) ?? .discard
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    version.file.recordRequests(metrics)
    version.recordFetched(fetchedByteCount)
    if metrics.newConnections == 0, metrics.timeToFirstByte > .zero {
      version.recordRoundTrip(metrics.timeToFirstByte)
    }
    recordMirror(metrics)
    if let contradiction {
      return ends.mirrorContradicted(segment.id, segment.mirror, contradiction)
    }
    if isDeclined { return ends.mirrorDeclined(segment.id) }
    if hasExpired { return ends.askAgain(segment.id) }
    if let writer { return writer.finish(completion, failure: failure) }
    switch completion {
    case .failed(let error) where failure == nil:
      if version.file.recordFailure(error, asked: asked, mirror: segment.mirror, metrics),
        version.file.mirrors?.hasReady(besides: segment.mirror) != true
      {
        return ends.askAgain(segment.id)
      }
      ends.failed(segment.id, FileError(error))
    default:
      ends.failed(segment.id, failure, retryAfter: retryAfter)
    }
  }

  /// The least bytes and time from which a connection's rate is measured.
  private static let measured = (byteCount: 64 << 10, seconds: 0.02)

  /// Records what the request has shown about its server.
  private func recordMirror(_ metrics: ExchangeMetrics) {
    guard let mirrors = version.file.mirrors else { return }
    var rate: Double?
    if let firstBodyAt, fetchedByteCount >= Self.measured.byteCount {
      let seconds = (ContinuousClock.now - firstBodyAt) / .seconds(1)
      if seconds >= Self.measured.seconds { rate = Double(fetchedByteCount) / seconds }
    }
    let (index, hasBrought) = (segment.mirror, fetchedByteCount > 0)
    mirrors.change { [rate] in
      $0.ended(index, bytesPerSecond: rate)
      if hasBrought, failure == nil { $0.answered(index) }
    }
  }
}

extension ResponseVerdict {
  /// Whether the server has answered as if it had another file, or none that can be used.
  fileprivate var isUseless: Bool {
    switch self {
    case .missing, .denied, .unavailable: false
    case .part, .whole, .notModified, .preconditionFailed, .unsatisfiable, .rejected, .invalid:
      true
    }
  }
}
