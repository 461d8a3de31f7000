internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// The handles of a version, and its cache entry, which is at hand while there are any.
extension RemoteVersion {
  /// A handle has been opened: the cache entry is at hand until the last one is closed.
  ///
  /// If the cache cannot be opened, or the disk is too slow, the file is read without it.
  ///
  /// - Parameters:
  ///   - needsBacking: whether ``backingFile`` is asked for, which reads the disk.
  ///   - answer: gets the file, or `tooManyFiles` if the process has no descriptor left; then
  ///     no handle is open. Called at once or on a look queue.
  public func retainHandle(
    needsBacking: Bool, _ answer: @escaping @Sendable (Result<BackingFile?, FileError>) -> Void
  ) {
    // Counted first: from then on nobody lets go of an entry that is at hand.
    let trust = environment.readAheadHistory.withLock { $0.trust }
    let isOpened = state.withLock { guarded in
      // Under the lock: of two that open at once the first has counted the version.
      if guarded.openCount == 0 {
        guard environment.openVersions.begin() else { return false }
        guarded.version.beginReading(trust)
      }
      guarded.openCount += 1
      return true
    }
    guard isOpened else {
      return answer(
        .failure(
          FileError(.tooManyFiles, "too many open files; raise the limit with ulimit -n")))
    }
    let (mustWait, isRepeated) = state.withLock { guarded in
      let mustWait =
        guarded.entry == nil && guarded.hasRecord || needsBacking && guarded.version.isComplete
      defer { if mustWait { guarded.isLookQueued = true } }
      return (mustWait, guarded.isLookQueued)
    }
    guard mustWait else {
      whole?.hashIfDue()
      return answer(.success(nil))
    }
    let pending = PendingAnswer(answer)
    environment.looks.perform(isRepeated: isRepeated) { [self] in
      state.withLock { $0.isLookQueued = false }
      loadForHandle(pending)
    } late: {
      pending.take()?(.success(nil))
    }
  }

  /// Has the entry at hand for handles that were opened; on a thread that may wait for the disk.
  private func loadForHandle(_ pending: PendingAnswer<Result<BackingFile?, FileError>>) {
    // The opener was told that this takes too long, and may have closed the file again.
    guard hasHandles else { return }
    do throws(CacheError) {
      try look()
    } catch {
      noteCacheFailure(error)
      if error.code == .descriptorLimit {
        guard let answer = pending.take() else { return }
        releaseHandle()
        return answer(.failure(FileError(error)))
      }
    }
    whole?.hashIfDue()
    verifyIfSmall()
    guard let answer = pending.take() else {
      // The handle may be gone: the watch then closes the entry.
      return environment.watch(self)
    }
    answer(.success(backingFile))
  }

  /// Opens the entry for reads that wait.
  private func look() throws(CacheError) {
    state.withLock {
      $0.lookCount += 1
      $0.lookedAt = .now
    }
    defer { state.withLock { $0.lookCount -= 1 } }
    try loader.bring(create: false)
  }

  /// Has the entry looked for again, where reads wait and it could not be opened before.
  func lookAgainIfDue(now: ContinuousClock.Instant) {
    let isDue = state.withLock { guarded in
      guard guarded.isRecordUnread, guarded.hasRecord, guarded.entry == nil,
        !guarded.isUncacheable, !guarded.version.isSuperseded, !guarded.version.parked.isEmpty,
        !guarded.isLookQueued, guarded.lookCount == 0,
        guarded.lookedAt.map({ now - $0 >= CacheHealth.patience }) ?? true
      else { return false }
      guarded.isLookQueued = true
      return true
    }
    guard isDue else { return }
    environment.looks.perform { [self] in
      state.withLock { $0.isLookQueued = false }
      // Who has waited may have gone.
      guard hasHandles else { return }
      do throws(CacheError) {
        try look()
      } catch {
        // The first failure was told, and a store that fails tells its own.
        if error.isOfEntry { noteCacheFailure(error) }
      }
      // The handle may be gone: the watch then closes the entry.
      environment.watch(self)
    } late: {
    }
  }

  public func releaseHandle() {
    let areDescriptorsShort = !environment.cache.hasSpareDescriptors
    var usage: ReadActivity.Usage?
    var proven: Int?
    var awaitsStamp = false
    let released = transact { guarded, actions in
      guarded.openCount -= 1
      if guarded.openCount == 0 {
        guarded.unreadSince = .now
        usage = guarded.version.endReading()
        proven = guarded.version.line.provenConnections
        // Reads that were interrupted: nobody waits for their bytes any more.
        guarded.version.dropParked(into: &actions)
      }
      let released = guarded.takeIdleEntry(areDescriptorsShort: areDescriptorsShort)
      awaitsStamp = guarded.awaitsStamp
      return released
    }
    if let usage {
      environment.openVersions.end()
      let length = length
      environment.readAheadHistory.withLock {
        $0.note(fetched: usage.fetched, read: usage.read, length: length)
      }
    }
    if let proven { environment.noteConnections(proven, for: file.source.url) }
    _ = consume released
    if usage != nil, awaitsStamp { environment.watch(self) }
  }

  /// Lets go of the entry, if nobody needs it any more, though it has bytes that are to be committed.
  ///
  /// - Returns: whether there was one.
  func releaseIdleEntry() -> Bool {
    let entry = state.withLock { $0.takeIdleEntry(areDescriptorsShort: true) }
    return entry != nil
  }

  /// Whether nothing waits, is in flight or is uncommitted; drops the entry if so.
  ///
  /// - Parameter areDescriptorsShort: whether the entry is dropped although it has bytes that are to
  ///   be committed.
  /// - Returns: whether it need not be watched any more.
  func isIdle(areDescriptorsShort: Bool) -> Bool {
    let (idle, entry) = state.withLock { guarded -> (Bool, CacheEntry?) in
      guard !guarded.version.needsWatch, !guarded.isCheckpointing,
        areDescriptorsShort || !guarded.awaitsRecord
      else { return (false, nil) }
      let entry = guarded.takeIdleEntry(areDescriptorsShort: areDescriptorsShort)
      return (!guarded.awaitsRecord, entry)
    }
    _ = consume entry
    return idle
  }

  func noteFetched(_ byteCount: Int) {
    state.withLock { $0.fetchedByteCount += Int64(byteCount) }
  }

  /// Handles a failure of the cache.
  ///
  /// Trouble with one entry affects that file only; after any other failure the cache is not used
  /// for a while.
  func noteCacheFailure(_ error: CacheError) {
    if error.isOfEntry {
      // Only this file is affected.
      state.withLock { $0.isUncacheable = true }
      file.noteFailure(FileError(error), isRetried: false)
      return
    }
    environment.health.noteFailure("\(error)")
    environment.logger.error(
      "the cache fails; reading without it",
      metadata: ["file": "\(file.source.path)", "error": "\(error)"])
  }

  /// Whether somebody has it open.
  var hasHandles: Bool { state.withLock { $0.openCount > 0 } }

  /// Whether somebody reads or fetches it: not to be evicted then.
  var isInUse: Bool { state.withLock { !$0.isUnused } }

  /// Marks all that the entry holds as absent, because it is about to be removed; call under the
  /// file's `loading`.
  ///
  /// - Returns: false if somebody reads or fetches the file; then the entry must stay.
  func forgetEntryIfUnused() -> Bool {
    let (isUnused, dropped) = state.withLock { guarded -> (Bool, CacheEntry?) in
      guard guarded.isUnused else { return (false, nil) }
      guarded.hasRecord = false
      // What kept it from being written goes with it.
      guarded.isUncacheable = false
      guarded.refuted = ExtentSet()
      if guarded.wholeCheck.hasFailed {
        // Whoever evicts it wants it fetched anew.
        guarded.wholeCheck = WholeCheck()
        guarded.version.forgetPermanentFailure()
      }
      let entry = guarded.entry
      guarded.entry = nil
      guarded.setCached(ExtentSet(), believed: ExtentSet())
      return (true, entry)
    }
    // Closed here, where the lock is not held any more.
    _ = consume dropped
    return isUnused
  }
}
