internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Hashes the whole of a complete file in the background if the list has a checksum for it.
///
/// Readers may have seen its bytes by then. As soon as they are known to be wrong, they are no
/// longer shown.
struct WholeVerifier: Sendable {
  let owner: RemoteVersion
  /// The checksum that the whole must have.
  let checksum: Checksum

  /// Creates a verifier if the list has a checksum for the file of `owner`.
  init?(owner: RemoteVersion) {
    guard let checksum = owner.checksum else { return nil }
    self.owner = owner
    self.checksum = checksum
  }

  /// Adopts what the record of `entry` says about the whole.
  func recordEntry(of entry: CacheEntry) {
    let isRecorded = entry.isRecorded(checksum)
    owner.state.withLock {
      $0.recordWhole(isRight: isRecorded, hasBytes: !entry.recoveredExtents.isEmpty)
    }
  }

  /// Hashes the whole if it is present and has not been hashed since it was stored.
  ///
  /// The entry stays open until that is done.
  func hashIfDue() {
    let isDue = owner.state.withLock { guarded in
      guard guarded.version.isComplete, guarded.entry != nil || guarded.spill != nil,
        guarded.fileChecksum.begin()
      else { return false }
      guarded.holdCount += 1
      return true
    }
    guard isDue else { return }
    owner.environment.hashFile { [self] in
      let found = hashFile()
      let isWrong = found.digest.map { $0 != checksum } ?? false
      // Immediately: the storage queue may wait for the disk, and these bytes must not be shown
      // meanwhile.
      let remedy = isWrong ? dropWhole(found) : nil
      owner.environment.storage.perform { [self] in
        if remedy != nil { removeWrongEntry() } else { settleWhole(found) }
        owner.endHold()
      }
      // Bytes that are fetched again are stored after that.
      if let remedy { proceed(after: remedy) }
    }
  }

  /// The result of hashing all bytes.
  private struct WholeReading: Sendable {
    /// Their hash; nil if some are lost, or cannot be read.
    let digest: Checksum?
    /// The generation of the bytes: the hash says nothing about bytes that arrived after a loss.
    let generation: Int
  }

  /// Hashes all bytes; on a queue that may wait for the disk.
  private func hashFile() -> WholeReading {
    let generation = owner.state.withLock { $0.generation }
    return WholeReading(digest: digestOfWhole(), generation: generation)
  }

  private func digestOfWhole() -> Checksum? {
    guard let length = owner.length else { return nil }
    // Damage by the disk says nothing about the servers.
    CacheVerifier(owner: owner).verify(0..<length)
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
      let isIntact = VersionReads(owner: owner).isIntact(located)
      return isIntact && isRead && owner.isComplete ? digest.finish() : nil
    }
  }

  /// Handles a right hash, or one that is inconclusive; on the storage queue, which alone appends
  /// to records.
  private func settleWhole(_ found: WholeReading) {
    let isCurrent = owner.state.withLock { $0.generation == found.generation }
    guard isCurrent, found.digest == checksum, let length = owner.length else {
      // No server is to blame: lost bytes are fetched again, and the whole is hashed when it is
      // complete.
      owner.change { $0.plan(now: .now, into: &$1) }
      owner.state.withLock { $0.fileChecksum.abandon() }
      if !isCurrent { hashIfDue() }
      return
    }
    let entry = owner.state.withLock { guarded in
      guarded.fileChecksum.succeed()
      return guarded.entry
    }
    do throws(CacheError) {
      try entry?.recordChecksum(checksum, length: length)
    } catch {
      // The next mount hashes it again.
      owner.recordCacheFailure(error)
    }
    owner.environment.logger.info(
      "the checksum is right", metadata: ["file": "\(owner.file.source.path)"])
  }

  /// Drops the whole, because it does not have its checksum; its bytes are no longer shown.
  ///
  /// It never waits for the disk. ``removeWrongEntry()`` and ``proceed(after:)`` follow, in this
  /// order.
  ///
  /// - Returns: the remedy; nil if some of the hashed bytes have been replaced.
  private func dropWhole(_ found: WholeReading) -> FileChecksum.Remedy? {
    let trusted = owner.file.mirrors?.snapshot.trusted ?? [0]
    let (remedy, entry) = owner.state.withLock { guarded -> (FileChecksum.Remedy?, CacheEntry?) in
      guard guarded.generation == found.generation else { return (nil, nil) }
      let remedy = guarded.fileChecksum.fail(trusted: trusted)
      guarded.dropSpill()
      if remedy == .giveUp { guarded.version.failForGood(.wrongChecksum) }
      return (remedy, guarded.giveUpEntry())
    }
    _ = consume entry
    // Before bytes are requested again.
    if case .refetch(let culprit) = remedy { chooseAnother(than: culprit) }
    return remedy
  }

  /// Removes the entry of a wrong whole; on the storage queue, before bytes of another one are
  /// stored.
  private func removeWrongEntry() {
    owner.file.entryLock.withLock { _ in
      // The name belongs to the newer version if there is one.
      guard !owner.state.withLock({ $0.version.isSuperseded }) else { return }
      do throws(CacheError) {
        try owner.environment.cache.removeEntry(owner.file.cacheKey)
      } catch {
        owner.recordCacheFailure(error)
      }
      // A store that waited for the disk may have opened it again, for the same wrong bytes.
      let entry = owner.state.withLock { $0.giveUpEntry() }
      _ = consume entry
    }
    owner.change { $0.plan(now: .now, into: &$1) }
  }

  /// Has a wrong whole fetched from another server, if there is one, or fails its reads.
  private func proceed(after remedy: FileChecksum.Remedy) {
    owner.environment.recordDropped(owner.id)
    owner.file.recordFailure(.wrongChecksum, isRetried: remedy != .giveUp)
    owner.change {
      if remedy == .giveUp { $0.failParked(.wrongChecksum, now: .now, into: &$1) }
      $0.plan(now: .now, into: &$1)
    }
  }

  /// Makes one server the only source from now on, so that the origin of the whole is known.
  private func chooseAnother(than culprit: Int?) {
    if let culprit {
      owner.file.refuseMirror(
        culprit, "it has sent wrong bytes: the whole does not match its checksum")
    }
    owner.file.mirrors?.change { set in
      set.exclusive = set.contact(except: [], now: .now)
    }
  }
}
