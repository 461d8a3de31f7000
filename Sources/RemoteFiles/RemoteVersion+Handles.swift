internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// The handles of a version, and its cache entry, which is at hand while there are any.
extension RemoteVersion {
  /// A handle has been opened: the cache entry is at hand until the last one is closed.
  ///
  /// Where the cache cannot be opened the file is read without it.
  ///
  /// - Throws: `tooManyFiles` where the process has no descriptor left.
  public func retainHandle() throws(FileError) {
    // Counted first: from then on nobody lets go of an entry that is at hand.
    let trust = environment.readAheadHistory.withLock { $0.trust }
    let isFirst = state.withLock { guarded in
      guarded.openCount += 1
      if guarded.openCount == 1 { guarded.version.beginReading(trust) }
      return guarded.openCount == 1
    }
    if isFirst, !environment.openVersions.begin() {
      state.withLock { $0.openCount -= 1 }
      throw FileError(.tooManyFiles, "too many open files; raise the limit with ulimit -n")
    }
    do throws(CacheError) {
      try file.loading.withLock { (_) throws(CacheError) in try loadEntry(create: false) }
    } catch {
      noteCacheFailure(error)
      guard error.code == .descriptorLimit else { return }
      releaseHandle()
      throw FileError(error)
    }
    hashWholeIfDue()
  }

  public func releaseHandle() {
    var actions = VersionActions()
    let areDescriptorsShort = !environment.cache.hasSpareDescriptors
    var usage: VersionState.Usage?
    var proven: Int?
    let (released, wasLast, awaitsStamp) = state.withLock { guarded -> (CacheEntry?, Bool, Bool) in
      guarded.openCount -= 1
      if guarded.openCount == 0 {
        guarded.unreadSince = .now
        usage = guarded.version.endReading()
        proven = guarded.version.parallelism.proven
        // Reads that were interrupted: nobody waits for their bytes any more.
        guarded.version.dropParked(into: &actions)
      }
      let released = guarded.takeIdleEntry(areDescriptorsShort: areDescriptorsShort)
      return (released, guarded.openCount == 0, guarded.awaitsStamp)
    }
    if wasLast { environment.openVersions.end() }
    if let usage {
      let length = length
      environment.readAheadHistory.withLock {
        $0.note(fetched: usage.fetched, read: usage.read, length: length)
      }
    }
    if let proven { environment.noteConnections(proven, for: file.source.url) }
    drop(released)
    if wasLast, awaitsStamp { environment.watch(self) }
    perform(actions)
  }

  /// Opens or creates the entry if it is not at hand.
  ///
  /// Call under the file's `loading`.
  func loadEntry(create: Bool) throws(CacheError) {
    let (isAtHand, isSuperseded, hasRecord) = state.withLock {
      ($0.entry != nil, $0.version.isSuperseded, $0.hasRecord)
    }
    // The entry's name belongs to the newer version when there is one. Before the first byte of a
    // version is stored it belongs to an older one, whatever that one looks like.
    if isAtHand || isSuperseded || !(hasRecord || create) { return }
    let key = file.cacheKey
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
      guarded.version.length = guarded.version.length ?? entry?.recoveredVersion.completeLength
      return entry != nil
    }
    guard isTaken else { return }
    if let entry { noteRecordedChecksum(entry) }
    environment.retain(key, by: self)
    // What a crash has left uncommitted is committed in the course of things.
    if state.withLock({ $0.awaitsRecord }) { environment.watch(self) }
  }

  private func openEntry(hasRecord: Bool, create: Bool) throws(CacheError) -> CacheEntry? {
    let key = file.cacheKey
    let recordable = content.recordable
    if hasRecord, let found = try environment.cache.openEntry(key),
      recordable.hasSameIdentity(as: found.recoveredVersion)
    {
      return found
    }
    guard create else { return nil }
    return try environment.cache.createEntry(
      key, version: recordable, source: file.source.url.redacted)
  }

  /// Lets go of the entry, if nobody needs it any more, though it has bytes that are to be committed.
  ///
  /// - Returns: whether there was one.
  func releaseIdleEntry() -> Bool {
    let entry = state.withLock { $0.takeIdleEntry(areDescriptorsShort: true) }
    drop(entry)
    return entry != nil
  }

  /// The entry to write to, created with the first bytes of a version; nil where the file has a
  /// newer version.
  func writableEntry() throws(CacheError) -> CacheEntry? {
    if let entry = state.withLock({ $0.entry }) { return entry }
    try file.loading.withLock { (_) throws(CacheError) in try loadEntry(create: true) }
    return state.withLock { $0.entry }
  }

  /// Whether somebody has it open.
  var hasHandles: Bool { state.withLock { $0.openCount > 0 } }

  /// Whether somebody reads or fetches it: not to be evicted then.
  var isInUse: Bool { state.withLock { !$0.isUnused } }

  /// The cache has removed the entry, of which nobody made use.
  func evicted() {
    let dropped = state.withLock { guarded -> CacheEntry? in
      guarded.hasRecord = false
      guarded.refuted = ExtentSet()
      if guarded.wholeCheck.hasFailed {
        // Whoever evicts it wants it fetched anew.
        guarded.wholeCheck = WholeCheck()
        guarded.version.permanentFailure = nil
      }
      // Opened just now: what its descriptor still holds can be read, and no more is recorded.
      guard guarded.isUnused else { return nil }
      defer { guarded.entry = nil }
      guarded.setCached(ExtentSet(), believed: ExtentSet())
      return guarded.entry
    }
    drop(dropped)
  }

  func drop(_ entry: CacheEntry?) {
    guard entry != nil else { return }
    environment.release(file.cacheKey)
  }
}
