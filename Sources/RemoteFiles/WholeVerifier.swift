internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Hashing the whole of a file for which the list has a checksum, in the background, when it is complete.
///
/// Readers may have seen its bytes by then. From the moment on at which they are known to be wrong nobody
/// sees them any more.
struct WholeVerifier: Sendable {
  let owner: RemoteVersion
  /// What the whole must hash to.
  let checksum: Checksum

  /// Takes up what the record of `entry` says of the whole.
  func noteRecord(of entry: CacheEntry) {
    let isRecorded = entry.isRecorded(checksum)
    owner.state.withLock { $0.noteRecord(of: entry, saysWhole: isRecorded) }
  }

  /// Has the whole hashed, if it is there and was not since it was stored; the entry stays at hand until
  /// that is done.
  func hashIfDue() {
    let isDue = owner.state.withLock { guarded in
      guard guarded.version.isComplete, guarded.entry != nil || guarded.spill != nil,
        guarded.wholeCheck.begin()
      else { return false }
      guarded.holdCount += 1
      return true
    }
    guard isDue else { return }
    owner.environment.hashWhole { [self] in
      let found = hashWhole()
      let isWrong = found.digest.map { $0 != checksum } ?? false
      // At once: the storage queue may wait for the disk, and nobody is to see these bytes meanwhile.
      let remedy = isWrong ? dropWhole(found) : nil
      owner.environment.storage.perform { [self] in
        if remedy != nil { removeWrongEntry() } else { settleWhole(found) }
        owner.state.withLock { $0.holdCount -= 1 }
        owner.environment.watch(owner)
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
  private func hashWhole() -> WholeReading {
    let generation = owner.state.withLock { $0.generation }
    return WholeReading(digest: digestOfWhole(), generation: generation)
  }

  private func digestOfWhole() -> Checksum? {
    guard let length = owner.length else { return nil }
    // What the disk has damaged says nothing about the servers.
    owner.verifier.verify(0..<length)
    let found = owner.state.withLock { guarded -> LocatedBytes? in
      guard guarded.version.isComplete, guarded.entry != nil || guarded.spill != nil else {
        return nil
      }
      return guarded.locate(0..<length)
    }
    guard let located = found else { return nil }
    defer { if let lease = located.lease { owner.endLease(lease) } }
    return withExtendedLifetime(located.entry) {
      let digest = RunningDigest(checksum.algorithm)
      let isRead = BlockReader.forEach(of: located.pieces, from: 0) { bytes, _ in
        digest.update(bytes)
      }
      return owner.isIntact(located) && isRead && owner.isComplete ? digest.finish() : nil
    }
  }

  /// Takes up that the whole has the right hash, or that the hash says nothing; on the storage queue, which
  /// alone appends to records.
  private func settleWhole(_ found: WholeReading) {
    let isCurrent = owner.state.withLock { $0.generation == found.generation }
    guard isCurrent, found.digest == checksum, let length = owner.length else {
      // Nobody is to blame: what was lost is fetched again, and hashed when all is there.
      owner.change { $0.plan(now: .now, into: &$1) }
      owner.state.withLock { $0.wholeCheck.abandon() }
      if !isCurrent { hashIfDue() }
      return
    }
    let entry = owner.state.withLock { guarded in
      guarded.wholeCheck.succeed()
      return guarded.entry
    }
    do throws(CacheError) {
      try entry?.recordChecksum(checksum, length: length)
    } catch {
      // The next mount hashes it again.
      owner.noteCacheFailure(error)
    }
    owner.environment.logger.info(
      "the checksum is right", metadata: ["file": "\(owner.file.source.path)"])
  }

  /// The whole is not what the list says: nobody sees its bytes from now on.
  ///
  /// Never waits for the disk. ``removeWrongEntry()`` and ``proceed(after:)`` follow, in this order.
  ///
  /// - Returns: what follows; nil where some of the bytes that were hashed are others by now.
  private func dropWhole(_ found: WholeReading) -> WholeCheck.Remedy? {
    let trusted = owner.file.mirrors?.snapshot.trusted ?? [0]
    let (remedy, entry) = owner.state.withLock { guarded -> (WholeCheck.Remedy?, CacheEntry?) in
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
    owner.file.loading.withLock { _ in
      // The name belongs to the newer version when there is one.
      guard !owner.state.withLock({ $0.version.isSuperseded }) else { return }
      owner.environment.cache.removeEntry(owner.file.cacheKey)
      // A store that was waiting for the disk may have opened it anew, for the same wrong bytes.
      let entry = owner.state.withLock { $0.giveUpEntry() }
      _ = consume entry
    }
    owner.change { $0.plan(now: .now, into: &$1) }
  }

  /// Has a wrong whole fetched from another server, if there is one, or fails its reads.
  private func proceed(after remedy: WholeCheck.Remedy) {
    owner.environment.noteDropped(owner.id)
    owner.file.noteFailure(.wrongWhole, isRetried: remedy != .giveUp)
    owner.change {
      if remedy == .giveUp { $0.failParked(.wrongWhole, now: .now, into: &$1) }
      $0.plan(now: .now, into: &$1)
    }
  }

  /// Has one server alone asked from now on, so that it is known who has brought the whole.
  private func chooseAnother(than liar: Int?) {
    if let liar {
      owner.file.refuseMirror(
        liar, "it has sent wrong bytes: the whole does not match its checksum")
    }
    owner.file.mirrors?.change { set in
      set.sole = set.contact(except: [], now: .now)
    }
  }
}

extension RemoteVersion {
  /// Hashes the whole, where the list has a checksum.
  var whole: WholeVerifier? { checksum.map { WholeVerifier(owner: self, checksum: $0) } }
}
