public import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
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
  let statistics = Mutex(FileStatistics())
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
    var contact: Contact?
    var lastContact = 0
    var recentFailure: (error: FileError, until: ContinuousClock.Instant)?
    /// Which URL is asked.
    var location: ResourceLocation
    /// Whether the signer is at work for this file.
    var isSigning = false

    init(location: ResourceLocation) { self.location = location }

    mutating func setFirst(_ version: RemoteVersion) {
      current = version
      // Its number is taken.
      listed = nil
    }
  }

  /// A question to the server, from the first who asks to the answer.
  struct Contact {
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
