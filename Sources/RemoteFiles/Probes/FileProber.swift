internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes
internal import Synchronization

/// Asks the server of a file what the file is now; ``FileProbe`` decides, and this type acts.
struct FileProber: Sendable {
  let file: any ProbedFile

  var context: FileContext { file.context }
  var environment: MountEnvironment { context.environment }
  /// Processes the answers.
  var adopter: VersionAdopter { VersionAdopter(file: file) }
  private var state: GuardedKnowledge { file.state }
  private var mirrors: SharedMirrors? { context.mirrors }

  // MARK: Requests

  /// Asks the server about the file, or waits for the answer to the question under way.
  ///
  /// The answer may bring the first `byteCount` bytes.
  func join(
    byteCount: Int64 = FileSettings.firstProbeByteCount,
    by deadline: ContinuousClock.Instant? = nil, _ waiter: @escaping Probe<RemoteVersion>.Waiter
  ) {
    let now = ContinuousClock.now
    let first = state.withLock { state -> (id: ProbeID, delay: Duration)? in
      // A server that does not answer must not delay a reader of cached bytes for long.
      let hasCached = state.hasBelievedBytes
      var timeout = environment.settings.readTimeout
      if hasCached { timeout = min(timeout, FileSettings.confirmationTimeout) }
      let own = now + timeout
      let waiting = FileProbe.Waiting(answer: waiter, deadline: min(own, deadline ?? own))
      let limit = hasCached ? now + FileSettings.confirmationTimeout : nil
      let id = state.probe.join(waiting, limit: limit, byteCount: byteCount) {
        mirrors?.change { $0.contact(except: [], now: now) } ?? 0
      }
      guard let id else { return nil }
      state.mustAsk = false
      return (id, state.isDoubted ? state.contradictions.delay(now: now) : .zero)
    }
    guard let first else { return }
    environment.clock.watch(file)
    if first.delay > .zero { return send(first.id, after: first.delay) }
    send(first.id)
  }

  func send(_ id: ProbeID, after delay: Duration) {
    environment.client.schedule(after: delay) { [weak file] in
      if let file { FileProber(file: file).send(id) }
    }
  }

  /// Sends the question `id`, unless it has ended.
  ///
  /// With `whole` it asks without a range, because a range brought no length.
  func send(_ id: ProbeID, whole: Bool = false) {
    let (known, asked) = state.withLock {
      ($0.current, $0.probe.request(id))
    }
    guard let asked else { return }
    guard let url = context.servers.base(ofMirror: asked.mirror) else {
      // The signer's answer sends the question.
      state.withLock { $0.probe.awaitURL(id) }
      return sign()
    }
    let first = 0..<asked.byteCount
    let wanted = known == nil ? first : known?.firstUnrequested(in: first)
    // If only the confirmation is wanted, 304 saves the body. The condition is not a date: a server
    // also answers 304 for an older file that has replaced a newer one (RFC 9110 §13.1.3).
    var request = context.request(
      range: whole ? nil : wanted ?? 0..<1, at: url, mirror: asked.mirror)
    // A weak tag is a server's own, and says nothing about another server's bytes.
    if wanted == nil, let tag = known?.content.entityTag, mirrors == nil || !tag.isWeak {
      request.fields[fields: .ifNoneMatch] = [tag.field(.ifNoneMatch)]
    }
    let receiver = ProbeReceiver(
      id: id, prober: self, known: known, asked: request.range, mirror: asked.mirror, askedURL: url)
    state.withLock { $0.probe.begin(id, now: .now) }
    let exchange = environment.client.start(request, receiver: receiver)
    state.withLock { $0.probe.started(id, as: exchange) }
  }

  /// Records that the request of question `id` has a slot at its server.
  func connecting(_ id: ProbeID) { state.withLock { $0.probe.connecting(id, now: .now) } }

  /// Records that the request of question `id` is being sent.
  func sent(_ id: ProbeID) { state.withLock { $0.probe.sent(id, now: .now) } }

  /// Handles a request of question `id` that is held until `moment`, as the server has asked.
  ///
  /// A reader of cached bytes does not wait for that, nor does a question with an earlier deadline.
  func held(
    _ id: ProbeID, until moment: ContinuousClock.Instant, from mirror: Int, exchange: ExchangeID
  ) {
    let seconds = Int(((moment - .now) / .seconds(1)).rounded(.up))
    let error = FileError(.unavailable, "the server has asked for no request for \(seconds) s")
    if mirrors?.hasReady(besides: mirror) == true {
      failed(id, error, from: mirror, retryAfter: moment - .now)
      return environment.client.cancel(exchange)
    }
    let isHopeless = state.withLock {
      $0.probe.held(id, until: moment)
      return $0.probe.ends(id, before: moment) || $0.hasBelievedBytes
    }
    context.recordDelay(error)
    guard isHopeless else { return }
    environment.client.cancel(exchange)
    end(id, .failure(error))
  }

  /// Handles the signer's answer: sends the question that waits for its URL, or fails it.
  ///
  /// - Returns: whether a question waited.
  func signerAnswered(_ failure: FileError?) -> Bool {
    guard let id = state.withLock({ $0.probe.takeURL(hasFailed: failure != nil) }) else {
      return false
    }
    if let failure {
      failed(id, failure, from: 0, retryAfter: nil)
    } else {
      send(id)
    }
    return true
  }

  // MARK: Inconclusive responses

  /// Whether the answer `content` to the question `id` must be confirmed by another answer.
  ///
  /// It must if it contradicts the current version: the servers of a host may disagree about the
  /// same bytes.
  func wantsSecondOpinion(
    _ id: ProbeID, on content: ContentVersion, from mirror: Int
  ) -> Bool {
    state.withLock { state in
      guard state.probe.wantsSecondOpinion(id), let current = state.current,
        current.hasCachedBytes, !adopter.isSame(current, content, from: mirror)
      else { return false }
      return state.probe.takeSecondOpinion(id)
    }
  }

  /// Whether the question `id` may be sent again after `delay`, because its answer is from the same
  /// second in which the file was modified.
  func mayAskLater(_ id: ProbeID, after delay: Duration) -> Bool {
    state.withLock { $0.probe.takeFreshRetry(id, after: delay, now: .now) }
  }

  /// Whether the question `id`, which `url` has refused, is sent to another URL from the signer;
  /// once.
  func mayAskAnotherURL(_ id: ProbeID, after url: RemoteURL) -> Bool {
    guard context.servers.isSigned, state.withLock({ $0.probe.takeNewURL(id) }) else {
      return false
    }
    return context.recordRefusal(of: url, mirror: 0) == .expired
  }

  /// Whether to reject the answer `content` to the question `id`, which looks like another
  /// document.
  func doubts(_ content: ContentVersion, to id: ProbeID) -> Bool {
    state.withLock { state in
      let isKnownStrong = state.current?.content.strength == .strong
      return state.probe.doubts(content, to: id, isKnownStrong: isKnownStrong)
    }
  }

  /// Makes `version` the answer, unless the end of the body brings the length soon.
  func answerProvisionally(_ id: ProbeID, _ version: RemoteVersion) {
    state.withLock {
      $0.probe.answerProvisionally(
        id, version, at: .now + FileSettings.unknownLengthTimeout)
    }
  }

  // MARK: Failures

  /// Handles a failure of the question `id` to the server `mirror`: asks another server, or
  /// retries.
  ///
  /// It retries only if that may help and there is time.
  func failed(_ id: ProbeID, _ error: FileError, from mirror: Int, retryAfter: Duration?) {
    guard state.withLock({ $0.probe.isAsking(id, mirror: mirror) }) else { return }
    if error.isOfServer { mirrors?.failed(mirror, error, retryAfter: retryAfter) }
    let isGone = context.recordOutage(error, from: mirror)
    if askNextMirror(id, error, after: mirror) {
      context.recordFailure(error, isRetried: true)
      return environment.client.perform { [weak file] in
        if let file { FileProber(file: file).send(id) }
      }
    }
    var error = takeFailures(id) ?? error
    if isGone { error = error.ofOutage }
    let policy = environment.retryPolicy
    let limit = environment.settings.firstAnswerTimeout
    let delay = state.withLock { state -> Duration? in
      let firstAnswerLimit = state.current == nil ? limit : nil
      // A reader of cached bytes need not wait for a server in trouble.
      guard !state.hasBelievedBytes, !isGone else { return nil }
      return state.probe.retryDelay(
        after: error, of: id,
        unreachableLimit: error.code == .exhausted ? limit : firstAnswerLimit,
        firstAnswerLimit: firstAnswerLimit, retryAfter: retryAfter, policy: policy,
        random: .random(in: 0..<1), now: .now)
    }
    guard let delay else { return end(id, .failure(error)) }
    context.recordFailure(error, isRetried: true)
    send(id, after: delay)
  }

  /// Chooses the next server of the file for the question `id`.
  ///
  /// - Returns: whether a server is left that has not been asked.
  private func askNextMirror(_ id: ProbeID, _ error: FileError, after mirror: Int) -> Bool {
    guard let mirrors, mirrors.count > 1, error.isOfServer else { return false }
    return state.withLock { state in
      state.probe.takeNextMirror(id, after: mirror, error, now: .now) { tried in
        mirrors.change { $0.contact(except: tried, now: .now) }
      }
    }
  }

  /// Takes the failures of all servers to answer the question `id`; they may then be asked again.
  ///
  /// - Returns: one error for all of them.
  private func takeFailures(_ id: ProbeID) -> FileError? {
    guard let mirrors else { return nil }
    let failures = state.withLock { state in
      state.probe.takeFailures(id) { mirrors.change { $0.contact(except: [], now: .now) } }
    }
    return mirrors.combined(failures)
  }

  // MARK: Completion

  /// Answers all callers that wait for the question `id`; does nothing if it has ended.
  func end(_ id: ProbeID, _ result: Result<RemoteVersion, FileError>) {
    deliver(result, to: state.withLock { $0.endProbe(id, result, now: .now) })
  }

  /// Answers the waiters of a question that has ended; `end` is nil if it had ended before.
  private func deliver(_ result: Result<RemoteVersion, FileError>, to end: ProbeEnd?) {
    guard let end, !end.waiters.isEmpty else { return }
    if case .failure(let error) = result {
      context.recordFailure(error, isRetried: false)
      context.recordOffline(true)
    }
    for waiting in end.waiters { waiting.answer(result) }
  }

  private typealias ProbeEnd = Probe<RemoteVersion>.End

  // MARK: Timers

  func expire(now: ContinuousClock.Instant) -> Bool {
    // One lock for what is due and the end: a waiter that joins later starts its own question.
    let (overdue, end, late, lateness) = state.withLock {
      state -> (FileProbe.Overdue?, ProbeEnd?, [FileProbe.Waiting], FileError) in
      let lateness = state.probe.lateness
      guard let mirror = state.probe.mirror else { return (nil, nil, [], lateness) }
      let overdue = state.probe.overdue(
        now: now, timeout: context.servers.responseTimeout(with: mirror, now: now),
        hasOther: mirrors?.hasReady(besides: mirror, now: now) == true,
        silenceTimeout: FileSettings.silenceTimeout(environment.settings))
      switch overdue {
      case .answer(let id, let version):
        return (overdue, state.endProbe(id, .success(version), now: now), [], lateness)
      case .fail(let id, _):
        return (overdue, state.endProbe(id, .failure(lateness), now: now), [], lateness)
      case .cancel, nil:
        return (overdue, nil, state.probe.takeLate(now: now), lateness)
      }
    }
    switch overdue {
    case .answer(_, let version): deliver(.success(version), to: end)
    case .fail(_, let isSilent):
      if isSilent { environment.silentServers.recordSilence(of: context.source.url.origin) }
      deliver(.failure(lateness), to: end)
      if let exchange = end?.exchange { environment.client.cancel(exchange) }
    case .cancel(let exchange): environment.client.cancel(exchange)
    case nil: break
    }
    for waiting in late { waiting.answer(.failure(lateness)) }
    return state.withLock { $0.probe.isAsking }
  }

  func postpone(by delay: Duration) { state.withLock { $0.probe.postpone(by: delay) } }

  // MARK: URL signing

  /// Has the signer make a URL; one run at a time.
  func sign() {
    guard let signer = environment.settings.signer else { return }
    let source = context.source
    guard context.servers.beginSigning() else { return }
    signer.sign(source.url, name: source.path) { [self] result in
      environment.client.perform { [self] in finishSigning(of: source.url, result) }
    }
  }

  private func finishSigning(
    of listed: RemoteURL, _ result: Result<RemoteURL, URLSigningError>
  ) {
    var failure: FileError?
    // The list may have another URL by now.
    if context.servers.endSigning(of: listed, result), case .failure(let error) = result {
      failure = FileError(.unsigned, error.description)
    }
    let isAwaited = signerAnswered(failure)
    // The last URL stays in use until it is refused.
    if let failure, !isAwaited { context.recordFailure(failure, isRetried: true) }
  }
}
