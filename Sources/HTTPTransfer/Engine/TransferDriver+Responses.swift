internal import Glibc
internal import HTTPTransferCore
internal import HTTPTypes

/// What a response's head means for the transfer, decided before the first byte of its body.
extension TransferDriver {
  func receive(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    guard phase == .running || phase == .paused, let segment = table[exchange.segmentID] else {
      return .stop
    }
    // Of a GET only: another method may have become one on the way, and must not go to its target.
    if request.method == .get, (200..<300).contains(head.status.code) {
      noteAnswer(from: url, to: exchange)
    }
    guard request.method == .get else { return receiveReply(head, from: url, by: exchange) }
    if head.status.code == 204 || head.status.code == 205 {
      if case .file = request.destination {
        // No content is not an empty file.
        exchange.verdict = .fail(statusError(head, url))
        return .stop
      }
      return receiveNothing(head, from: url, by: exchange)
    }
    let asked = segment.isWhole ? nil : segment.start..<segment.end
    let verdict = ResponseVerdict(head.asTransmitted, asked: asked, now: Self.secondsSince1970)
    if exchange.isConditional, confirmsAnother(head) {
      // Of what it does not know it is asked without a condition.
      earlier = nil
      exchange.verdict = .retry(
        TransferError(
          .invalidResponse, url, "the server confirms another version than it was asked about",
          response: head, isTransient: true), after: nil)
      return .discard
    }
    if isUnchanged(verdict, by: exchange) {
      exchange.verdict = .unchanged(head, from: url)
      return head.status.code == 304 ? .discard : .stop
    }
    switch verdict {
    case .part(let content, let range):
      return receivePart(content, range, head, from: url, by: exchange)
    case .whole(let content):
      return receiveWhole(content, head, from: url, by: exchange)
    case .unsatisfiable(let length):
      return receiveUnsatisfiable(length, head, from: url, by: exchange)
    case .missing, .denied, .notModified, .preconditionFailed:
      let error = statusError(head, url, isTransient: true)
      switch noteRefusal(of: exchange) {
      case .expired: exchange.verdict = .expired(error)
      case .tooMany: exchange.verdict = .retry(error, after: nil)
      case .final where isConfirmed && isOneOfMany(at: exchange.mirror):
        // A server that has served others and refuses this one finds them too many.
        exchange.verdict = .retry(error, after: nil)
      case .final: exchange.verdict = .fail(refusalError(head, url))
      }
    case .unavailable(_, let delay):
      exchange.verdict = .retry(statusError(head, url, isTransient: true), after: delay)
    case .invalid(let reason):
      if (200..<300).contains(head.status.code) {
        exchange.verdict = .retry(
          TransferError(.invalidResponse, url, reason, response: head, isTransient: true),
          after: nil)
      } else {
        exchange.verdict = .fail(statusError(head, url))
      }
      // What follows such a head cannot be trusted either, nor the connection.
      return .stop
    }
    return .discard
  }

  /// Our time, for fields that hold a date.
  private static var secondsSince1970: Int64 { Int64(time(nil)) }

  // MARK: GET

  private func receivePart(
    _ content: ContentVersion, _ range: ByteRange, _ head: HTTPResponse, from url: RemoteURL,
    by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    guard let length = content.completeLength else {
      // A part of nobody knows how much: only the whole has an end.
      isSequential = true
      haveRangesBeenRefused = true
      exchange.verdict = .superseded
      endExchanges(except: exchange)
      table.removeAll()
      return .stop
    }
    guard confirm(content, head, from: url, by: exchange, canTakeAll: false) else { return .stop }
    haveRangesWorked = true
    if !table.isLengthKnown { table.setLength(length) }
    reportTotal()
    guard let segment = table[exchange.segmentID] else { return .stop }
    exchange.acceptBody(range, isEndKnown: true, start: segment.start)
    plan()
    return .proceed
  }

  private func receiveWhole(
    _ content: ContentVersion, _ head: HTTPResponse, from url: RemoteURL,
    by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    guard let segment = table[exchange.segmentID] else { return .stop }
    var content = content
    if request.decodesContent, content.contentCoding != nil { content.completeLength = nil }
    if !segment.isWhole {
      if haveRangesWorked, mirrors.hasTrusted(besides: exchange.mirror) {
        exchange.verdict = .fail(
          TransferError(.invalidResponse, url, "the server ignores ranges", response: head))
        return .stop
      }
      // Ranges have worked before: this may be one server's fault of many.
      if haveRangesWorked, ignoredRangeCount < 2 {
        ignoredRangeCount += 1
        exchange.verdict = .retry(
          TransferError(
            .invalidResponse, url, ResponseFault.ignoredRange, isTransient: true),
          after: nil)
        return .stop
      }
      haveRangesBeenRefused = true
    }
    if let range = request.range, let length = content.completeLength, range.lowerBound >= length {
      exchange.verdict = .fail(beyondTheEnd(length, head, url))
      return .stop
    }
    if version == nil, !request.decodesContent,
      doubtCount < min(FetchConstants.doubtfulAnswerLimit, request.retryCount),
      head.headerFields.isDoubtful(forPath: request.url.path)
    {
      // Error pages come as 200, too; where nothing is known to compare with, it is worth asking
      // again.
      doubtCount += 1
      exchange.verdict = .retry(
        TransferError(
          .invalidResponse, url, ResponseFault.otherDocument, response: head,
          isTransient: true), after: nil)
      return .stop
    }
    if version == nil, let earlier, !request.decodesContent, !earlier.isAnonymous,
      content.isAnonymous, head.headerFields.isDoubtful(forPath: request.url.path)
    {
      // A login page, say: a good file is not given for it.
      exchange.verdict = .fail(
        TransferError(
          .invalidResponse, url,
          "the answer looks like another document than the file that is there, which is left",
          response: head))
      return .stop
    }
    guard confirm(content, head, from: url, by: exchange, canTakeAll: true) else { return .stop }
    if !segment.isWhole {
      // One stream brings all; the others would bring the same.
      endExchanges(except: exchange)
      isSequential = true
      table.removeAll()
      move(exchange, to: table.add(0..<table.target.upperBound, isWhole: true).id)
    }
    if let length = content.completeLength, !table.isLengthKnown { table.setLength(length) }
    reportTotal()
    exchange.acceptBody(
      0..<(content.completeLength ?? .max), isEndKnown: content.completeLength != nil,
      start: table.target.lowerBound)
    return .proceed
  }

  /// The range lies beyond the end: of an empty file, or of one that is shorter than it was.
  private func receiveUnsatisfiable(
    _ length: Int64?, _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    let isFirst = version == nil
    if isFirst, length == 0, request.range == nil {
      return receiveNothing(head, from: url, by: exchange)
    }
    if isFirst, length == nil, request.range == nil, table[exchange.segmentID]?.isWhole == false {
      // It does not say why: asked for the whole, it will.
      exchange.verdict = .superseded
      isSequential = true
      haveRangesBeenRefused = true
      table.removeAll()
    } else if isFirst {
      exchange.verdict = .fail(beyondTheEnd(length, head, url))
    } else {
      changed(head, from: url, by: exchange)
    }
    return .discard
  }

  /// There is no body, and the status says that this is right.
  private func receiveNothing(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    let content = ContentVersion(head.headerFields, completeLength: 0)
    guard confirm(content, head, from: url, by: exchange, canTakeAll: true) else { return .stop }
    endExchanges(except: exchange)
    table.setLength(0)
    reportTotal()
    return .discard
  }

  // MARK: Other methods

  private func receiveReply(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) -> ExchangeDisposition {
    switch head.status.code {
    case 200..<300:
      // An answer is no version of anything: there is nothing to compare.
      guard confirm(ContentVersion(), head, from: url, by: exchange, canTakeAll: true) else {
        return .stop
      }
      if request.method == .head { table.setLength(0) }
      exchange.acceptBody(0..<Int64.max, isEndKnown: false, start: 0)
      return .proceed
    case 408, 425, 429, 500...599:
      var delay: Duration?
      if case .unavailable(_, let retryAfter) = ResponseVerdict(
        head, asked: nil, now: Self.secondsSince1970)
      {
        delay = retryAfter
      }
      exchange.verdict = .retry(statusError(head, url, isTransient: true), after: delay)
    default:
      exchange.verdict = .fail(statusError(head, url))
    }
    return .discard
  }

  // MARK: The version

  /// Compares a good response with the pinned version, or pins it.
  ///
  /// - Parameters:
  ///   - content: the version that the response describes.
  ///   - head: its head.
  ///   - url: where it came from.
  ///   - exchange: the exchange that has brought it.
  ///   - canTakeAll: whether its body is the whole, so that it can be taken also where everything
  ///     begins anew.
  /// - Returns: whether its body is wanted.
  private func confirm(
    _ content: ContentVersion, _ head: HTTPResponse, from url: RemoteURL,
    by exchange: SegmentExchange, canTakeAll: Bool
  ) -> Bool {
    if let reason = objection(to: content) {
      exchange.verdict = .fail(TransferError(.invalidResponse, url, reason, response: head))
      return false
    }
    if mirrors.count > 1, let answer = confirmMirror(content, head, from: url, by: exchange) {
      return answer
    }
    if let pinned = mirrors.count > 1 ? mirrors[exchange.mirror].content ?? version : version {
      switch pinned.compare(content) {
      case .same:
        if isConfirmed { return true }
        return confirmFirst(head, from: url, begins: false, content, exchange)
      case .unknown where isConfirmed && !pinned.isTooFresh:
        exchange.verdict = .retry(
          TransferError(
            .invalidResponse, url, "the response has no validator to compare", response: head,
            isTransient: true), after: nil)
        return false
      case .different, .unknown:
        if isConfirmed {
          changed(head, from: url, by: exchange)
          return false
        }
        // The partial file is of another version than the server has now.
        guard
          forget("the remote file has changed since the partial file was begun", except: exchange)
        else { return false }
        if !canTakeAll {
          exchange.verdict = .superseded
          return false
        }
        _ = table.add(0..<table.target.upperBound, isWhole: true)
        if let id = table.segments.last?.id { move(exchange, to: id) }
        isSequential = true
      }
    }
    if !isSequential, content.isTooFresh, freshCount < FetchConstants.freshAnswerLimit {
      freshCount += 1
      exchange.verdict = .retry(
        TransferError(
          .invalidResponse, url, "the remote file was modified this very second", response: head,
          isTransient: true), after: FetchConstants.freshAnswerDelay)
      return false
    }
    return confirmFirst(head, from: url, begins: true, content, exchange)
  }

  /// Compares what a mirror describes with what others have brought.
  ///
  /// - Returns: whether its body is wanted; nil where there is nothing of others to compare with.
  private func confirmMirror(
    _ content: ContentVersion, _ head: HTTPResponse, from url: RemoteURL,
    by exchange: SegmentExchange
  ) -> Bool? {
    let index = exchange.mirror
    guard let pinned = version, mirrors[index].content == nil else { return nil }
    switch mirrors.judge(content, from: index, pinned: pinned, now: .now) {
    case .ordinary: return nil
    case .same, .similar, .declined:
      return isConfirmed || confirmFirst(head, from: url, begins: false, content, exchange)
    case .contradicts(let reason):
      // Of what an earlier run has left, the last one to be asked decides.
      guard isConfirmed || mirrors.hasTrusted(besides: index) else { return nil }
      exchange.verdict = .fail(TransferError(.changed, url, reason, response: head))
      return false
    }
  }

  /// The first good head of this run.
  private func confirmFirst(
    _ head: HTTPResponse, from url: RemoteURL, begins: Bool, _ content: ContentVersion,
    _ exchange: SegmentExchange
  ) -> Bool {
    isConfirmed = true
    response = (head, url)
    if version == nil || begins {
      version = content
      mirrors.defined(content, by: exchange.mirror)
    } else {
      mirrors.agreed(content, by: exchange.mirror)
    }
    monitor.emit(.responded(head, from: url))
    guard begins else { return true }
    let wanted = content.completeLength.map { length in
      max(0, min(table.target.upperBound, length) - min(table.target.lowerBound, length))
    }
    store.begin(version: content.provable, wantedByteCount: wanted) { [self] result in
      if case .failure(let failure) = result { fail(transferError(failure)) }
    }
    return phase != .ended
  }

  /// A response is of another version than the pinned one: asked again, as a host of several may
  /// disagree with itself for a moment, then everything begins anew.
  private func changed(
    _ head: HTTPResponse, from url: RemoteURL, by exchange: SegmentExchange
  ) {
    exchange.verdict = .retry(
      TransferError(
        .changed, url, "the remote file has changed", response: head, isTransient: true),
      after: nil)
  }

  // MARK: Failures

  /// What the statuses that people meet mean, and what to do (RFC 9110 §15).
  private static let phrases = [
    400: "Bad Request", 401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found", 405: "Method Not Allowed",
    407: "Proxy Authentication Required",
    408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Content Too Large",
    416: "Range Not Satisfiable", 423: "Locked", 429: "Too Many Requests",
    500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
    504: "Gateway Timeout", 507: "Insufficient Storage",
  ]

  func beyondTheEnd(
    _ length: Int64?, _ head: HTTPResponse, _ url: RemoteURL
  ) -> TransferError {
    let reach = length.map { "the file has \($0) bytes only" } ?? "the file is shorter"
    return TransferError(.status, url, "the range is beyond the end: \(reach)", response: head)
  }

  /// A refusal for good, which may have a reason that can be seen.
  private func refusalError(_ head: HTTPResponse, _ url: RemoteURL) -> TransferError {
    let error = statusError(head, url)
    guard request.signer == nil, let expiry = request.url.signatureExpiry,
      expiry <= Self.secondsSince1970
    else { return error }
    return TransferError(
      error.code, url, error.reason + ": the signature of the URL has expired", response: head)
  }

  func statusError(
    _ head: HTTPResponse, _ url: RemoteURL, isTransient: Bool = false
  ) -> TransferError {
    let status = head.status
    var reason = "HTTP \(status.code)"
    if let phrase = Self.phrases[status.code] { reason += " \(phrase)" }
    reason += ResponseFault.meaning(ofRefusal: status.code)
    let isRedirect = (300..<400).contains(status.code) && head.headerFields[.location] != nil
    if isRedirect { reason += ": redirects are not followed" }
    return TransferError(
      isRedirect ? .redirect : .status, url, reason, response: head, isTransient: isTransient)
  }
}

extension HTTPResponse {
  /// The head, with the status 203 as the 200 that a proxy has made it of (RFC 9110 §15.3.4).
  fileprivate var asTransmitted: HTTPResponse {
    guard status.code == 203 else { return self }
    var head = self
    head.status = .ok
    return head
  }
}
