internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes

/// Receives the response to a request for bytes of one version: checks its head against the pinned
/// version before the first byte, then writes.
///
/// `@unchecked Sendable`: created by one thread and handed to the client, it is used on the
/// network thread only.
final class SegmentReceiver: ExchangeReceiver, @unchecked Sendable {
  private let version: RemoteVersion
  private let segment: Segment
  private var writer: SegmentWriter?
  private var failure: FileError?
  private var retryAfter: Duration?
  private var fetchedByteCount = 0

  init(version: RemoteVersion, segment: Segment) {
    self.version = version
    self.segment = segment
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, transfer: ExchangeID
  ) -> ExchangeDisposition {
    let asked = segment.isWhole ? nil : segment.start..<segment.end
    let verdict = ResponseVerdict(head, asked: asked)
    switch verdict {
    case .part(let content, let range):
      guard accept(content, head.headerFields) else { return .stop }
      writer = SegmentWriter(version: version, id: segment.id, body: range, start: segment.start)
      return .proceed
    case .whole(let content):
      guard accept(content, head.headerFields) else { return .stop }
      return receiveWhole(content, transfer: transfer)
    case .unsatisfiable, .preconditionFailed:
      // The file does not reach as far any more.
      failure = FileError(.stale, "the range is beyond the end of the remote file")
    case .missing, .denied:
      // From where a redirect once led, a refusal means that its target has expired.
      failure =
        version.file.forgetLocation(url)
        ? FileError(.unavailable, "the redirect's target has expired") : FileError(verdict)
    case .unavailable(_, let delay):
      retryAfter = delay
      failure = FileError(verdict)
    case .notModified, .invalid:
      failure = FileError(verdict)
    }
    return .discard
  }

  /// Checks the response's version against the pinned one.
  private func accept(_ content: ContentVersion, _ fields: HTTPFields) -> Bool {
    switch version.content.compare(content) {
    case .same: return true
    case .different where fields.isDoubtful(forPath: version.file.source.url.path):
      failure = FileError(.invalidResponse, "the answer looks like another document")
    case .different: failure = FileError(.stale, "the remote file has changed")
    case .unknown: failure = FileError(.invalidResponse, "the response has no validator to compare")
    }
    return false
  }

  private func receiveWhole(
    _ content: ContentVersion, transfer: ExchangeID
  ) -> ExchangeDisposition {
    if content.completeLength == nil, content.strength == .unverifiable, version.hasCachedBytes {
      // Nothing shows that the bytes from before belong to this body.
      failure = FileError(.stale, "a body without length and validator cannot be resumed")
      return .stop
    }
    var id = segment.id
    if !segment.isWhole {
      guard version.rangeIgnored(segment.id) else {
        failure = FileError(.invalidResponse, "the server ignored the range (HTTP 200)")
        return .stop
      }
      id = version.adoptSegment(
        range: 0..<(content.completeLength ?? Int64.max), isWhole: true, transfer: transfer)
    }
    writer = SegmentWriter(
      version: version, id: id, body: content.completeLength.map { 0..<$0 }, start: 0)
    return .proceed
  }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition {
    fetchedByteCount += body.count
    version.file.noteFetched(body.count)
    return writer?.take(body) ?? .discard
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    version.file.noteRequests(metrics)
    version.noteFetched(fetchedByteCount)
    if metrics.newConnections == 0 { version.noteRoundTrip(metrics.timeToFirstByte) }
    if let writer { return writer.finish(completion, failure: failure) }
    switch completion {
    case .failed(let error) where failure == nil:
      version.failed(segment.id, FileError(error))
    default:
      version.failed(segment.id, failure, retryAfter: retryAfter)
    }
  }
}
