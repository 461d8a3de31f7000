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

  let state = GuardedKnowledge()
  /// How often it has been pinned or unpinned.
  let pinRequests = Atomic<Int>(0)

  init(source: FileSource, cacheKey: CacheKey, environment: MountEnvironment) {
    context = FileContext(source: source, cacheKey: cacheKey, environment: environment)
  }

  /// Where it comes from now: a list that is read again may bring another URL of the same file.
  public var source: FileSource { context.source }
  public var cacheKey: CacheKey { context.cacheKey }
  /// The servers of the file; nil if the list says no more of it than a URL.
  var mirrors: MirrorBoard? { context.mirrors }
  var rateLimit: RateLimit { context.servers.rateLimit }

  /// Asks its server.
  var prober: FileProber { FileProber(file: self) }

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
    prober.join(by: deadline) { result in
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
      prober.join(byteCount: 1) { _ in done() }
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
    prober.join(by: deadline) { [self] result in
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

  /// Does `work` after the first look into the cache, see ``FirstLook/perform(_:)``.
  func afterLook(_ work: @escaping @Sendable () -> Void) { FirstLook(file: self).perform(work) }

  /// Looks into the cache although nobody waits for it yet.
  func lookAhead() { FirstLook(file: self).performAhead() }

  /// Whether somebody has asked for the file.
  public var wasAskedFor: Bool { state.withLock { $0.wasAskedFor } }

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
      prober.end(id, .failure(FileError(.unmounted, "the mount is being taken down")))
    }
    state.withLock { $0.current }?.abandon()
  }
}
