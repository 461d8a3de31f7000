internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// The users of a version's cache entry, and its release.
extension RemoteVersion {
  /// Closes the entry if it is not in use, even if it has bytes that are to be committed.
  ///
  /// - Returns: whether it closed one.
  func releaseIdleEntry() -> Bool {
    let entry = state.withLock { $0.takeIdleEntry(areDescriptorsShort: true) }
    return entry != nil
  }

  /// Whether no read waits and no request or commit is pending; closes the entry if so.
  ///
  /// - Parameter areDescriptorsShort: whether the entry is closed even if it has bytes that are to
  ///   be committed.
  /// - Returns: whether the version need not be watched any more.
  func isIdle(areDescriptorsShort: Bool) -> Bool {
    let (idle, entry) = state.withLock { guarded -> (Bool, CacheEntry?) in
      guard !guarded.version.needsWatch, !guarded.checkpoint.isBusy,
        areDescriptorsShort || !guarded.awaitsRecord
      else { return (false, nil) }
      let entry = guarded.takeIdleEntry(areDescriptorsShort: areDescriptorsShort)
      return (!guarded.awaitsRecord, entry)
    }
    _ = consume entry
    return idle
  }

  /// Has the version watched until it is idle.
  func requestWatch() { transact { $1.needsWatch = true } }

  /// Ends a hold that kept the entry open; the watch commits its bytes and releases it.
  func endHold() {
    transact {
      $0.holdCount -= 1
      $1.needsWatch = true
    }
  }

  func lookAgainIfDue(now: ContinuousClock.Instant) {
    transact { $1.looksAgain = $0.queueLookAgain(now: now) }
  }

  func recordFetched(_ byteCount: Int) {
    state.withLock { $0.fetchedByteCount += Int64(byteCount) }
  }

  /// Records for the host how many connections have paid for this version.
  package func recordConnections() {
    guard let proven = state.withLock({ $0.version.line.provenConnections }) else { return }
    environment.recordConnections(proven, for: file.source.url)
  }

  /// Handles a failure of the cache.
  ///
  /// A failure of one entry affects that file only. A shortage of descriptors is no failure of the
  /// disk. After any other failure the cache is not used for a while.
  func recordCacheFailure(_ error: CacheError) {
    if error.code == .descriptorLimit { return file.recordShortage(FileError(error)) }
    if error.isOfEntry {
      state.withLock { $0.isUncacheable = true }
      file.recordFailure(FileError(error), isRetried: false)
      return
    }
    environment.health.recordFailure("\(error)")
    environment.logger.error(
      "the cache fails; reading without it",
      metadata: ["file": "\(file.source.path)", "error": "\(error)"])
  }

  /// Records that `byteCount` cached bytes are absent from now on, because of damage.
  func recordDamage(_ byteCount: Int64, _ reason: String) {
    file.recordDamage(byteCount)
    environment.logger.error(
      "cache damaged, fetching again",
      metadata: ["file": "\(file.source.path)", "bytes": "\(byteCount)", "reason": "\(reason)"])
  }

  /// Whether any handle has it open.
  var hasHandles: Bool { state.withLock { $0.openCount > 0 } }

  /// Whether it is being read or fetched, and must not be evicted.
  var isInUse: Bool { state.withLock { !$0.isUnused } }

  /// Marks all bytes of the entry as absent, because it is about to be removed.
  ///
  /// Call it under the file's `entryLock`.
  ///
  /// - Returns: false if the file is being read or fetched; then the entry must stay.
  func forgetEntryIfUnused() -> Bool {
    let (isUnused, dropped) = state.withLock { guarded -> (Bool, CacheEntry?) in
      guard guarded.isUnused else { return (false, nil) }
      guarded.hasRecord = false
      // The reason not to write to it ends with the entry.
      guarded.isUncacheable = false
      guarded.invalidated = ExtentSet()
      if guarded.fileChecksum.hasFailed {
        // After an eviction, the file is to be fetched again.
        guarded.fileChecksum = FileChecksum()
        guarded.version.forgetPermanentFailure()
      }
      let entry = guarded.entry
      guarded.entry = nil
      guarded.setCached(ExtentSet(), believed: ExtentSet())
      return (true, entry)
    }
    // Closed here, after the lock is released.
    _ = consume dropped
    return isUnused
  }
}
