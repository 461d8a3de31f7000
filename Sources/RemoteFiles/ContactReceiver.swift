internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes

/// Receives the answer to "what is this file now?": a range request that brings validators, length
/// and first bytes in one round trip, or a conditional one that confirms what is known.
///
/// `@unchecked Sendable`: created by one thread and handed to the client, it is used on the
/// network thread only.
final class ContactReceiver: ExchangeReceiver, @unchecked Sendable {
  private let id: ContactID
  private let file: RemoteFile
  /// The version that the condition names, if there is one.
  private let known: RemoteVersion?
  private let asked: ByteRange?
  /// Which of the file's servers is asked.
  private let mirror: Int
  private let askedURL: RemoteURL
  private var writer: SegmentWriter?
  private var version: RemoteVersion?
  private var failure: FileError?
  private var retryAfter: Duration?
  /// Whether to ask for the whole, because a range brought no length.
  private var asksAgain = false
  /// Whether to put the same question once more.
  private var asksSame = false
  /// Whether to put it once more in a second.
  private var asksLater = false
  private var isReported = false
  private var fetchedByteCount = 0
  /// Whether the end of the mount waits for its body.
  private var isAwaited = false

  init(
    id: ContactID, file: RemoteFile, known: RemoteVersion?, asked: ByteRange?, mirror: Int,
    askedURL: RemoteURL
  ) {
    self.id = id
    self.file = file
    self.known = known
    self.asked = asked
    self.mirror = mirror
    self.askedURL = askedURL
  }

  func receive(
    head: HTTPResponse, from url: RemoteURL, transfer: ExchangeID
  ) -> ExchangeDisposition {
    let verdict = ResponseVerdict(head, asked: asked, now: Int64(time(nil)))
    let content = ContentVersion(head.headerFields, completeLength: nil)
    if (200..<300).contains(head.status.code),
      head.headerFields.isDoubtful(forPath: file.source.url.path),
      known?.compare(content) != .same, file.doubts(content, to: id)
    {
      failure = FileError(.invalidResponse, "the answer looks like another document")
      return .stop
    }
    switch verdict {
    case .part(let content, let range):
      guard let length = content.completeLength else {
        // Only the end of the whole will tell how long it is.
        asksAgain = true
        return .discard
      }
      if contradicts(content) { return .stop }
      if file.wantsSecondOpinion(id, on: content, from: mirror) { return hearAgain() }
      if waitsForDate(content) { return .stop }
      return receivePart(content, range: range, length: length, from: url, transfer: transfer)
    case .whole(let content):
      if contradicts(content) { return .stop }
      if file.wantsSecondOpinion(id, on: content, from: mirror) { return hearAgain() }
      if waitsForDate(content) { return .stop }
      return receiveWhole(content, from: url, transfer: transfer)
    case .notModified:
      guard let known else { break }
      // It may name the validators that it is about (RFC 9110 §15.4.5).
      var named = content
      named.contentCoding = known.content.contentCoding
      if known.content.compare(named) == .different {
        report(FileError(.invalidResponse, "HTTP 304 about another version"))
        return .discard
      }
      file.confirm(known, by: mirror)
      return answer(known, from: url)
    case .unsatisfiable(let length?) where asked?.lowerBound == 0 && length == 0:
      // No range of an empty file can be satisfied. Its bytes are the same in all versions.
      if let known, known.length == 0 {
        file.confirm(known, by: mirror)
        return answer(known, from: url)
      }
      let empty = ContentVersion(completeLength: 0)
      if contradicts(empty) { return .stop }
      if file.wantsSecondOpinion(id, on: empty, from: mirror) { return hearAgain() }
      return answer(file.adopt(empty, from: mirror), from: url)
    case .unsatisfiable:
      asksAgain = asked != nil
    case .unavailable(_, let delay):
      retryAfter = delay
    case .missing, .denied:
      if file.mayAskAnotherURL(id, after: askedURL) {
        asksSame = true
        return .discard
      }
    case .preconditionFailed, .invalid:
      break
    }
    // A refusal's body may be long in coming; what it says is said.
    if !asksAgain { report(file.refusal(verdict, mirror: mirror)) }
    // What follows a head that cannot be right cannot be trusted either, nor the connection.
    if case .invalid = verdict { return .stop }
    return .discard
  }

  /// Whether the answer is about a file that cannot be the wanted one; then its server is not asked again.
  private func contradicts(_ content: ContentVersion) -> Bool {
    guard let reason = file.objection(to: content, from: mirror) else { return false }
    file.refuseMirror(mirror, reason)
    // Trying again does not mend it.
    failure = FileError(.refused, reason)
    return true
  }

  private func hearAgain() -> ExchangeDisposition {
    asksSame = true
    return .stop
  }

  /// Whether the answer is of the second in which the file was modified, and is to be heard again a
  /// second later, when the date proves something.
  private func waitsForDate(_ content: ContentVersion) -> Bool {
    guard content.isTooFresh, known?.content.compare(content) != .same else { return false }
    asksLater = file.mayAskLater(id, after: .seconds(1))
    return asksLater
  }

  func requestSent() { file.contactSent(id) }

  func held(until moment: ContinuousClock.Instant?, transfer: ExchangeID) {
    if let moment { file.contactHeld(id, until: moment, from: mirror, transfer: transfer) }
  }

  private func receivePart(
    _ content: ContentVersion, range: ByteRange, length: Int64, from url: RemoteURL,
    transfer: ExchangeID
  ) -> ExchangeDisposition {
    let version = file.adopt(content, from: mirror)
    version.markRanged()
    // Those who wait will read what this brings: it must be known to be on its way before they are
    // answered.
    defer { _ = answer(version, from: url) }
    // Of what was asked, what the file has and the cache lacks.
    let start = asked?.lowerBound ?? 0
    let end = min(range.upperBound, asked?.upperBound ?? length, length)
    guard let hole = version.firstHole(in: start..<max(start, end)) else { return .discard }
    let id = version.adoptSegment(
      range: hole.lowerBound..<end, isWhole: false, transfer: transfer, mirror: mirror)
    writer = SegmentWriter(
      version: version, id: id, transfer: transfer, body: range, start: hole.lowerBound)
    isAwaited = true
    file.environment.firstBytesBegan()
    return .proceed
  }

  private func receiveWhole(
    _ content: ContentVersion, from url: RemoteURL, transfer: ExchangeID
  ) -> ExchangeDisposition {
    let version = file.adopt(content, from: mirror)
    // One such answer proves nothing where ranges have worked.
    let haveRangesWorked = version.hasCachedBytes && version.length != nil
    if asked != nil, !haveRangesWorked { version.markSequential() }
    guard !version.isComplete, !version.isStreaming, asked == nil || !haveRangesWorked else {
      return stop(version, from: url)
    }
    if let length = content.completeLength, length > FileSettings.smallFileByteCount {
      // Nobody has asked for its bytes yet.
      return stop(version, from: url)
    }
    let id = version.adoptSegment(
      range: 0..<(content.completeLength ?? Int64.max), isWhole: true, transfer: transfer,
      mirror: mirror)
    writer = SegmentWriter(
      version: version, id: id, transfer: transfer, body: content.completeLength.map { 0..<$0 },
      start: 0)
    if content.completeLength == nil {
      // The length is known at the body's end, which for a short one is worth waiting for.
      self.version = version
      file.noteAnswer(from: url, asked: askedURL, mirror: mirror)
      file.answerProvisionally(self.id, version)
      return .proceed
    }
    _ = answer(version, from: url)
    return .proceed
  }

  private func answer(_ version: RemoteVersion, from url: RemoteURL) -> ExchangeDisposition {
    self.version = version
    file.noteAnswer(from: url, asked: askedURL, mirror: mirror)
    file.endContact(id, .success(version))
    return .discard
  }

  private func stop(_ version: RemoteVersion, from url: RemoteURL) -> ExchangeDisposition {
    _ = answer(version, from: url)
    return .stop
  }

  func throttled() { writer?.throttled() }

  func receive(body: UnsafeRawBufferPointer) -> ExchangeDisposition {
    if let writer, !writer.hasRoom() { return .pause }
    fetchedByteCount += body.count
    file.noteFetched(body.count)
    return writer?.take(body) ?? .discard
  }

  func finish(_ completion: ExchangeCompletion, metrics: ExchangeMetrics) {
    file.noteRequests(metrics)
    if let writer, let version {
      version.noteFetched(fetchedByteCount)
      return writer.finish(completion, failure: nil) { [file, id, isAwaited] in
        file.endContact(id, .success(version))
        if isAwaited { file.environment.firstBytesEnded() }
      }
    }
    if let version { return file.endContact(id, .success(version)) }
    if asksLater { return file.askLater(id, after: .seconds(1)) }
    if asksAgain || asksSame { return file.sendContact(id, whole: asksAgain) }
    if isReported { return }
    switch completion {
    case .failed(let error): report(FileError(error))
    case .finished, .stopped, .cancelled:
      report(failure ?? FileError(.timedOut, "no answer from the server"))
    }
  }

  private func report(_ error: FileError) {
    isReported = true
    file.contactFailed(id, error, from: mirror, retryAfter: retryAfter)
  }
}
