internal import ExtentRecord
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// The first look into the cache for a file, which may wait for the disk.
struct FirstCacheOpen: Sendable {
  let file: any ProbedFile

  private var context: FileContext { file.context }
  private var environment: MountEnvironment { context.environment }
  private var state: GuardedKnowledge { file.state }

  /// Looks once into the cache for what an earlier mount has left, then does `work`.
  ///
  /// If the disk does not answer in time, `work` runs without the cache. A second caller waits for
  /// the look of the first, because the answer is in the cache, not on the network.
  func perform(_ work: @escaping @Sendable () -> Void) {
    let mustLook = state.withLock { state -> Bool? in
      state.wasAskedFor = true
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
    guard mustLook else { return }
    if environment.cache.lacksEntry(context.cacheKey) { return endLook(.done) }
    runLook(isAhead: false) {}
  }

  /// Looks into the cache before a caller needs it, which does not count as a use of the entry.
  ///
  /// Does nothing if descriptors are short.
  func performAhead() {
    if environment.cache.lacksEntry(context.cacheKey) {
      if beginAhead() { endLook(.done) }
      return
    }
    environment.cachePreloads.perform { [self] ended in
      if beginAhead() { runLook(isAhead: true, ended) } else { ended() }
    }
  }

  /// Begins a look for which no caller waits; returns false if there was one before.
  private func beginAhead() -> Bool {
    state.withLock { state in
      guard case .none = state.look else { return false }
      state.look = .underWay([])
      return true
    }
  }

  /// Runs a look, and then `ended`.
  private func runLook(isAhead: Bool, _ ended: @escaping @Sendable () -> Void) {
    environment.cacheOpens.perform { [self] in
      defer { ended() }
      if isAhead, !environment.cache.hasSpareDescriptors, abandonLook() { return }
      let found = lookIntoCache()
      // A file that has been let go keeps no version; the callers that wait for the look get this
      // one.
      withExtendedLifetime(found.version) { endLook(found.outcome) }
    } late: { [self] in
      endLook(.late)
    }
  }

  /// Ends the look that is under way if no caller waits for it.
  private func abandonLook() -> Bool {
    state.withLock { state in
      guard case .underWay(let waiters) = state.look, waiters.isEmpty else { return false }
      state.look = .none
      return true
    }
  }

  private func findEntry() throws(CacheError) -> RecordedEntry? {
    environment.cache.lookForEntries(near: context.cacheKey)
    if environment.cache.lacksEntry(context.cacheKey) { return nil }
    return try environment.cache.recordedEntry(context.cacheKey)
  }

  private func endLook(_ outcome: FileKnowledge.Look) {
    for waiter in state.withLock({ $0.endLook(outcome) }) { waiter() }
  }

  /// - Returns: how the look ended, and the version that the cache has.
  private func lookIntoCache() -> (outcome: FileKnowledge.Look, version: RemoteVersion?) {
    // An entry that is being evicted counts as gone.
    guard environment.evictor.beginLook(context.cacheKey) else { return (.done, nil) }
    do throws(CacheError) {
      let version = try context.entryLock.withLock { (_) throws(CacheError) -> RemoteVersion? in
        var found: RemoteVersion?
        defer { environment.evictor.endLook(context.cacheKey, of: file, found) }
        // The server has described the file meanwhile; that version opens the entry itself.
        guard state.withLock({ $0.current }) == nil,
          let entry = try findEntry()
        else {
          return nil
        }
        let content = entry.version
        context.mirrors?.recall(content, of: entry.reference)
        let id = state.withLock { state in
          state.current == nil ? state.listed?.takeID(ofLength: content.completeLength) : nil
        }
        let version = RemoteVersion(of: file, content: content, id: id, record: entry)
        let isFirst = state.withLock { state in
          // The server may have described the file during the wait for the disk.
          guard state.current == nil else { return false }
          state.setFirst(version)
          return true
        }
        if isFirst { found = version }
        return found
      }
      version?.applyPolicy()
      return (.done, version)
    } catch {
      environment.logger.warning(
        "cannot open the cache entry",
        metadata: ["file": "\(context.source.path)", "error": "\(error)"])
      return (.none, nil)
    }
  }
}
