internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
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
    try bringEntry(create: false)
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

  /// Opens or creates the entry if it is not at hand, and answers the reads that its record has the bytes
  /// for.
  ///
  /// Call without a lock.
  func bringEntry(create: Bool) throws(CacheError) {
    try file.loading.withLock { (_) throws(CacheError) in try loadEntry(create: create) }
    change { $0.wakeReads(into: &$1) }
  }

  /// Under the file's `loading`, where nobody is called; ``bringEntry(create:)`` answers the reads.
  private func loadEntry(create: Bool) throws(CacheError) {
    let (isAtHand, isSuperseded, hasRecord) = state.withLock {
      ($0.entry != nil, $0.version.isSuperseded, $0.hasRecord)
    }
    // The entry's name belongs to the newer version when there is one. Before the first byte of a
    // version is stored it belongs to an older one, whatever that one looks like.
    if isAtHand || isSuperseded || !(hasRecord || create) { return }
    let key = file.cacheKey
    // First: an eviction that removes what lies there has ended then, and a later one asks this file.
    // What it removes must be neither opened, for nothing more would be recorded of it, nor replaced
    // by an entry that it would take away.
    environment.noteUpcomingEntry(key, of: self)
    var entry: CacheEntry?
    do throws(CacheError) {
      entry = try openEntry(hasRecord: hasRecord, create: create)
    } catch {
      // Files that nobody reads any more keep theirs until the next checkpoint.
      guard error.code == .descriptorLimit, environment.releaseIdleEntries() else { throw error }
      entry = try openEntry(hasRecord: hasRecord, create: create)
    }
    let isTaken = state.withLock { [entry] guarded in
      guard !guarded.version.isSuperseded else { return false }
      guarded.entry = entry
      guarded.hasRecord = entry != nil
      guarded.isRecordUnread = false
      guarded.hasLostSync = false
      // What this mount has stored or verified need not be looked at again, unless the data file has
      // been changed since.
      var believed = entry?.believedExtents ?? ExtentSet()
      let stamp = entry?.dataStamp
      if stamp == nil || stamp == guarded.lastStamp {
        for extent in guarded.version.extents.extents {
          for known in guarded.unverified.holes(in: extent) { believed.remove(known) }
        }
      }
      // The record is right, whatever was known before: the entry may have been evicted.
      guarded.setCached(entry?.recoveredExtents ?? ExtentSet(), believed: believed)
      return entry != nil
    }
    guard isTaken else { return }
    if hasRecord { environment.noteUse(of: key) }
    if let entry {
      whole?.noteRecord(of: entry)
      if let recorded = entry.recoveredVersion.completeLength {
        // Not here: it answers reads, and under `loading` nobody is called.
        if length == nil { environment.client.perform { [self] in learn(length: recorded) } }
      } else if length != nil {
        // Learned before there was an entry, or while it was not at hand.
        environment.storage.perform { [self] in recordLength() }
      }
    }
    environment.noteEntry(key, of: self)
    // What a crash has left uncommitted is committed in the course of things.
    if state.withLock({ $0.awaitsRecord }) { environment.watch(self) }
  }

  private func openEntry(hasRecord: Bool, create: Bool) throws(CacheError) -> CacheEntry? {
    let key = file.cacheKey
    let recordable = pinned.recordable
    // The kernel may still show pages that the disk has refused.
    let uncommitted: UncommittedExtents =
      state.withLock { $0.hasLostSync } ? .discard : .verify
    if hasRecord, let found = try environment.cache.openEntry(key, uncommitted: uncommitted),
      recordable.hasSameIdentity(as: found.recoveredVersion)
    {
      return found
    }
    guard create else { return nil }
    return try environment.cache.createEntry(
      key, version: recordable, source: file.source.url.redacted,
      definer: file.mirrors?.definer)
  }

  /// Lets go of the entry, if nobody needs it any more, though it has bytes that are to be committed.
  ///
  /// - Returns: whether there was one.
  func releaseIdleEntry() -> Bool {
    let entry = state.withLock { $0.takeIdleEntry(areDescriptorsShort: true) }
    return entry != nil
  }

  /// The entry to write to, created with the first bytes of a version, and the generation of what is
  /// believed of it; nil where the file has a newer version.
  func writableEntry() throws(CacheError) -> (CacheEntry, generation: Int)? {
    if let known = state.withLock({ $0.writableEntry }) { return known }
    try bringEntry(create: true)
    return state.withLock { $0.writableEntry }
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
