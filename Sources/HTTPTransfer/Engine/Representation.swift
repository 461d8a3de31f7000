internal import HTTPTransferCore
internal import HTTPTypes

/// What a transfer knows of the representation that it fetches: its version, and how its servers
/// serve it.
///
/// It judges the head of each response before the first byte of its body. A value without I/O.
struct Representation: Sendable {
  private let request: Request
  /// The expected hashes of its pieces.
  private let hashes: PieceHashes?
  /// The version that every response must have; nil before the first one.
  private(set) var version: ContentVersion?
  /// Whether a response of this run has confirmed ``version``.
  private(set) var isConfirmed = false
  /// The first good head and its URL.
  private(set) var response: (head: HTTPResponse, url: RemoteURL)?
  /// The version of the complete file at the destination.
  private var earlier: EarlierVersion?
  /// Whether it is requested as a whole, without ranges.
  private(set) var isSingleStream: Bool
  /// Whether the server answered a range with the whole.
  private(set) var haveRangesBeenRefused = false
  /// Whether a range was answered with a part.
  private var haveRangesWorked = false

  init(_ request: Request, hashes: PieceHashes?, isSingleStream: Bool) {
    self.request = request
    self.hashes = hashes
    self.isSingleStream = isSingleStream
  }

  // MARK: Known state

  /// The version at the destination to ask the server about; nil once a response gave an answer.
  var askedEarlier: EarlierVersion? {
    version == nil && !isConfirmed && request.method == .get ? earlier : nil
  }

  /// Whether another response can bring missing bytes, because they are provably the same.
  var canSkip: Bool {
    request.method == .get && !request.decodesContent && version?.isResumable == true
  }

  /// Whether bytes of several servers may meet in one file.
  ///
  /// One server must have answered, and another must be able to prove that it has the same bytes.
  func canSpread(_ trust: MirrorSet.Trust) -> Bool {
    isConfirmed && (trust == .hashesBeforeUse || version?.isResumable == true)
  }

  // MARK: Updates

  /// Takes over the version of a partial file at the destination.
  mutating func recover(_ version: ContentVersion) {
    self.version = version
    // A record contains only strong modification dates.
    self.version?.dateStrength = .strong
    isSingleStream = false
  }

  /// Takes over the version of a complete file at the destination.
  mutating func setEarlier(_ version: ContentVersion?) {
    guard !EarlierVersion.hasCondition(request) else { return }
    earlier = version.map(EarlierVersion.init(content:))
  }

  /// Records the first good answer of this run; with `begins`, the fetched bytes begin with it.
  mutating func confirm(
    _ content: ContentVersion, by answer: Answer, begins: Bool, _ mirrors: inout MirrorSet
  ) {
    isConfirmed = true
    response = (answer.head, answer.url)
    if version == nil || begins {
      version = content
      mirrors.defined(content, by: answer.mirror)
    } else {
      mirrors.recordAgreement(content, by: answer.mirror)
    }
  }

  mutating func recordRange() { haveRangesWorked = true }

  /// Requests the whole from now on.
  mutating func makeSingleStream() { isSingleStream = true }

  /// Requests ranges from now on.
  mutating func useRanges() { isSingleStream = false }

  /// Resets the version for a restart.
  mutating func forget() {
    version = nil
    isConfirmed = false
    haveRangesWorked = false
  }

  // MARK: Heads

  /// The head of a response, and its request.
  struct Answer {
    let head: HTTPResponse
    let url: RemoteURL
    /// The requested bytes; nil for the whole.
    let range: ByteRange?
    let mirror: Int
    /// Whether the request had the condition that there is another version.
    let isConditional: Bool

    func error(
      _ reason: String, _ code: TransferError.Code = .invalidResponse, isTransient: Bool = false
    ) -> TransferError {
      TransferError(code, url, reason, response: head, isTransient: isTransient)
    }

    func status(isTransient: Bool = false) -> TransferError {
      TransferError(status: head, url, isTransient: isTransient)
    }

    /// Sends the same request again.
    func retry(
      _ reason: String, _ code: TransferError.Code = .invalidResponse, after delay: Duration? = nil,
      disposition: ExchangeDisposition = .stop
    ) -> Decision {
      .reject(.retry(error(reason, code, isTransient: true), after: delay), disposition)
    }

    /// Handles a response that has another version than the pinned one.
    ///
    /// The request is retried, because the servers of one host may disagree for a moment. After
    /// that, the transfer starts over.
    func changed(_ disposition: ExchangeDisposition) -> Decision {
      retry(ResponseFault.hasChanged, .changed, disposition: disposition)
    }
  }

  /// The kind of body.
  enum Body {
    case part(ByteRange, length: Int64)
    case whole(length: Int64?)
    /// There is no body, and the status allows that.
    case nothing
    /// The answer to a method other than `GET`.
    case reply
  }

  /// Whether a good response has the pinned version.
  enum Acceptance {
    /// It has, as responses before it in this run.
    case confirmed
    /// It has, and it is the first response of this run.
    case agrees
    /// No version was pinned.
    case begins
    /// The destination holds another version.
    case startsOver
  }

  /// The meaning of a head.
  enum Decision {
    /// The body is not wanted.
    case reject(SegmentVerdict, ExchangeDisposition)
    /// The URL is refused: by `error` for now, by `final` if there is no other URL.
    case refused(TransferError, final: TransferError)
    /// The whole must be requested.
    case askWhole(ExchangeDisposition)
    /// The body is wanted.
    case take(Body, ContentVersion, Acceptance)
  }

  mutating func judge(
    _ answer: Answer, _ mirrors: inout MirrorSet, _ allowance: inout RetryAllowance
  ) -> Decision {
    let now = Int64(timeSinceEpoch() / .seconds(1))
    let head = answer.head
    guard request.method == .get else {
      if (200..<300).contains(head.status.code) {
        // An answer to another method has no version to compare.
        return check(.reply, ContentVersion(), answer, &mirrors, &allowance)
      }
      // The server does not support the method or the protocol, and never will.
      let isFinal = head.status.code == 501 || head.status.code == 505
      guard case .unavailable(_, let delay) = ResponseVerdict(head, asked: nil, now: now), !isFinal
      else {
        return .reject(.fail(answer.status()), .discard)
      }
      return .reject(.retry(answer.status(isTransient: true), after: delay), .discard)
    }
    if head.status.code == 204 || head.status.code == 205 {
      // No content is not an empty file.
      if case .file = request.destination { return .reject(.fail(answer.status()), .stop) }
      return checkEmpty(answer, &mirrors, &allowance)
    }
    let verdict = ResponseVerdict(head, asked: answer.range, now: now)
    if let asked = askedEarlier {
      if answer.isConditional, asked.isContradicted(by: head) {
        // The server does not know the version, so retry without a condition.
        earlier = nil
        return answer.retry(
          "the server confirms another version than it was asked about", disposition: .discard)
      }
      if asked.isConfirmed(by: verdict, isConditional: answer.isConditional, request) {
        return .reject(
          .unchanged(head, from: answer.url), head.status.code == 304 ? .discard : .stop)
      }
    }
    switch verdict {
    case .part(let content, let range):
      // The length of the whole is unknown, so only a request for the whole has an end.
      guard let length = content.completeLength else { return askWhole(.stop) }
      return check(.part(range, length: length), content, answer, &mirrors, &allowance)
    case .whole(let content): return judgeWhole(content, answer, &mirrors, &allowance)
    case .unsatisfiable(let length): return judgeEnd(length, answer, &mirrors, &allowance)
    case .missing, .denied, .notModified, .preconditionFailed:
      return .refused(
        answer.status(isTransient: true),
        final: TransferError(refusal: head, answer.url, of: request))
    case .unavailable(_, let delay):
      return .reject(.retry(answer.status(isTransient: true), after: delay), .discard)
    case .rejected: return .reject(.fail(answer.status()), .stop)
    case .invalid(let reason):
      // The bytes after such a head, and the connection, cannot be trusted either.
      return (200..<300).contains(head.status.code)
        ? answer.retry(reason) : .reject(.fail(answer.status()), .stop)
    }
  }

  private mutating func askWhole(_ disposition: ExchangeDisposition) -> Decision {
    isSingleStream = true
    haveRangesBeenRefused = true
    return .askWhole(disposition)
  }

  private mutating func judgeWhole(
    _ content: ContentVersion, _ answer: Answer, _ mirrors: inout MirrorSet,
    _ allowance: inout RetryAllowance
  ) -> Decision {
    var content = content
    if request.decodesContent, content.contentCoding != nil { content.completeLength = nil }
    if answer.range != nil {
      if haveRangesWorked, mirrors.hasTrusted(besides: answer.mirror) {
        return .reject(.fail(answer.error("the server ignores ranges")), .stop)
      }
      // Ranges worked before: this may be the fault of one server among many.
      // The last mirror, which has not served a range before, may support none.
      if haveRangesWorked, mirrors.count == 1 || mirrors[answer.mirror].content != nil,
        allowance.mayAskForRange()
      {
        let error = TransferError(
          .invalidResponse, answer.url, ResponseFault.ignoredRange, isTransient: true)
        return .reject(.retry(error, after: nil), .stop)
      }
      haveRangesBeenRefused = true
    }
    if let range = request.range, let length = content.completeLength, range.lowerBound >= length {
      return .reject(.fail(.beyondTheEnd(length, answer.head, answer.url)), .stop)
    }
    if version == nil, answer.head.headerFields.isDoubtful(for: request.url) {
      // Error pages also arrive with status 200. Without a version to compare, a retry is
      // worthwhile.
      if !request.decodesContent, allowance.mayDoubt() {
        return answer.retry(ResponseFault.otherDocument)
      }
      // It may be a login page, which must not replace a good file.
      if let earlier, earlier.isBetter(than: content) {
        let reason =
          "the answer looks like another document than the file that is there, which is left"
        return .reject(.fail(answer.error(reason)), .stop)
      }
    }
    let body = Body.whole(length: content.completeLength)
    return check(body, content, answer, &mirrors, &allowance)
  }

  /// The range lies beyond the end: the file is empty, or shorter than before.
  private mutating func judgeEnd(
    _ length: Int64?, _ answer: Answer, _ mirrors: inout MirrorSet,
    _ allowance: inout RetryAllowance
  ) -> Decision {
    guard version == nil else { return answer.changed(.discard) }
    if length == 0, request.range == nil { return checkEmpty(answer, &mirrors, &allowance) }
    // The response gives no reason; a request for the whole will.
    if length == nil, request.range == nil, answer.range != nil { return askWhole(.discard) }
    return .reject(.fail(.beyondTheEnd(length, answer.head, answer.url)), .discard)
  }

  // MARK: Version

  private mutating func checkEmpty(
    _ answer: Answer, _ mirrors: inout MirrorSet, _ allowance: inout RetryAllowance
  ) -> Decision {
    let empty = ContentVersion(answer.head.headerFields, completeLength: 0)
    return check(.nothing, empty, answer, &mirrors, &allowance)
  }

  /// Compares a good response with the pinned version.
  private mutating func check(
    _ body: Body, _ content: ContentVersion, _ answer: Answer, _ mirrors: inout MirrorSet,
    _ allowance: inout RetryAllowance
  ) -> Decision {
    if let reason = objection(to: content) ?? codingObjection(to: answer.head) {
      return .reject(.fail(answer.error(reason)), .stop)
    }
    let index = answer.mirror
    let same = Decision.take(body, content, isConfirmed ? .confirmed : .agrees)
    if mirrors.count > 1, let pinned = version, mirrors[index].content == nil {
      switch mirrors.judge(content, from: index, pinned: pinned, now: .now) {
      case .same, .unproven, .declined: return same
      case .contradicts(let reason) where isConfirmed || mirrors.hasTrusted(besides: index):
        return .reject(.fail(answer.error(reason, .changed)), .stop)
      // For bytes of an earlier run, the last mirror that is left decides.
      case .contradicts, .ordinary: break
      }
    }
    if let pinned = mirrors.count > 1 ? mirrors[index].content ?? version : version {
      switch pinned.compare(content) {
      case .same: return same
      case .unknown where isConfirmed && !pinned.isTooFresh:
        return answer.retry(ResponseFault.noValidator)
      case .different, .unknown:
        return isConfirmed ? answer.changed(.stop) : .take(body, content, .startsOver)
      }
    }
    if !isSingleStream, content.isTooFresh, allowance.mayAwaitDate() {
      return answer.retry(
        "the remote file was modified this very second", after: FetchConstants.freshAnswerDelay)
    }
    return .take(body, content, .begins)
  }

  /// Why the body of a response cannot be decoded; nil if it can, or is kept as it arrives.
  private func codingObjection(to head: HTTPResponse) -> String? {
    guard request.decodesContent, request.method != .head else { return nil }
    do throws(DecodingFailure) {
      _ = try ContentCoding.list(of: head.headerFields)
      return nil
    } catch {
      return error.description
    }
  }

  /// Why a response cannot belong to the wanted file, whatever its server says; nil if it can.
  private func objection(to content: ContentVersion) -> String? {
    guard let length = content.completeLength, request.range == nil, !request.decodesContent else {
      return nil
    }
    if let wanted = request.completeLength, wanted != length {
      return "the server's file has \(length) bytes, not \(wanted)"
    }
    if let hashes, !hashes.covers(length: length) {
      return "the server's file has \(length) bytes, and the hashes are of another number of pieces"
    }
    return nil
  }
}
