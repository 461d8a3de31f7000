internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Opens and creates the cache entry of a version, and records its length there.
struct EntryLoader: Sendable {
  let owner: RemoteVersion

  /// Opens or creates the entry if it is not open, and answers the reads whose bytes it holds.
  ///
  /// Call it without holding a lock.
  func bring(create: Bool) throws(CacheError) {
    try owner.file.entryLock.withLock { (_) throws(CacheError) in try loadEntry(create: create) }
    owner.transact { guarded, actions in
      guarded.version.wakeReads(into: &actions)
      // The watch commits what a crash has left uncommitted.
      if guarded.awaitsRecord { actions.needsWatch = true }
    }
  }

  /// Runs under the file's `entryLock`, so it makes no callback; ``bring(create:)`` answers the
  /// reads.
  private func loadEntry(create: Bool) throws(CacheError) {
    let (isAtHand, isSuperseded, hasRecord) = owner.state.withLock {
      ($0.entry != nil, $0.version.isSuperseded, $0.hasRecord)
    }
    // The entry's name belongs to the newer version if there is one. Before the first byte of a
    // version is stored, it belongs to an older one, whatever that looks like.
    if isAtHand || isSuperseded || !(hasRecord || create) { return }
    let key = owner.file.cacheKey
    // This comes first: after it, an eviction that is removing the entry has ended, and a later one
    // asks this file. An entry that is being removed must be neither opened, because nothing more
    // would be recorded in it, nor replaced, because the eviction would remove the new one.
    owner.environment.recordUpcomingEntry(key, of: owner)
    var entry: CacheEntry?
    do throws(CacheError) {
      entry = try openEntry(hasRecord: hasRecord, create: create)
    } catch {
      // Files without readers keep theirs until the next checkpoint.
      guard error.code == .descriptorLimit, owner.environment.releaseIdleEntries() else {
        throw error
      }
      entry = try openEntry(hasRecord: hasRecord, create: create)
    }
    let isTaken = owner.state.withLock { [entry] guarded in
      guard !guarded.version.isSuperseded else { return false }
      guarded.entry = entry
      guarded.hasRecord = entry != nil
      guarded.isRecordUnread = false
      guarded.hasLostSync = false
      // Bytes that this mount has stored or verified need no second check, unless the data file has
      // changed since.
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
    if hasRecord { owner.environment.recordUse(of: key) }
    if let entry {
      WholeVerifier(owner: owner)?.recordEntry(of: entry)
      if let recorded = entry.recoveredVersion.completeLength {
        // Not here: this answers reads, and under `entryLock` no callback is made.
        if owner.length == nil {
          owner.environment.client.perform { [self] in owner.learn(length: recorded) }
        }
      } else if owner.length != nil {
        // The length was learned before there was an entry, or while it was not open.
        owner.environment.storage.perform { [self] in recordLength() }
      }
    }
    owner.environment.recordEntry(key, of: owner)
  }

  /// Records the length for later mounts; runs on the storage queue.
  func recordLength() {
    guard let length = owner.length else { return }
    do throws(CacheError) {
      try bring(create: false)
      guard let entry = owner.state.withLock({ $0.entry }) else { return }
      // The watch closes the entry when it is idle.
      owner.requestWatch()
      try entry.recordCompleteLength(length)
    } catch {
      owner.environment.logger.warning(
        "cannot record the length",
        metadata: ["file": "\(owner.file.source.path)", "error": "\(error)"])
    }
  }

  private func openEntry(hasRecord: Bool, create: Bool) throws(CacheError) -> CacheEntry? {
    let key = owner.file.cacheKey
    let recordable = owner.pinned.recordable
    // The kernel may still show pages that the disk has refused.
    let uncommitted: UncommittedExtents =
      owner.state.withLock { $0.hasLostSync } ? .discard : .verify
    if hasRecord, let found = try owner.environment.cache.openEntry(key, uncommitted: uncommitted),
      recordable.hasSameIdentity(as: found.recoveredVersion)
    {
      return found
    }
    guard create else { return nil }
    return try owner.environment.cache.createEntry(
      key, version: recordable, source: owner.file.source.url.redacted,
      reference: owner.file.mirrors?.reference)
  }

  /// The entry to write to, created with the first bytes of a version, and the generation of its
  /// extents; nil if the file has a newer version.
  func writableEntry() throws(CacheError) -> (CacheEntry, generation: Int)? {
    if let known = owner.state.withLock({ $0.writableEntry }) { return known }
    try bring(create: true)
    return owner.state.withLock { $0.writableEntry }
  }
}
