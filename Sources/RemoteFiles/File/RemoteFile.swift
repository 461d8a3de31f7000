package import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// One file of the mount: a source, and its current version.
///
/// The versions of a file succeed each other; each has its own inode, extents and readers. The file
/// knows which version a new `open` gets, and asks the server about that, one question at a time.
///
/// Lock order: `FileContext.entryLock` (over I/O) → `state` → a version's state. No lock is held
/// over a call into the client, a waiter or, except `entryLock`, the cache.
package final class RemoteFile: Sendable {
  /// What its versions share.
  let context: FileContext
  var environment: MountEnvironment { context.environment }

  let state = GuardedKnowledge()
  /// How often it has been pinned or unpinned.
  let pinRequests = Atomic<Int>(0)

  init(source: FileSource, cacheKey: CacheKey, environment: MountEnvironment) {
    context = FileContext(source: source, cacheKey: cacheKey, environment: environment)
  }

  /// The current source: a list that is reread may bring another URL of the same file.
  package var source: FileSource { context.source }
  package var cacheKey: CacheKey { context.cacheKey }
  /// The servers of the file; nil if the list says no more about it than a URL.
  var mirrors: SharedMirrors? { context.mirrors }
  var rateLimit: RateLimit { context.servers.rateLimit }

  /// Asks its server.
  var prober: FileProber { FileProber(file: self) }

  func recordFailure(_ error: FileError, isRetried: Bool) {
    context.recordFailure(error, isRetried: isRetried)
  }

  // MARK: Lookup and open

  /// Resolves a name to the current version: the known one, the one of the cache's record, or else
  /// the one of the server.
  ///
  /// Answers within the read timeout: on the calling thread, a look queue or the network thread. An
  /// earlier `deadline` applies if the caller has already waited for something else.
  package func resolve(
    by deadline: ContinuousClock.Instant? = nil,
    _ answer: @escaping @Sendable (Result<RemoteVersion, FileError>) -> Void
  ) {
    // Set once: the look may use some of the time.
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

  /// Learns what a later lookup needs, with as few bytes of the body as a request can bring.
  package func probe(_ done: @escaping @Sendable () -> Void) {
    afterLook { [self] in
      if isKnown { return done() }
      prober.join(byteCount: 1) { _ in done() }
    }
  }

  /// Whether a lookup can be answered without the network.
  package var isKnown: Bool {
    state.withLock { $0.current != nil && !$0.isDoubted && !$0.mustAsk }
  }

  /// Whether a response has contradicted the current version.
  var isDoubted: Bool { state.withLock { $0.isDoubted } }

  /// Makes the next lookup or open ask the server, whatever it has said before.
  package func refresh() { state.withLock { $0.mustAsk = true } }

  /// Releases its cache entry for another file that the list names in its place.
  ///
  /// Refuses if the file is open or being fetched, or if an answer may make another version of it.
  func giveWay() -> Bool {
    state.withLock { state in
      switch state.look {
      case .underWay, .late: return false
      case .none, .done: break
      }
      // The version records no more bytes. Opening its old inode gives ESTALE, and the name is
      // looked up again.
      guard !state.probe.isAsking, state.current?.supersedeIfUnused() ?? true else { return false }
      state.current = nil
      return true
    }
  }

  /// Releases the current version.
  ///
  /// The version lives on while the kernel, a handle or work holds it, and keeps the file alive. A
  /// later look finds its cached bytes again.
  func letGo() { _ = state.withLock { $0.letGo() } }

  /// Reverts ``letGo()``: the file is shown again.
  func keep() { state.withLock { $0.keep() } }

  /// The current version, if one is known.
  var current: RemoteVersion? { state.withLock { $0.current } }

  /// Opens `version`: revalidates it unless the server has confirmed it recently.
  ///
  /// Answers nil if the version is current, or cannot be confirmed but has cached bytes; otherwise
  /// an error, which is `stale` if another version has replaced it. Answers by `deadline` if the
  /// opener has waited before.
  package func open(
    _ version: RemoteVersion, by deadline: ContinuousClock.Instant? = nil,
    _ answer: @escaping @Sendable (FileError?) -> Void
  ) {
    let now = ContinuousClock.now
    let deadline = deadline ?? now + environment.settings.readTimeout
    // A version that cannot be revalidated counts as current for as long as an open takes after the
    // answer.
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

  /// The result of an open that needs no question to the server.
  private enum KnownOpen {
    /// The server has said which version is current.
    case settled
    /// The server cannot be asked; the open fails with this error, or not.
    case offline(FileError?)
  }

  /// Answers an open of `version`, which fails unless that is the current version.
  ///
  /// Before that, it waits for the length of the current version: an opener that must look the name
  /// up again should find the length, too, because the kernel does so only once.
  private func settleOpen(
    of version: RemoteVersion, by deadline: ContinuousClock.Instant,
    _ answer: @escaping @Sendable (FileError?) -> Void
  ) {
    let settle = { @Sendable [self] in
      let isCurrent = state.withLock { $0.current === version && !$0.isDoubted }
      answer(isCurrent ? nil : FileError.hasChanged)
    }
    guard let current, current.length == nil else { return settle() }
    current.awaitLength(by: deadline, settle)
  }

  /// The error with which an open fails after a failed confirmation; nil if it succeeds.
  ///
  /// A server's refusal fails the open; a server that cannot be asked does not take away cached
  /// bytes.
  private static func openError(_ error: FileError, _ version: RemoteVersion) -> FileError? {
    switch error.code {
    case .missing, .denied, .stale, .unmounted: error
    default: version.hasCachedBytes || version.length == 0 ? nil : error
    }
  }

  /// Does `work` after the first look into the cache, see ``FirstCacheOpen/perform(_:)``.
  func afterLook(_ work: @escaping @Sendable () -> Void) {
    FirstCacheOpen(file: self).perform(work)
  }

  /// Looks into the cache before a caller needs it.
  func preloadCache() { FirstCacheOpen(file: self).performAhead() }

  /// Whether a program has asked for the file.
  package var wasAskedFor: Bool { state.withLock { $0.wasAskedFor } }

  // MARK: Statistics

  /// What `.status` shows of the file itself.
  var statusFacts:
    (current: RemoteVersion?, probe: FileProbe, isDoubted: Bool, statistics: FileStatistics)
  {
    let (current, probe, isDoubted) = state.withLock { ($0.current, $0.probe, $0.isDoubted) }
    return (current, probe, isDoubted, context.statistics)
  }

  /// Fails all waiting reads and questions, because the mount ends.
  package func abandon() {
    if let id = state.withLock({ $0.probe.id }) {
      prober.end(id, .failure(FileError(.unmounted, "the mount is being taken down")))
    }
    state.withLock { $0.current }?.abandon()
  }
}
