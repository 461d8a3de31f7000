internal import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache
internal import Synchronization

extension RemoteVersion: WatchedVersion {}

extension RemoteVersion: EntryHolder {
  var entryOwner: any EntryOwner { home }
}

extension RemoteVersion: ByteKeeper {
  /// Notes that the disk does not return the cached bytes of `range`.
  ///
  /// From then on this version is kept in memory, because the disk would not return newly stored
  /// bytes either.
  func recordUnreadable(_ range: ByteRange) {
    let (lost, entry) = state.withLock { guarded -> (Int64, CacheEntry?) in
      guard let entry = guarded.entry else { return (0, nil) }
      guarded.isUncacheable = true
      return (guarded.loseCached(range), entry)
    }
    // The next mount verifies the entry before an application reads it.
    entry?.invalidateFingerprint()
    guard lost > 0 else { return }
    recordDamage(lost, "the cache file cannot be read")
    environment.health.recordFailure("the cache file of '\(file.source.path)' cannot be read")
  }

  func giveUpSpilled(_ range: ByteRange, in file: SpillFile) -> Bool {
    // Bytes that are found absent from then on are written after their memory is freed.
    environment.spills.writing.withLock { _ in giveUp(range, in: file) }
  }

  private func giveUp(_ range: ByteRange, in file: SpillFile) -> Bool {
    let (isGone, mustFree) = state.withLock { guarded -> (Bool, Bool) in
      // Another spill file contains none of these bytes.
      guard guarded.spill?.file === file else { return (true, false) }
      guard guarded.version.giveUpSpilled(range, now: .now) else { return (false, false) }
      guarded.generation += 1
      return (true, true)
    }
    if mustFree {
      // If this fails, the memory is freed with the file.
      try? FileSystemCalls.punchHole(
        file.descriptor.rawValue, range.lowerBound, byteCount: range.byteCount)
    }
    return isGone
  }

  func endLease(_ claim: SpillClaim) {
    state.withLock { $0.version.endLease(claim) }
  }
}
