internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// Opens and creates the cache entry of a version.
struct EntryLoader: Sendable {
  let owner: RemoteVersion

  /// Opens or creates the entry if it is not at hand, and answers the reads that its record has the bytes
  /// for.
  ///
  /// Call without a lock.
  func bring(create: Bool) throws(CacheError) {
    try owner.file.loading.withLock { (_) throws(CacheError) in try loadEntry(create: create) }
    owner.change { $0.wakeReads(into: &$1) }
  }

  /// Under the file's `loading`, where nobody is called; ``bring(create:)`` answers the reads.
  private func loadEntry(create: Bool) throws(CacheError) {
    let (isAtHand, isSuperseded, hasRecord) = owner.state.withLock {
      ($0.entry != nil, $0.version.isSuperseded, $0.hasRecord)
    }
    // The entry's name belongs to the newer version when there is one. Before the first byte of a
    // version is stored it belongs to an older one, whatever that one looks like.
    if isAtHand || isSuperseded || !(hasRecord || create) { return }
    let key = owner.file.cacheKey
    // First: an eviction that removes what lies there has ended then, and a later one asks this file.
    // What it removes must be neither opened, for nothing more would be recorded of it, nor replaced
    // by an entry that it would take away.
    owner.environment.noteUpcomingEntry(key, of: owner)
    var entry: CacheEntry?
    do throws(CacheError) {
      entry = try openEntry(hasRecord: hasRecord, create: create)
    } catch {
      // Files that nobody reads any more keep theirs until the next checkpoint.
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
    if hasRecord { owner.environment.noteUse(of: key) }
    if let entry {
      owner.whole?.noteRecord(of: entry)
      if let recorded = entry.recoveredVersion.completeLength {
        // Not here: it answers reads, and under `loading` nobody is called.
        if owner.length == nil {
          owner.environment.client.perform { [self] in owner.lengthRecorder.learn(length: recorded)
          }
        }
      } else if owner.length != nil {
        // Learned before there was an entry, or while it was not at hand.
        owner.environment.storage.perform { [self] in owner.lengthRecorder.record() }
      }
    }
    owner.environment.noteEntry(key, of: owner)
    // What a crash has left uncommitted is committed in the course of things.
    if owner.state.withLock({ $0.awaitsRecord }) { owner.environment.watch(owner) }
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
      definer: owner.file.mirrors?.definer)
  }

  /// The entry to write to, created with the first bytes of a version, and the generation of what is
  /// believed of it; nil where the file has a newer version.
  func writableEntry() throws(CacheError) -> (CacheEntry, generation: Int)? {
    if let known = owner.state.withLock({ $0.writableEntry }) { return known }
    try bring(create: true)
    return owner.state.withLock { $0.writableEntry }
  }
}

extension RemoteVersion {
  /// Opens the cache entry.
  var loader: EntryLoader { EntryLoader(owner: self) }
}
