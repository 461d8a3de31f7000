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
/// Lock order: `FileContext.loading` (over I/O) → `state` → a version's state. No lock is held over a
/// call into the client, a waiter or, except `loading`, the cache.
public final class RemoteFile: Sendable {
  /// What its versions share.
  let context: FileContext
  var environment: MountEnvironment { context.environment }

  let state = Mutex(State())
  /// How often it has been pinned or unpinned.
  let pinRequests = Atomic<Int>(0)

  /// Gets the answer of the server.
  typealias Waiter = Probe<RemoteVersion>.Waiter

  struct State {
    /// The version that a new `open` gets.
    var current: RemoteVersion? {
      get { kept ?? known }
      set {
        kept = keepsVersion ? newValue : nil
        known = newValue
      }
    }
    /// The current version, unless the file has let it go: a version holds its file, so that
    /// neither would ever end.
    private var kept: RemoteVersion?
    /// The current version for as long as somebody has it.
    private weak var known: RemoteVersion?
    private var keepsVersion = true
    /// What a listing says, while there is no version.
    var listed: Listed?
    /// When the server last confirmed the current version.
    var confirmedAt: ContinuousClock.Instant?
    /// Whether a response has contradicted the current version.
    var isDoubted = false
    var contradictions = ContradictionCount()
    /// Whether the user wants the server to be asked whatever is known.
    var mustAsk = false
    /// The question to the server.
    var probe = FileProbe()
    var recentFailure: (error: FileError, until: ContinuousClock.Instant)?
    var look = Look.none
    /// Whether somebody has asked for it, so that it is more than a name that was looked at ahead.
    var wasAskedFor = false

    mutating func setFirst(_ version: RemoteVersion) {
      current = version
      // Its number is taken.
      listed = nil
    }

    /// Keeps the current version no longer.
    ///
    /// - Returns: the version, to be released without the lock.
    mutating func letGo() -> RemoteVersion? {
      // When this version is gone the cache is looked into, which may have an older one.
      confirmedAt = nil
      if case .done = look { look = .none }
      keepsVersion = false
      return kept.take()
    }

    /// Ends the look that is under way.
    ///
    /// - Returns: what waits for it, to be run without the lock.
    mutating func endLook(_ outcome: Look) -> [@Sendable () -> Void] {
      let before = look
      switch outcome {
      // The version that was found is gone soon: the next look finds it again.
      case .done where !keepsVersion: look = .none
      case .none, .underWay, .done, .late: look = outcome
      }
      if case .underWay(let waiters) = before { return waiters }
      // The look ended at the same moment as its time.
      if case .late = outcome { look = before }
      return []
    }

    /// Takes ``letGo()`` back.
    mutating func keep() {
      keepsVersion = true
      kept = known
    }
  }

  /// The first look into the cache, which may wait for the disk.
  enum Look {
    case none
    /// A look is under way; these callbacks run when it ends or takes too long.
    case underWay([@Sendable () -> Void])
    /// The look took too long, and nobody waits for it any more.
    case late
    case done
  }

  init(source: FileSource, cacheKey: CacheKey, environment: MountEnvironment) {
    context = FileContext(source: source, cacheKey: cacheKey, environment: environment)
  }

  /// Where it comes from now: a list that is read again may bring another URL of the same file.
  public var source: FileSource { context.source }
  public var cacheKey: CacheKey { context.cacheKey }
  /// The servers of the file; nil if the list says no more of it than a URL.
  var mirrors: MirrorBoard? { context.mirrors }
  var rateLimit: RateLimit { context.servers.rateLimit }

  func noteFailure(_ error: FileError, isRetried: Bool) {
    context.noteFailure(error, isRetried: isRetried)
  }

  // MARK: Lookup and open

  /// The version that a name shows: the current one, from the cache's record where there is one,
  /// else as the server says.
  ///
  /// Answers at once, on a look queue or on the network thread; within the read timeout, or by
  /// `deadline` if that is sooner, because the caller may have waited for something else before.
  public func resolve(
    by deadline: ContinuousClock.Instant? = nil,
    _ answer: @escaping @Sendable (Result<RemoteVersion, FileError>) -> Void
  ) {
    // Set once: the disk may take some of it.
    let deadline = deadline ?? .now + environment.settings.readTimeout
    afterLook { [self] in resolveWithoutLook(by: deadline, answer) }
  }

  private func resolveWithoutLook(
    by deadline: ContinuousClock.Instant,
    _ answer: @escaping @Sendable (Result<RemoteVersion, FileError>) -> Void
  ) {
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
    joinProbe(by: deadline) { result in
      if case .failure(let error) = result, let believed, Self.openError(error, believed) == nil {
        return answer(.success(believed))
      }
      answer(result)
    }
  }

  /// Learns what a lookup will ask, with as little of the body as a request can bring.
  public func probe(_ done: @escaping @Sendable () -> Void) {
    afterLook { [self] in
      if isKnown { return done() }
      joinProbe(byteCount: 1) { _ in done() }
    }
  }

  /// Whether a lookup can be answered without the network.
  public var isKnown: Bool {
    state.withLock { $0.current != nil && !$0.isDoubted && !$0.mustAsk }
  }

  /// Whether a response has contradicted what is known.
  var isDoubted: Bool { state.withLock { $0.isDoubted } }

  /// Has the server asked by the next lookup or open, whatever it has said before.
  public func refresh() { state.withLock { $0.mustAsk = true } }

  /// Gives up its cache entry for another file that the list names in its place, unless somebody has it open,
  /// it is being fetched, or an answer may make another version of it.
  func giveWay() -> Bool {
    state.withLock { state in
      switch state.look {
      case .underWay, .late: return false
      case .none, .done: break
      }
      // It records nothing more. Opening its old inode gives ESTALE, and the name is looked up again.
      guard !state.probe.isAsking, state.current?.supersedeIfUnused() ?? true else { return false }
      state.current = nil
      return true
    }
  }

  /// Keeps the current version no longer.
  ///
  /// It goes on for as long as the kernel, a handle or work on it has it, and the file with it. What the
  /// cache has of it is found again.
  func letGo() { _ = state.withLock { $0.letGo() } }

  /// Takes ``letGo()`` back: the file is shown again.
  func keep() { state.withLock { $0.keep() } }

  /// The version that is current now, if the file has been looked at.
  var current: RemoteVersion? { state.withLock { $0.current } }

  /// Opens `version`: revalidates it unless the server has confirmed it just now.
  ///
  /// Answers nil when the version is current, or cannot be confirmed but has cached bytes; an
  /// error else, which is `stale` when another version has taken its place. By `deadline`, where the opener
  /// has waited before.
  public func open(
    _ version: RemoteVersion, by deadline: ContinuousClock.Instant? = nil,
    _ answer: @escaping @Sendable (FileError?) -> Void
  ) {
    let now = ContinuousClock.now
    let deadline = deadline ?? now + environment.settings.readTimeout
    // What nothing can confirm is believed for as long as an open takes after the answer.
    let interval = max(
      environment.settings.revalidationInterval,
      version.isUnidentified ? FileSettings.failureMemory : .zero)
    let known = state.withLock { state -> KnownOpen? in
      guard state.current === version else { return .settled }
      if state.isDoubted { return nil }
      // The server is describing it right now.
      if version.isStreaming { return .settled }
      if state.mustAsk { return nil }
      if let at = state.confirmedAt, now - at <= interval { return .settled }
      if environment.silentServers.contains(source.url.origin), version.hasCachedBytes {
        return .offline(nil)
      }
      if let failure = state.recentFailure, now < failure.until {
        return .offline(Self.openError(failure.error, version))
      }
      return nil
    }
    switch known {
    case .settled: return settleOpen(of: version, by: deadline, answer)
    case .offline(let error): return answer(error)
    case nil: break
    }
    joinProbe(by: deadline) { [self] result in
      switch result {
      case .success: settleOpen(of: version, by: deadline, answer)
      case .failure(let error): answer(Self.openError(error, version))
      }
    }
  }

  /// What is known of an open without asking the server.
  private enum KnownOpen {
    /// The server has said which version is current.
    case settled
    /// The server cannot be asked; the open fails with this error, or not.
    case offline(FileError?)
  }

  /// Answers an open by which version is current now, when its length is known or has been waited for.
  ///
  /// Who is told to look the name up again shall find the length, too: the kernel does so only once.
  private func settleOpen(
    of version: RemoteVersion, by deadline: ContinuousClock.Instant,
    _ answer: @escaping @Sendable (FileError?) -> Void
  ) {
    let settle = { @Sendable [self] in
      let isCurrent = state.withLock { $0.current === version && !$0.isDoubted }
      answer(isCurrent ? nil : FileError(.stale, "the remote file has changed"))
    }
    guard let current, current.length == nil else { return settle() }
    current.awaitLength(by: deadline, settle)
  }

  /// Whether a failed confirmation fails the open: a server that says no is believed, one that
  /// cannot be asked does not take away what is cached.
  private static func openError(_ error: FileError, _ version: RemoteVersion) -> FileError? {
    switch error.code {
    case .missing, .denied, .stale, .unmounted: error
    default: version.hasCachedBytes || version.length == 0 ? nil : error
    }
  }

  /// Looks once into the cache for what an earlier mount has left, then does `work`; if the disk
  /// does not answer in time, `work` runs without the cache.
  ///
  /// A second caller waits for the look of the first, because the answer is in the cache, not on
  /// the network.
  func afterLook(_ work: @escaping @Sendable () -> Void) {
    let isFirst = state.withLock { state in
      defer { state.wasAskedFor = true }
      return !state.wasAskedFor
    }
    look { [self] in
      if isFirst, current?.hasRecord == true { environment.evictor.noteUse(of: cacheKey) }
      work()
    }
  }

  /// Whether somebody has asked for the file.
  public var wasAskedFor: Bool { state.withLock { $0.wasAskedFor } }

  private func look(_ work: @escaping @Sendable () -> Void) {
    let mustLook = state.withLock { state -> Bool? in
      switch state.look {
      case .done, .late: return nil
      case .underWay(let others):
        state.look = .underWay(others + [work])
        return false
      case .none:
        state.look = .underWay([work])
        return true
      }
    }
    guard let mustLook else { return work() }
    if mustLook { runLook(isAhead: false) {} }
  }

  /// Looks into the cache although nobody waits for it yet, which is no use of the entry.
  ///
  /// Does nothing while descriptors are short.
  func lookAhead() {
    environment.looksAhead.perform { [self] ended in
      let mustLook = state.withLock { state -> Bool in
        guard case .none = state.look else { return false }
        state.look = .underWay([])
        return true
      }
      if mustLook { runLook(isAhead: true, ended) } else { ended() }
    }
  }

  /// Has a look run, and then `ended`.
  private func runLook(isAhead: Bool, _ ended: @escaping @Sendable () -> Void) {
    environment.looks.perform { [self] in
      defer { ended() }
      if isAhead, !environment.cache.hasSpareDescriptors, abandonLook() { return }
      let found = lookIntoCache()
      // A file that has been let go of keeps no version; those who wait for the look get it.
      withExtendedLifetime(found.version) { endLook(found.outcome) }
    } late: { [self] in
      endLook(.late)
    }
  }

  /// Ends the look that is under way if nobody waits for it.
  private func abandonLook() -> Bool {
    state.withLock { state in
      guard case .underWay(let waiters) = state.look, waiters.isEmpty else { return false }
      state.look = .none
      return true
    }
  }

  private func endLook(_ outcome: Look) {
    for waiter in state.withLock({ $0.endLook(outcome) }) { waiter() }
  }

  /// - Returns: how the look ended, and the version that the cache has.
  private func lookIntoCache() -> (outcome: Look, version: RemoteVersion?) {
    // What is being evicted is as good as gone.
    guard environment.evictor.beginLook(cacheKey) else { return (.done, nil) }
    defer { environment.evictor.endLook(cacheKey) }
    do throws(CacheError) {
      let version = try context.loading.withLock { (_) throws(CacheError) -> RemoteVersion? in
        // The server has described the file meanwhile, and that version opens the entry itself.
        guard current == nil, let entry = try environment.cache.openEntry(cacheKey) else {
          return nil
        }
        let content = entry.recoveredVersion
        mirrors?.recall(content, of: entry.definer)
        let id = state.withLock { state in
          state.current == nil ? state.listed?.takeID(ofLength: content.completeLength) : nil
        }
        let version = RemoteVersion(of: self, content: content, id: id, record: entry)
        let isFirst = state.withLock { state in
          // The server may have described the file while the disk was waited for.
          guard state.current == nil else { return false }
          state.setFirst(version)
          return true
        }
        guard isFirst else { return nil }
        environment.evictor.note(cacheKey, of: self, version)
        return version
      }
      version?.followWishes()
      return (.done, version)
    } catch {
      environment.logger.warning(
        "cannot open the cache entry", metadata: ["file": "\(source.path)", "error": "\(error)"])
      return (.none, nil)
    }
  }

  // MARK: Statistics

  /// What `.status` shows of the file itself.
  var statusFacts:
    (current: RemoteVersion?, isAsking: Bool, isDoubted: Bool, statistics: FileStatistics)
  {
    let (current, isAsking, isDoubted) = state.withLock {
      ($0.current, $0.probe.isAsking, $0.isDoubted)
    }
    return (current, isAsking, isDoubted, context.statistics)
  }

  /// Fails whatever waits: the mount ends.
  public func abandon() {
    if let id = state.withLock({ $0.probe.id }) {
      endProbe(id, .failure(FileError(.unmounted, "the mount is being taken down")))
    }
    state.withLock { $0.current }?.abandon()
  }
}
