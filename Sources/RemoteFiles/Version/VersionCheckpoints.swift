internal import ExtentRecord
internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Protects the stored bytes of a version from a loss of power, and stamps its record.
///
/// A checkpoint has three steps on two queues, see `CheckpointScheduler`. A stamp in the record
/// says that all bytes of a file were verified.
struct VersionCheckpoints: Checkpointed {
  let owner: RemoteVersion

  /// The subject of a checkpoint that has begun.
  struct CheckpointTicket: Sendable {
    let entry: CacheEntry
    let fetchedByteCount: Int64
  }

  /// Begins a checkpoint if there are uncommitted bytes and `interval` has passed since the last
  /// one began; see ``CheckpointPhase/begin(ofWhole:now:interval:)`` for the exception.
  func beginCheckpoint(
    now: ContinuousClock.Instant, interval: Duration
  ) -> CheckpointTicket? {
    owner.state.withLock { guarded in
      guard let entry = guarded.entry else { return nil }
      let isOfWhole =
        guarded.version.isComplete && guarded.unverified.isEmpty
        && guarded.version.extents.byteCount >= FileSettings.minimumStampedByteCount
      guard entry.uncommittedByteCount > 0,
        guarded.checkpoint.begin(ofWhole: isOfWhole, now: now, interval: interval)
      else { return nil }
      return CheckpointTicket(entry: entry, fetchedByteCount: guarded.fetchedByteCount)
    }
  }

  /// The first step, on the disk queue; nil if it failed.
  func syncData(_ ticket: CheckpointTicket) -> Checkpoint? {
    do throws(CacheError) {
      return try ticket.entry.syncData()
    } catch {
      checkpointFailed(error, of: ticket.entry)
      return nil
    }
  }

  /// The second step, on the storage queue, which alone appends to the record.
  func commit(_ ticket: CheckpointTicket, _ checkpoint: Checkpoint) {
    do throws(CacheError) {
      try ticket.entry.appendCommit(checkpoint, fetchedByteCount: ticket.fetchedByteCount)
    } catch {
      // Checkpoints are retried; a record that cannot be copied does not affect other files.
      checkpointFailed(error, of: ticket.entry, isOfFile: ticket.entry.isRecordLost)
    }
  }

  /// The last step, on the disk queue.
  func finishCheckpoint(_ ticket: CheckpointTicket) {
    do throws(CacheError) {
      try ticket.entry.syncRecord()
    } catch {
      checkpointFailed(error, of: ticket.entry)
    }
    endCheckpoint()
  }

  func endCheckpoint() { owner.state.withLock { $0.checkpoint.end() } }

  /// Discards everything uncommitted, because a failed fdatasync of `failed` leaves it unknown.
  ///
  /// Call it on the storage queue, so that no bytes are stored meanwhile.
  func discardUncommitted(of failed: CacheEntry) {
    owner.file.entryLock.withLock { _ in
      let isCurrent = owner.state.withLock { guarded in
        guard guarded.entry === failed, !guarded.version.isSuperseded else { return false }
        // Like a handle, it keeps the entry open meanwhile.
        guarded.holdCount += 1
        return true
      }
      guard isCurrent else { return }
      var fresh: CacheEntry?
      var isReadable = true
      do throws(CacheError) {
        fresh = try owner.environment.cache.openEntry(owner.file.cacheKey, uncommitted: .discard)
      } catch {
        isReadable = false
      }
      owner.state.withLock { guarded in
        guarded.holdCount -= 1
        guarded.entry = fresh
        // If it was not readable, the next open of the record leaves the uncommitted bytes out.
        if isReadable { guarded.hasLostSync = false }
        guarded.hasRecord = fresh != nil || !isReadable
        guarded.isRecordUnread = !isReadable
        // After a failure of the disk, everything is verified once more.
        guarded.setCached(
          fresh?.recoveredExtents ?? ExtentSet(), believed: fresh?.believedExtents ?? ExtentSet())
      }
    }
    // The committed bytes are present again.
    owner.change { $0.wakeReads(into: &$1) }
  }

  /// Takes all cached bytes for absent, because the disk has refused bytes of `entry` before any
  /// checkpoint.
  ///
  /// The storage queue then finds out which of them are committed.
  func loseWrites(of entry: CacheEntry) {
    let isFirst = owner.state.withLock { guarded in
      guarded.entry === entry && guarded.loseCached(0..<Int64.max) > 0
    }
    if isFirst, let error = entry.lostWrites { checkpointFailed(error, of: entry) }
  }

  private func checkpointFailed(
    _ error: CacheError, of entry: CacheEntry, isOfFile: Bool = false
  ) {
    // The names of an entry that was dropped meanwhile are gone; that is no failure of the disk.
    guard error.code == .syncFailed || owner.state.withLock({ $0.entry === entry }) else { return }
    if error.code == .syncFailed {
      // Set now: the entry may be closed and opened again before the storage queue discards them.
      owner.state.withLock { if $0.entry == nil || $0.entry === entry { $0.hasLostSync = true } }
      owner.environment.storage.perform { [self] in discardUncommitted(of: entry) }
    }
    if error.code == .syncFailed || !isOfFile { owner.recordCacheFailure(error) }
    if error.code == .descriptorLimit { return }
    owner.file.recordFailure(FileError(error), isRetried: false)
  }

  /// How many stored bytes are uncommitted.
  var uncommittedByteCount: Int64 { owner.state.withLock { $0.entry?.uncommittedByteCount ?? 0 } }

  /// Syncs the data and appends the COMMIT of all uncommitted bytes; for the end of a mount, when
  /// no exchange runs.
  ///
  /// - Returns: whether there were any.
  @discardableResult
  func commitFinally() -> Bool {
    guard let ticket = beginCheckpoint(now: .now, interval: .zero) else { return false }
    defer { endCheckpoint() }
    guard let checkpoint = syncData(ticket) else { return false }
    commit(ticket, checkpoint)
    return true
  }

  /// Waits until the COMMIT of ``commitFinally()`` is on the disk.
  func syncRecordFinally() {
    guard let entry = owner.state.withLock({ $0.entry }) else { return }
    finishCheckpoint(CheckpointTicket(entry: entry, fetchedByteCount: 0))
  }

  // MARK: Fingerprints

  /// Schedules ``fingerprintIfDue()`` on the storage queue, because the disk may hang.
  ///
  /// Does nothing if there is no stamp to write, or one is queued already.
  func stampSoon() {
    guard owner.state.withLock({ $0.awaitsFingerprint && $0.checkpoint.queueStamp() }) else {
      return
    }
    owner.environment.storage.perform { [self] in
      owner.state.withLock { $0.checkpoint.takeQueuedStamp() }
      fingerprintIfDue()
    }
  }

  /// Stamps the record of a whole file once: this mount has stored or verified all its bytes.
  ///
  /// Call it on the storage queue, or at the end of the mount.
  ///
  /// - Returns: how long it is too early for that; nil if it is done, or not needed.
  @discardableResult
  func fingerprintIfDue() -> Duration? {
    let ticket = owner.state.withLock { guarded -> CheckpointTicket? in
      guard let entry = guarded.entry, guarded.awaitsFingerprint, guarded.checkpoint.beginStamp()
      else {
        return nil
      }
      return CheckpointTicket(entry: entry, fetchedByteCount: guarded.fetchedByteCount)
    }
    guard let ticket else { return nil }
    defer { endCheckpoint() }
    do throws(CacheError) {
      if case .tooEarly(let delay) = try ticket.entry.appendFingerprint(
        fetchedByteCount: ticket.fetchedByteCount)
      {
        return delay
      }
    } catch {
      owner.environment.logger.debug(
        "no stamp", metadata: ["file": "\(owner.file.source.path)", "error": "\(error)"])
    }
    return nil
  }

  /// Stamps the record at the end of a mount, when no exchange runs.
  func stampFinally() {
    for _ in 0..<Self.stampLimit {
      guard let delay = fingerprintIfDue(), delay <= FileSettings.stampTimeout else { return }
      usleep(UInt32(delay / .microseconds(1)) + 1000)
    }
  }

  /// The file may have changed meanwhile, so that it is again too early.
  private static let stampLimit = 3

  /// Waits until no checkpoint is running, or until `deadline`; for the end of a mount.
  func finishCheckpoints(until deadline: ContinuousClock.Instant) {
    while owner.state.withLock({ $0.checkpoint.isBusy }), ContinuousClock.now < deadline {
      usleep(2000)
    }
  }
}
