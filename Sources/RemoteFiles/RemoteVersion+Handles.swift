internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Who needs the cache entry of a version, and what becomes of it.
extension RemoteVersion {
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
      guard !guarded.version.needsWatch, !guarded.checkpoint.isBusy,
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
  /// Trouble with one entry affects that file only, and a shortage of descriptors is no trouble of the
  /// disk; after any other failure the cache is not used for a while.
  func noteCacheFailure(_ error: CacheError) {
    if error.code == .descriptorLimit { return file.noteShortage(FileError(error)) }
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
