public import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import HTTPTypes
internal import Logging
internal import MountStatus
internal import RangeCache
internal import Synchronization

/// One file of the mount: a source, and the version of it that is current.
///
/// Versions come and go: each has inode, extents and readers of its own. The file knows which one
/// a new `open` gets, and asks the server about that, one question at a time.
///
/// Lock order: `looking` (over I/O) → `state` → a version's state; `statistics` and `wishes` are leaves. No lock is
/// held over a call into the client, a waiter or, but for `looking`, the cache.
public final class RemoteFile: Sendable {
  /// Where it comes from now: a list that is read again may bring another URL of the same file.
  public var source: FileSource { sourceState.withLock { $0 } }
  /// A leaf.
  let sourceState: Mutex<FileSource>
  public let environment: FileEnvironment
  public let cacheKey: CacheKey
  /// The servers of the file; nil where the list says no more of it than a URL.
  let mirrors: MirrorBoard?

  /// Guards the opening and creation of the cache entry, which is I/O, for all versions of the file:
  /// they share its name.
  ///
  /// Not on the path of a read.
  let loading = Mutex(())
  /// Whether the cache has been asked, which is I/O: before `state`, and not on the path of a read.
  private let looking = Mutex(false)
  let state: Mutex<State>
  private let statistics = Mutex(FileStatistics())
  /// A leaf, also below a version's state.
  let wishes = Mutex(FileWishes())
  /// What bounds the bytes per second of all its requests.
  let rateLimit: RateLimit
  /// How often it has been pinned or unpinned.
  let pinRequests = Atomic<Int>(0)

  /// One who waits for an answer of the server.
  typealias Waiter = @Sendable (Result<RemoteVersion, FileError>) -> Void

  struct State {
    var current: RemoteVersion?
    /// What a listing says, while there is no version.
    var listed: Listed?
    /// When the server last confirmed the current version.
    var confirmedAt: ContinuousClock.Instant?
    /// Whether a response has contradicted the current version.
    var isDoubted = false
    /// Whether the user wants the server to be asked whatever is known.
    var mustAsk = false
    fileprivate var contact: Contact?
    fileprivate var lastContact = 0
    var recentFailure: (error: FileError, until: ContinuousClock.Instant)?
    /// Which URL is asked.
    var location: ResourceLocation
    /// Whether the signer is at work for this file.
    var isSigning = false

    fileprivate init(location: ResourceLocation) { self.location = location }

    mutating func setFirst(_ version: RemoteVersion) {
      current = version
      // Its number is taken.
      listed = nil
    }
  }

  /// A question to the server, from the first who asks to the answer.
  fileprivate struct Contact {
    let id: ContactID
    var waiters: [Waiter]
    /// How much of the file's start the answer may bring.
    let byteCount: Int64
    var deadline: ContinuousClock.Instant
    /// When the request was sent; it is given up and sent again where it brings no answer.
    var sentAt: ContinuousClock.Instant?
    /// Whether there is time for that.
    let mayRepeat: Bool
    /// Which of the file's servers is being asked.
    var mirror = 0
    /// Those that have failed to answer, since all of them were last asked.
    var failures: [(index: Int, error: FileError)] = []
    /// A version that differs from the current one, as an answer said that is to be confirmed.
    var contradiction: ContentVersion?
    /// What is answered at a moment before the deadline, if nothing better is known by then.
    var provisional: (version: RemoteVersion, at: ContinuousClock.Instant)?
    var transfer: ExchangeID?
    var failureCount = 0
    var unreachableSince: ContinuousClock.Instant?
    /// How often an answer was too fresh to prove anything.
    var freshCount = 0
    /// Whether the last URL has refused, and another one was made for this question.
    var hasNewURL = false
    /// Whether it waits for the signer.
    var awaitsURL = false
  }

  public init(source: FileSource, cacheKey: CacheKey, environment: FileEnvironment) {
    sourceState = Mutex(source)
    state = Mutex(
      State(
        location: ResourceLocation(
          listed: source.url, isSigned: environment.settings.signer != nil)))
    self.cacheKey = cacheKey
    self.environment = environment
    rateLimit = RateLimit(bytesPerSecond: environment.listedRateLimit(of: source))
    mirrors = source.details.flatMap { details in
      guard details.describesContent else { return nil }
      return MirrorBoard(
        url: source.url, details: details, isSigned: environment.settings.signer != nil)
    }
  }

  // MARK: Lookup and open

  /// The version that a name shows: the current one, from the cache's record where there is one,
  /// else as the server says.
  ///
  /// Answers at once or on the network thread.
  public func resolve(_ answer: @escaping @Sendable (Result<RemoteVersion, FileError>) -> Void) {
    loadFromCacheOnce()
    let now = ContinuousClock.now
    let (known, believed) = state.withLock {
      state -> (Result<RemoteVersion, FileError>?, RemoteVersion?) in
      if state.mustAsk { return (nil, state.isDoubted ? nil : state.current) }
      if let current = state.current, !state.isDoubted { return (.success(current), nil) }
      if let failure = state.recentFailure, now < failure.until {
        return (.failure(failure.error), nil)
      }
      return (nil, nil)
    }
    if let known { return answer(known) }
    contact { result in
      if case .failure(let error) = result, let believed, Self.openError(error, believed) == nil {
        return answer(.success(believed))
      }
      answer(result)
    }
  }

  /// Learns what a lookup will ask, with as little of the body as a request can bring.
  public func probe(_ done: @escaping @Sendable () -> Void) {
    loadFromCacheOnce()
    if isKnown { return done() }
    contact(byteCount: 1) { _ in done() }
  }

  /// Whether a lookup can be answered without the network.
  public var isKnown: Bool {
    state.withLock { $0.current != nil && !$0.isDoubted && !$0.mustAsk }
  }

  /// Has the server asked by the next lookup or open, whatever it has said before.
  public func refresh() { state.withLock { $0.mustAsk = true } }

  /// The version that is current now, if the file has been looked at.
  var current: RemoteVersion? { state.withLock { $0.current } }

  /// Opens `version`: revalidates it unless the server has confirmed it just now.
  ///
  /// Answers nil when the version is current, or cannot be confirmed but has cached bytes; an
  /// error else, which is `stale` when another version has taken its place.
  public func open(
    _ version: RemoteVersion, _ answer: @escaping @Sendable (FileError?) -> Void
  ) {
    let now = ContinuousClock.now
    // What nothing can confirm is believed for as long as an open takes after the answer.
    let interval = max(
      environment.settings.revalidationInterval,
      version.isUnidentified ? FileSettings.failureMemory : .zero)
    let known = state.withLock { state -> FileError?? in
      guard state.current === version else {
        return .some(FileError(.stale, "the remote file has changed"))
      }
      if state.isDoubted { return .none }
      // The server is describing it right now.
      if version.isStreaming { return .some(nil) }
      if state.mustAsk { return .none }
      if let at = state.confirmedAt, now - at <= interval { return .some(nil) }
      if environment.isSilent(source.url.origin), version.hasCachedBytes { return .some(nil) }
      if let failure = state.recentFailure, now < failure.until {
        return .some(Self.openError(failure.error, version))
      }
      return .none
    }
    if case .some(let error) = known { return answer(error) }
    contact { result in
      switch result {
      case .success(let current) where current === version: answer(nil)
      case .success: answer(FileError(.stale, "the remote file has changed"))
      case .failure(let error): answer(Self.openError(error, version))
      }
    }
  }

  /// Whether a failed confirmation fails the open: a server that says no is believed, one that
  /// cannot be asked does not take away what is cached.
  private static func openError(_ error: FileError, _ version: RemoteVersion) -> FileError? {
    switch error.code {
    case .missing, .denied, .stale, .unmounted: error
    default: version.hasCachedBytes || version.length == 0 ? nil : error
    }
  }

  /// Takes up what an earlier mount has left in the cache.
  func loadFromCacheOnce() {
    // Whoever comes second waits for the first: the answer is there, not on the network.
    looking.withLock { hasLooked in
      if !hasLooked { hasLooked = loadFromCache() }
    }
  }

  /// - Returns: whether the cache could be asked.
  private func loadFromCache() -> Bool {
    do throws(CacheError) {
      guard let entry = try environment.cache.openEntry(cacheKey) else { return true }
      let content = entry.recoveredVersion
      let id = state.withLock { $0.listed?.takeID(ofLength: content.completeLength) }
      let version = RemoteVersion(file: self, content: content, id: id, record: entry)
      state.withLock { if $0.current == nil { $0.setFirst(version) } }
      version.followWishes()
      return true
    } catch {
      environment.logger.warning(
        "cannot open the cache entry", metadata: ["file": "\(source.path)", "error": "\(error)"])
      return false
    }
  }

  // MARK: Contact

  /// Asks the server about the file, or joins those who wait for its answer already; the answer may
  /// bring the first `byteCount` bytes.
  private func contact(
    byteCount: Int64 = FileSettings.firstContactByteCount, _ waiter: @escaping Waiter
  ) {
    let now = ContinuousClock.now
    let first = state.withLock { state -> ContactID? in
      if state.contact != nil {
        state.contact?.waiters.append(waiter)
        return nil
      }
      state.lastContact += 1
      state.mustAsk = false
      // What is cached is not kept waiting for long by a server that does not answer.
      let hasCached = state.current?.hasCachedBytes == true && !state.isDoubted
      let patience = environment.settings.readTimeout
      var contact = Contact(
        id: ContactID(rawValue: state.lastContact), waiters: [waiter], byteCount: byteCount,
        deadline: now
          + (hasCached ? min(patience, FileSettings.confirmationPatience) : patience),
        mayRepeat: !hasCached)
      contact.mirror = mirrors?.change { $0.contact(except: [], now: now) } ?? 0
      state.contact = contact
      return contact.id
    }
    guard let first else { return }
    environment.watch(self)
    sendContact(first)
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
    let wanted = known == nil ? first : known?.firstHole(in: first)
    // Where nothing is wanted but the confirmation, 304 costs no body. Not by the date: a server also
    // answers 304 for an older file that has taken the place of a newer one (RFC 9110 §13.1.3).
    var request = request(
      range: whole ? nil : wanted ?? 0..<1, at: url, mirror: contact.mirror)
    // A weak tag is a server's own, and says nothing of another server's bytes.
    if wanted == nil, let tag = known?.content.entityTag, mirrors == nil || !tag.isWeak {
      request.fields[.ifNoneMatch] = tag.field
    }
    let receiver = ContactReceiver(
      id: id, file: self, known: known, asked: request.range, mirror: contact.mirror,
      askedURL: url)
    state.withLock { if $0.contact?.id == id { $0.contact?.sentAt = nil } }
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
          || isSame(current.content, content, from: mirror) && current.canContinue(with: content)
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
    if version === candidate { version.followWishes() } else { version.reinstate() }
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
    if let provisional = contact.provisional, min(provisional.at, contact.deadline) <= now {
      endContact(contact.id, .success(provisional.version))
    } else if contact.deadline <= now {
      if !contact.awaitsURL { environment.noteSilence(of: source.url.origin) }
      let error =
        contact.awaitsURL
        ? FileError(.unsigned, "the URL command has not answered in time")
        : FileError(.timedOut, "no answer from the server")
      endContact(contact.id, .failure(error))
      if let transfer = contact.transfer { environment.client.cancel(transfer) }
    } else if contact.mayRepeat || mirrors?.hasReady(besides: contact.mirror, now: now) == true,
      contact.provisional == nil, let transfer = contact.transfer, let sentAt = contact.sentAt,
      now - sentAt >= responsePatience(with: contact.mirror, now: now)
    {
      // Its receiver hears of that, and asks again.
      state.withLock { if $0.contact?.id == contact.id { $0.contact?.transfer = nil } }
      environment.client.cancel(transfer)
    }
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
      $0.contact?.deadline += delay
      if let sentAt = $0.contact?.sentAt { $0.contact?.sentAt = sentAt + delay }
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
        !isSame(current.content, content, from: mirror)
      else { return false }
      state.contact?.contradiction = content
      return true
    }
  }

  /// Answers everyone who waits for the server's word on the question `id`; nothing happens if they
  /// have been answered already.
  func endContact(_ id: ContactID, _ result: Result<RemoteVersion, FileError>) {
    let now = ContinuousClock.now
    let waiters = state.withLock { state -> [Waiter] in
      guard let contact = state.contact, contact.id == id else { return [] }
      state.contact = nil
      switch result {
      case .success(let version): if state.current === version { state.confirmedAt = now }
      case .failure(let error):
        state.recentFailure = (error, now + FileSettings.failureMemory)
      }
      return contact.waiters
    }
    guard !waiters.isEmpty else { return }
    if case .failure(let error) = result {
      noteFailure(error, isRetried: false)
      statistics.withLock { $0.isOffline = true }
    }
    for waiter in waiters { waiter(result) }
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

  /// Asks the server about the file for somebody who wants to know where its bytes are.
  func askWhere(_ done: @escaping @Sendable (Result<RemoteVersion, FileError>) -> Void) {
    contact(done)
  }

  func askLater(_ id: ContactID, after delay: Duration) {
    environment.client.schedule(after: delay) { [weak self] in self?.sendContact(id) }
  }

  /// Whether a doubtful first answer is to be asked for again: two more times, then it is believed.
  func mayAskAgain(_ id: ContactID) -> Bool {
    state.withLock {
      guard let contact = $0.contact, contact.id == id else { return false }
      return contact.failureCount < FileSettings.doubtfulAnswerLimit
    }
  }

  /// A response has shown another version than `version`.
  func versionContradicted(_ version: RemoteVersion) {
    state.withLock { state in
      guard state.current === version else { return }
      state.isDoubted = true
      state.confirmedAt = nil
    }
    noteFailure(FileError(.stale, "the remote file has changed"), isRetried: false)
    version.supersede()
  }

  // MARK: Statistics

  /// What `.status` shows of the file itself.
  var statusFacts:
    (current: RemoteVersion?, isAsking: Bool, isDoubted: Bool, statistics: FileStatistics)
  {
    let (current, isAsking, isDoubted) = state.withLock {
      ($0.current, $0.contact != nil, $0.isDoubted)
    }
    return (current, isAsking, isDoubted, statistics.withLock { $0 })
  }

  func noteFetched(_ byteCount: Int) {
    statistics.withLock {
      $0.fetchedByteCount += Int64(byteCount)
      $0.speed.note(byteCount: byteCount, now: .now)
    }
  }

  /// Cached bytes have been found damaged.
  func noteDamage(_ byteCount: Int64) {
    statistics.withLock { $0.damagedByteCount += byteCount }
  }

  func noteRequests(_ metrics: ExchangeMetrics) {
    statistics.withLock { $0.requestCount += metrics.requests }
  }

  func noteFailure(_ error: FileError, isRetried: Bool) {
    statistics.withLock {
      $0.lastError = error.reason
      if isRetried { $0.retryCount += 1 }
    }
    environment.logger.log(
      level: isRetried ? .notice : .warning, "\(isRetried ? "retrying" : "failed")",
      metadata: [
        "file": "\(source.path)", "url": "\(source.url.redacted)", "reason": "\(error.reason)",
      ])
  }

  /// Fails whatever waits: the mount ends.
  public func abandon() {
    if let id = state.withLock({ $0.contact?.id }) {
      endContact(id, .failure(FileError(.unmounted, "the mount is being taken down")))
    }
    state.withLock { $0.current }?.abandon()
  }
}

/// Names one question of one file to the server: an answer to an earlier one is not taken for it.
struct ContactID: Hashable, Sendable {
  let rawValue: Int
}
