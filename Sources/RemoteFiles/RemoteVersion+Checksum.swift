internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Hashing the whole of a file for which the list has a checksum, in the background, when it is complete.
///
/// Readers may have seen its bytes by then. From the moment on at which they are known to be wrong nobody
/// sees them any more.
extension RemoteVersion {
  /// The SHA-256 of the whole in hexadecimal digits, where the list says it and the bytes were found to have
  /// it.
  public var verifiedSHA256: String? {
    guard let checksum, checksum.algorithm == .sha256,
      state.withLock({ $0.wholeCheck.isRight && $0.version.isComplete })
    else { return nil }
    return checksum.hexadecimal
  }

  /// Takes up what the record of `entry` says of the whole.
  func noteRecordedChecksum(_ entry: CacheEntry) {
    guard let checksum else { return }
    let isRecorded = entry.isRecorded(checksum)
    state.withLock { guarded in
      if guarded.version.isComplete, isRecorded, guarded.wholeCheck.begin() {
        guarded.wholeCheck.succeed()
      }
      if !entry.recoveredExtents.isEmpty { guarded.wholeCheck.hasEarlierBytes = true }
    }
  }

  /// Has the whole hashed, if it is there and was not since it was stored; the entry stays at hand until
  /// that is done.
  func hashWholeIfDue() {
    guard let checksum else { return }
    let isDue = state.withLock { guarded in
      guard guarded.version.isComplete, guarded.entry != nil || guarded.spill != nil,
        guarded.wholeCheck.begin()
      else { return false }
      guarded.holdCount += 1
      return true
    }
    guard isDue else { return }
    environment.hashWhole { [self] in
      let found = hashWhole(checksum.algorithm)
      let isWrong = found.digest.map { $0 != checksum } ?? false
      // At once: the storage queue may wait for the disk, and nobody is to see these bytes meanwhile.
      let remedy = isWrong ? dropWhole(found) : nil
      environment.storage.perform { [self] in
        if remedy != nil { removeWrongEntry() } else { settleWhole(checksum, found) }
        state.withLock { $0.holdCount -= 1 }
        environment.watch(self)
      }
      // What comes anew is stored after that.
      if let remedy { proceed(after: remedy) }
    }
  }

  /// What a look at all bytes has shown.
  private struct WholeReading: Sendable {
    /// What they hash to; nil where some are no longer there, or cannot be read.
    let digest: Checksum?
    /// The generation of the bytes: of those that have come since one was lost it says nothing.
    let generation: Int
  }

  /// Hashes all bytes; on a queue that may wait for the disk.
  private func hashWhole(_ algorithm: Checksum.Algorithm) -> WholeReading {
    let generation = state.withLock { $0.generation }
    return WholeReading(digest: digestOfWhole(algorithm), generation: generation)
  }

  private func digestOfWhole(_ algorithm: Checksum.Algorithm) -> Checksum? {
    guard let length else { return nil }
    // What the disk has damaged says nothing about the servers.
    verify(0..<length)
    let found = state.withLock { guarded -> LocatedBytes? in
      guard guarded.version.isComplete, guarded.entry != nil || guarded.spill != nil else {
        return nil
      }
      return guarded.locate(0..<length)
    }
    guard let located = found else { return nil }
    defer { if let lease = located.lease { endLease(lease) } }
    return withExtendedLifetime(located.entry) {
      let digest = RunningDigest(algorithm)
      let isRead = Self.forEachBlock(of: located.pieces, from: 0) { bytes, _ in
        digest.update(bytes)
      }
      return isIntact(located) && isRead && isComplete ? digest.finish() : nil
    }
  }

  /// Takes up that the whole has the right hash, or that the hash says nothing; on the storage queue, which
  /// alone appends to records.
  private func settleWhole(_ checksum: Checksum, _ found: WholeReading) {
    let isCurrent = state.withLock { $0.generation == found.generation }
    guard isCurrent, found.digest == checksum, let length else {
      // Nobody is to blame: what was lost is fetched again, and hashed when all is there.
      change { $0.plan(now: .now, into: &$1) }
      state.withLock { $0.wholeCheck.abandon() }
      if !isCurrent { hashWholeIfDue() }
      return
    }
    let entry = state.withLock { guarded in
      guarded.wholeCheck.succeed()
      return guarded.entry
    }
    do throws(CacheError) {
      try entry?.recordChecksum(checksum, length: length)
    } catch {
      // The next mount hashes it again.
      noteCacheFailure(error)
    }
    environment.logger.info(
      "the checksum is right", metadata: ["file": "\(file.source.path)"])
  }

  /// The whole is not what the list says: nobody sees its bytes from now on.
  ///
  /// Never waits for the disk. ``removeWrongEntry()`` and ``proceed(after:)`` follow, in this order.
  ///
  /// - Returns: what follows; nil where some of the bytes that were hashed are others by now.
  private func dropWhole(_ found: WholeReading) -> WholeCheck.Remedy? {
    let trusted = file.mirrors?.snapshot.trusted ?? [0]
    let (remedy, entry) = state.withLock { guarded -> (WholeCheck.Remedy?, CacheEntry?) in
      guard guarded.generation == found.generation else { return (nil, nil) }
      let remedy = guarded.wholeCheck.fail(trusted: trusted)
      guarded.dropSpill()
      if remedy == .giveUp { guarded.version.failForGood(.wrongWhole) }
      return (remedy, guarded.giveUpEntry())
    }
    _ = consume entry
    // Before anything is asked for anew.
    if case .refetch(let liar) = remedy { chooseAnother(than: liar) }
    return remedy
  }

  /// Removes the entry of a whole that is wrong; on the storage queue, before anything of another one is stored.
  private func removeWrongEntry() {
    file.loading.withLock { _ in
      // The name belongs to the newer version when there is one.
      guard !state.withLock({ $0.version.isSuperseded }) else { return }
      environment.cache.removeEntry(file.cacheKey)
      // A store that was waiting for the disk may have opened it anew, for the same wrong bytes.
      let entry = state.withLock { $0.giveUpEntry() }
      _ = consume entry
    }
    change { $0.plan(now: .now, into: &$1) }
  }

  /// Has a wrong whole fetched from another server, if there is one, or fails its reads.
  private func proceed(after remedy: WholeCheck.Remedy) {
    environment.noteDropped(id)
    file.noteFailure(.wrongWhole, isRetried: remedy != .giveUp)
    change {
      if remedy == .giveUp { $0.failParked(.wrongWhole, now: .now, into: &$1) }
      $0.plan(now: .now, into: &$1)
    }
  }

  /// Has one server alone asked from now on, so that it is known who has brought the whole.
  private func chooseAnother(than liar: Int?) {
    if let liar {
      file.refuseMirror(liar, "it has sent wrong bytes: the whole does not match its checksum")
    }
    file.mirrors?.change { set in
      set.sole = set.contact(except: [], now: .now)
    }
  }
}
