internal import ExtentRecord
internal import Glibc
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Making what is stored safe from a loss of power: three steps on two threads, see `CheckpointScheduler`;
/// and saying in the record that all of a file was looked at.
struct VersionCheckpoints: Checkpointed {
  let owner: RemoteVersion

  /// A checkpoint that has begun: what it is of.
  struct CheckpointTicket: Sendable {
    let entry: CacheEntry
    let fetchedByteCount: Int64
  }

  /// Begins a checkpoint where something is uncommitted and `interval` has passed since the last one began.
  func beginCheckpoint(
    now: ContinuousClock.Instant, interval: Duration
  ) -> CheckpointTicket? {
    owner.state.withLock { guarded in
      guard let entry = guarded.entry else { return nil }
      let isOfWhole =
        guarded.version.isComplete && guarded.unverified.isEmpty
        && guarded.version.extents.byteCount >= FileSettings.leastStampedByteCount
      guard entry.uncommittedByteCount > 0,
        guarded.checkpoint.begin(ofWhole: isOfWhole, now: now, interval: interval)
      else { return nil }
      return CheckpointTicket(entry: entry, fetchedByteCount: guarded.fetchedByteCount)
    }
  }

  /// The first step, on the disk queue; nil where it failed.
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
      // It is tried again and again: a record that cannot be copied is no trouble of other files.
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

  /// What a failed fdatasync of `failed` has left is unknown: everything uncommitted is given up.
  ///
  /// On the storage queue, where nothing is stored meanwhile.
  func discardUncommitted(of failed: CacheEntry) {
    owner.file.loading.withLock { _ in
      let isCurrent = owner.state.withLock { guarded in
        guard guarded.entry === failed, !guarded.version.isSuperseded else { return false }
        // Like a handle, so that nobody lets go of the entry meanwhile.
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
        // Otherwise whoever opens the record next leaves them out.
        if isReadable { guarded.hasLostSync = false }
        guarded.hasRecord = fresh != nil || !isReadable
        guarded.isRecordUnread = !isReadable
        // A disk that fails deserves a second look at everything.
        guarded.setCached(
          fresh?.recoveredExtents ?? ExtentSet(), believed: fresh?.believedExtents ?? ExtentSet())
      }
    }
    // What is committed is there again.
    owner.change { $0.wakeReads(into: &$1) }
  }

  /// The disk has refused bytes of `entry` before any checkpoint: none of it is present until the
  /// storage queue has looked which of them are committed.
  func loseWrites(of entry: CacheEntry) {
    let isFirst = owner.state.withLock { guarded in
      guarded.entry === entry && guarded.loseCached(0..<Int64.max) > 0
    }
    if isFirst, let error = entry.lostWrites { checkpointFailed(error, of: entry) }
  }

  private func checkpointFailed(
    _ error: CacheError, of entry: CacheEntry, isOfFile: Bool = false
  ) {
    // The names of an entry that was given up meanwhile are gone: that is no trouble of the disk.
    guard error.code == .syncFailed || owner.state.withLock({ $0.entry === entry }) else { return }
    if error.code == .syncFailed {
      // From now on: the entry may be let go of, and opened anew, before the storage queue comes to it.
      owner.state.withLock { if $0.entry == nil || $0.entry === entry { $0.hasLostSync = true } }
      owner.environment.storage.perform { [self] in discardUncommitted(of: entry) }
    }
    if error.code == .syncFailed || !isOfFile { owner.noteCacheFailure(error) }
    owner.file.noteFailure(FileError(error), isRetried: false)
  }

  /// How many bytes are stored and uncommitted.
  var uncommittedByteCount: Int64 { owner.state.withLock { $0.entry?.uncommittedByteCount ?? 0 } }

  /// Commits what is uncommitted; for the end of a mount, when no transfer runs.
  func commitFinally() {
    guard let ticket = beginCheckpoint(now: .now, interval: .zero) else { return }
    guard let checkpoint = syncData(ticket) else { return endCheckpoint() }
    commit(ticket, checkpoint)
    finishCheckpoint(ticket)
  }

  // MARK: Stamps

  /// Has ``stampIfDue()`` called on the storage queue, where it has anything to do and is not to be called
  /// there already: the disk may stand still.
  func stampSoon() {
    guard owner.state.withLock({ $0.awaitsStamp && $0.checkpoint.queueStamp() }) else { return }
    owner.environment.storage.perform { [self] in
      owner.state.withLock { $0.checkpoint.takeQueuedStamp() }
      stampIfDue()
    }
  }

  /// Has the record of a whole file say, once, that all its bytes were looked at or stored by this
  /// mount; on the storage queue, or at the end of the mount.
  ///
  /// - Returns: how long it is too early for that; nil where it is done, or there is nothing to do.
  @discardableResult
  func stampIfDue() -> Duration? {
    let ticket = owner.state.withLock { guarded -> CheckpointTicket? in
      guard let entry = guarded.entry, guarded.awaitsStamp, guarded.checkpoint.beginStamp() else {
        return nil
      }
      return CheckpointTicket(entry: entry, fetchedByteCount: guarded.fetchedByteCount)
    }
    guard let ticket else { return nil }
    defer { endCheckpoint() }
    do throws(CacheError) {
      if case .tooEarly(let delay) = try ticket.entry.appendStamp(
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

  /// For the end of a mount, when no transfer runs.
  func stampFinally() {
    for _ in 0..<Self.stampLimit {
      guard let delay = stampIfDue(), delay <= FileSettings.stampPatience else { return }
      usleep(UInt32(delay / .microseconds(1)) + 1000)
    }
  }

  /// A look at the file may find it changed in the meantime.
  private static let stampLimit = 3

  /// Waits until no checkpoint is under way, or until `deadline`; for the end of a mount.
  func finishCheckpoints(until deadline: ContinuousClock.Instant) {
    while owner.state.withLock({ $0.checkpoint.isBusy }), ContinuousClock.now < deadline {
      usleep(2000)
    }
  }
}

extension RemoteVersion {
  /// Makes what is stored safe from a loss of power.
  var checkpoints: VersionCheckpoints { VersionCheckpoints(owner: self) }
}
