internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes
internal import Synchronization

/// The one question that a file has to its server at a time: what is it now?
extension RemoteFile {
  /// Asks the server about the file, or joins those who wait for its answer already; the answer may
  /// bring the first `byteCount` bytes.
  func contact(
    byteCount: Int64 = FileSettings.firstContactByteCount,
    by deadline: ContinuousClock.Instant? = nil, _ waiter: @escaping Waiter
  ) {
    let now = ContinuousClock.now
    let first = state.withLock { state -> (id: ContactID, delay: Duration)? in
      // A server that does not answer must not hold up a reader of cached bytes for long.
      let hasCached = state.current?.hasCachedBytes == true && !state.isDoubted
      var patience = environment.settings.readTimeout
      if hasCached { patience = min(patience, FileSettings.confirmationPatience) }
      let own = now + patience
      let waiting = Waiting(answer: waiter, deadline: min(own, deadline ?? own))
      if state.contact != nil {
        state.contact?.join(waiting, hasCached: hasCached)
        return nil
      }
      state.lastContact += 1
      state.mustAsk = false
      var contact = Contact(
        id: ContactID(rawValue: state.lastContact), waiters: [waiting], byteCount: byteCount,
        deadline: waiting.deadline,
        limit: hasCached ? now + FileSettings.confirmationPatience : nil)
      contact.mirror = mirrors?.change { $0.contact(except: [], now: now) } ?? 0
      state.contact = contact
      return (contact.id, state.isDoubted ? state.contradictions.delay(now: now) : .zero)
    }
    guard let first else { return }
    environment.watch(self)
    if first.delay > .zero { return askLater(first.id, after: first.delay) }
    sendContact(first.id)
  }

  /// Sends the question `id`, unless it has been answered meanwhile; `whole` asks without a range,
  /// because one brought no length.
  func sendContact(_ id: ContactID, whole: Bool = false) {
    let (known, contact, base) = state.withLock {
      ($0.current, $0.contact?.id == id ? $0.contact : nil, $0.location.base)
    }
    guard let contact else { return }
    let byteCount = contact.byteCount
    guard let url = contact.mirror == 0 ? base : url(ofMirror: contact.mirror) else {
      // The signer's answer sends the question.
      state.withLock { if $0.contact?.id == id { $0.contact?.awaitsURL = true } }
      return sign()
    }
    let first = 0..<byteCount
    let wanted = known == nil ? first : known?.firstUnrequested(in: first)
    // Where nothing is wanted but the confirmation, 304 costs no body. Not by the date: a server also
    // answers 304 for an older file that has taken the place of a newer one (RFC 9110 §13.1.3).
    var request = request(
      range: whole ? nil : wanted ?? 0..<1, at: url, mirror: contact.mirror)
    // A weak tag is a server's own, and says nothing of another server's bytes.
    if wanted == nil, let tag = known?.content.entityTag, mirrors == nil || !tag.isWeak {
      request.fields[fields: .ifNoneMatch] = [tag.field(.ifNoneMatch)]
    }
    let receiver = ContactReceiver(
      id: id, file: self, known: known, asked: request.range, mirror: contact.mirror,
      askedURL: url)
    state.withLock { state in
      guard state.contact?.id == id else { return }
      state.contact?.sentAt = nil
      if state.contact?.askedAt == nil { state.contact?.askedAt = .now }
    }
    let transfer = environment.client.start(request, receiver: receiver)
    state.withLock { if $0.contact?.id == id { $0.contact?.transfer = transfer } }
  }

  /// The server `mirror` has described the file, or with `isConfirmation` has said that it has not
  /// changed.
  ///
  /// - Returns: the version that it described: the current one, if it is still that.
  func adopt(
    _ content: ContentVersion, from mirror: Int, isConfirmation: Bool = false
  ) -> RemoteVersion {
    // A first version may be the one of a record that could not be read before; its identity decides
    // when it is opened, where it has one.
    let (isFirst, listedID) = state.withLock {
      ($0.current == nil, $0.listed?.takeID(ofLength: content.completeLength))
    }
    let isIdentified = content.strength != .unverifiable || content.completeLength != nil
    let candidate = RemoteVersion(
      file: self, content: content, id: listedID, mayHaveRecord: isFirst && isIdentified)
    let (version, replaced) = state.withLock { state -> (RemoteVersion, RemoteVersion?) in
      state.confirmedAt = .now
      state.isDoubted = false
      state.recentFailure = nil
      if let current = state.current {
        if isConfirmation && current.content == content
          || isSame(current, content, from: mirror) && current.canContinue(with: content)
        {
          return (current, nil)
        }
        state.current = candidate
        return (candidate, current)
      }
      state.setFirst(candidate)
      return (candidate, nil)
    }
    environment.noteAnswer(of: source.url.origin)
    mirrors?.change {
      $0.answered(mirror)
      $0.readmit(mirror)
      if version === candidate {
        $0.defined(content, by: mirror)
      } else if isConfirmation {
        // That is an answer about these validators.
        _ = $0.judge(content, from: mirror, pinned: content, now: .now)
      }
    }
    replaced?.supersede()
    if version === candidate {
      version.followWishes()
    } else {
      version.reinstate()
      version.learn(length: content.completeLength)
    }
    statistics.withLock { $0.isOffline = false }
    return version
  }

  /// A response that described `version` has come to its end: until now that was the server's word.
  func responseEnded(of version: RemoteVersion) {
    state.withLock { if $0.current === version, !$0.isDoubted { $0.confirmedAt = .now } }
  }

  /// The server has confirmed `version`.
  func confirm(_ version: RemoteVersion, by mirror: Int) {
    _ = adopt(version.content, from: mirror, isConfirmation: true)
  }

  /// The length is not known before the body's end: `version` is the answer unless that comes soon.
  func answerProvisionally(_ id: ContactID, _ version: RemoteVersion) {
    state.withLock {
      guard $0.contact?.id == id else { return }
      $0.contact?.provisional = (version, .now + FileSettings.unknownLengthPatience)
    }
  }

  /// Ends a question whose time is up; on the network thread.
  ///
  /// - Returns: whether there still is one.
  func expireContact(now: ContinuousClock.Instant) -> Bool {
    guard let contact = state.withLock({ $0.contact }) else { return false }
    let error =
      contact.awaitsURL
      ? FileError(.unsigned, "the URL command has not answered in time")
      : FileError(.timedOut, "no answer from the server")
    if let provisional = contact.provisional, min(provisional.at, contact.firstDeadline) <= now {
      endContact(contact.id, .success(provisional.version))
    } else if contact.deadline <= now {
      if contact.hasWaited(for: FileSettings.silencePatience(environment.settings), now: now) {
        environment.noteSilence(of: source.url.origin)
      }
      if endContact(contact.id, .failure(error), ifExpiredBy: now), let transfer = contact.transfer
      {
        environment.client.cancel(transfer)
      }
    } else if contact.limit == nil || mirrors?.hasReady(besides: contact.mirror, now: now) == true,
      contact.provisional == nil, let transfer = contact.transfer, let sentAt = contact.sentAt,
      now - sentAt >= responsePatience(with: contact.mirror, now: now)
    {
      // Its receiver hears of that, and asks again.
      state.withLock { if $0.contact?.id == contact.id { $0.contact?.transfer = nil } }
      environment.client.cancel(transfer)
    }
    // The others wait on.
    let late = state.withLock { state in
      state.contact?.id == contact.id ? state.contact?.takeLate(now: now) ?? [] : []
    }
    for waiting in late { waiting.answer(.failure(error)) }
    return state.withLock { $0.contact != nil }
  }

  /// How long a response of the server `mirror` may bring nothing before it is given up.
  func responsePatience(with mirror: Int, now: ContinuousClock.Instant) -> Duration {
    let patience = environment.settings.responsePatience
    return mirrors?.patience(patience, with: mirror, now: now) ?? patience
  }

  /// The process was suspended for `delay`, during which no server could answer.
  func postpone(by delay: Duration) {
    state.withLock {
      $0.contact?.postpone(by: delay)
    }
  }

  /// Whether the answer `content` to the question `id` is to be heard a second time: it contradicts
  /// the current version, and several servers of a host may disagree about the same bytes.
  func wantsSecondOpinion(
    _ id: ContactID, on content: ContentVersion, from mirror: Int
  ) -> Bool {
    state.withLock { state in
      guard state.contact?.id == id, state.contact?.contradiction == nil,
        let current = state.current, current.hasCachedBytes,
        !isSame(current, content, from: mirror)
      else { return false }
      state.contact?.contradiction = content
      return true
    }
  }

  /// Answers everyone who waits for the server's word on the question `id`; nothing happens if they
  /// have been answered already.
  func endContact(_ id: ContactID, _ result: Result<RemoteVersion, FileError>) {
    _ = endContact(id, result, ifExpiredBy: nil)
  }

  /// As ``endContact(_:_:)``, unless somebody waits for longer than `moment`.
  ///
  /// - Returns: whether the question has ended now.
  func endContact(
    _ id: ContactID, _ result: Result<RemoteVersion, FileError>,
    ifExpiredBy moment: ContinuousClock.Instant?
  ) -> Bool {
    let now = ContinuousClock.now
    let waiters = state.withLock { state -> [Waiting]? in
      guard let contact = state.contact, contact.id == id else { return nil }
      // One more may have joined since it was seen to be late.
      if let moment, contact.deadline > moment { return nil }
      state.contact = nil
      switch result {
      case .success(let version): if state.current === version { state.confirmedAt = now }
      case .failure(let error):
        state.recentFailure = (error, now + FileSettings.failureMemory)
      }
      return contact.waiters
    }
    guard let waiters else { return false }
    guard !waiters.isEmpty else { return true }
    if case .failure(let error) = result {
      noteFailure(error, isRetried: false)
      statistics.withLock { $0.isOffline = true }
    }
    for waiting in waiters { waiting.answer(result) }
    return true
  }

  /// The question `id` to the server `mirror` failed; asks another one, or again if that may help and
  /// there is time.
  func contactFailed(
    _ id: ContactID, _ error: FileError, from mirror: Int, retryAfter: Duration?
  ) {
    guard state.withLock({ $0.contact?.id == id && $0.contact?.mirror == mirror }) else { return }
    mirrors?.failed(mirror, error, retryAfter: retryAfter)
    if askNextMirror(id, error, after: mirror) {
      noteFailure(error, isRetried: true)
      return environment.client.perform { [weak self] in self?.sendContact(id) }
    }
    let error = takeContactFailures(id) ?? error
    let now = ContinuousClock.now
    let policy = environment.retryPolicy
    let delay = state.withLock { state -> Duration? in
      guard var contact = state.contact, contact.id == id else { return nil }
      contact.failureCount += 1
      let isUnreachable = error.code == .unreachable || error.code == .disconnected
      if isUnreachable, contact.unreachableSince == nil {
        contact.unreachableSince = now
      }
      defer { state.contact = contact }
      switch error.code {
      case .unreachable, .disconnected:
        guard let since = contact.unreachableSince,
          now - since < FileSettings.unreachablePatience
        else { return nil }
      case .timedOut, .invalidResponse, .unavailable, .unsigned: break
      case .missing, .denied, .stale, .refused, .corrupt, .tooManyFiles, .cacheFailed, .unmounted:
        return nil
      }
      // What is cached need not wait for a server that is in trouble.
      if state.current?.hasCachedBytes == true, !state.isDoubted { return nil }
      let delay = policy.delay(
        failures: contact.failureCount, retryAfter: retryAfter, random: .random(in: 0..<1))
      return now + delay < contact.deadline ? delay : nil
    }
    guard let delay else { return endContact(id, .failure(error)) }
    noteFailure(error, isRetried: true)
    environment.client.schedule(after: delay) { [weak self] in self?.sendContact(id) }
  }

  /// Has the question `id` put to the next server of the file.
  ///
  /// - Returns: whether there is one that has not been asked yet.
  private func askNextMirror(_ id: ContactID, _ error: FileError, after mirror: Int) -> Bool {
    guard let mirrors, mirrors.count > 1, error.isOfServer else { return false }
    return state.withLock { state in
      guard state.contact?.id == id, let deadline = state.contact?.deadline else { return false }
      state.contact?.failures.append((mirror, error))
      state.contact?.transfer = nil
      state.contact?.sentAt = nil
      let tried = Set((state.contact?.failures ?? []).map(\.index))
      guard ContinuousClock.now < deadline,
        let next = mirrors.change({ $0.contact(except: tried, now: .now) })
      else { return false }
      state.contact?.mirror = next
      return true
    }
  }

  /// All servers have failed to answer the question `id`: they may be asked again.
  ///
  /// - Returns: what to say of that.
  private func takeContactFailures(_ id: ContactID) -> FileError? {
    guard let mirrors else { return nil }
    let failures = state.withLock { state -> [(index: Int, error: FileError)] in
      guard let contact = state.contact, contact.id == id else { return [] }
      state.contact?.failures = []
      state.contact?.mirror = mirrors.change { $0.contact(except: [], now: .now) } ?? contact.mirror
      return contact.failures
    }
    return combined(failures)
  }

  /// The request of question `id` is being sent.
  func contactSent(_ id: ContactID) {
    state.withLock { if $0.contact?.id == id { $0.contact?.sentAt = .now } }
  }

  /// The request of question `id` is held back until `moment`, as the server has asked.
  ///
  /// What is cached need not wait for that, nor a question whose time is up before.
  func contactHeld(
    _ id: ContactID, until moment: ContinuousClock.Instant, from mirror: Int, transfer: ExchangeID
  ) {
    let seconds = Int(((moment - .now) / .seconds(1)).rounded(.up))
    let error = FileError(.unavailable, "the server has asked for no request for \(seconds) s")
    if mirrors?.hasReady(besides: mirror) == true {
      contactFailed(id, error, from: mirror, retryAfter: moment - .now)
      return environment.client.cancel(transfer)
    }
    let isHopeless = state.withLock { state -> Bool in
      guard let contact = state.contact, contact.id == id else { return true }
      let hasCached = state.current?.hasCachedBytes == true && !state.isDoubted
      return hasCached || contact.deadline <= moment
    }
    statistics.withLock { $0.lastError = error.reason }
    guard isHopeless else { return }
    environment.client.cancel(transfer)
    endContact(id, .failure(error))
  }

  /// How often an answer that proves nothing yet is asked for again: once more for a clock that lags.
  private static let freshAnswerLimit = 2

  /// Whether the question `id` may be put once more after `delay`, because its answer was of the second
  /// in which the file was modified.
  func mayAskLater(_ id: ContactID, after delay: Duration) -> Bool {
    state.withLock { state in
      guard let contact = state.contact, contact.id == id,
        contact.freshCount < Self.freshAnswerLimit, .now + delay < contact.deadline
      else { return false }
      state.contact?.freshCount += 1
      state.contact?.transfer = nil
      return true
    }
  }

  /// Whether the question `id`, which `url` has refused, is to be put to another URL, which the signer is
  /// to make: once.
  func mayAskAnotherURL(_ id: ContactID, after url: RemoteURL) -> Bool {
    state.withLock { state in
      guard state.location.isSigned, let contact = state.contact, contact.id == id,
        !contact.hasNewURL
      else { return false }
      state.contact?.hasNewURL = true
      return state.location.noteRefusal(of: url, now: .now) == .expired
    }
  }

  /// Sends the question that waits for the signer, or fails it.
  ///
  /// - Returns: whether there is one.
  func signerAnswered(_ failure: FileError?) -> Bool {
    let id = state.withLock { state -> ContactID? in
      guard let contact = state.contact, contact.awaitsURL else { return nil }
      state.contact?.awaitsURL = false
      if failure == nil { state.contact?.hasNewURL = true }
      return contact.id
    }
    guard let id else { return false }
    if let failure {
      contactFailed(id, failure, from: 0, retryAfter: nil)
    } else {
      sendContact(id)
    }
    return true
  }

  func askLater(_ id: ContactID, after delay: Duration) {
    environment.client.schedule(after: delay) { [weak self] in self?.sendContact(id) }
  }

  /// Whether not to believe the answer `content` to the question `id`, which looks like another
  /// document; the third such answer is believed.
  ///
  /// A version with a strong validator is given up only for answers that have one, too, the same
  /// each time: a page that stands in for a file has none.
  func doubts(_ content: ContentVersion, to id: ContactID) -> Bool {
    state.withLock { state in
      guard let contact = state.contact, contact.id == id else { return false }
      if state.current?.content.strength == .strong {
        guard content.strength == .strong else { return true }
        if let last = contact.doubted, last.compare(content) != .same {
          state.contact?.doubtCount = 0
        }
      }
      state.contact?.doubted = content
      guard let count = state.contact?.doubtCount, count < FileSettings.doubtfulAnswerLimit else {
        return false
      }
      state.contact?.doubtCount = count + 1
      return true
    }
  }

  /// A response has shown another version than `version`.
  func versionContradicted(_ version: RemoteVersion) {
    state.withLock { state in
      guard state.current === version else { return }
      // Several requests that meet the same answer count as one contradiction.
      if !state.isDoubted { state.contradictions.note(now: .now) }
      state.isDoubted = true
      state.confirmedAt = nil
    }
    noteFailure(FileError(.stale, "the remote file has changed"), isRetried: false)
    version.supersede()
  }
}

extension RemoteFile.Contact {
  /// One more waits for the answer.
  ///
  /// Where all have cached bytes they do not keep a question alive that a silent connection swallowed: the
  /// next one is sent on another.
  mutating func join(_ waiting: RemoteFile.Waiting, hasCached: Bool) {
    waiters.append(waiting)
    if !hasCached { limit = nil }
    deadline = max(deadline, min(waiting.deadline, limit ?? waiting.deadline))
  }

  /// Whether the server has had `patience` to answer.
  ///
  /// An expired deadline does not show that: the one who asked may have had little time left, and a
  /// question that waits for the signer, or for its turn, was not sent.
  func hasWaited(for patience: Duration, now: ContinuousClock.Instant) -> Bool {
    guard !awaitsURL, let askedAt else { return false }
    return now - askedAt >= patience
  }

  /// When the first of those who wait gives up.
  var firstDeadline: ContinuousClock.Instant { waiters.map(\.deadline).min() ?? deadline }

  /// Removes and returns those whose deadline has passed; the others stay.
  mutating func takeLate(now: ContinuousClock.Instant) -> [RemoteFile.Waiting] {
    let late = waiters.filter { $0.deadline <= now }
    waiters.removeAll { $0.deadline <= now }
    return late
  }

  /// Moves all deadlines by `delay`: no server could answer during that time.
  mutating func postpone(by delay: Duration) {
    for index in waiters.indices { waiters[index].deadline += delay }
    deadline += delay
    limit = limit.map { $0 + delay }
    askedAt = askedAt.map { $0 + delay }
    sentAt = sentAt.map { $0 + delay }
  }
}
