internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Making what is stored safe from a loss of power: three steps on two threads, see `FileEnvironment`.
extension RemoteVersion {
  /// A checkpoint that has begun: what it is of.
  struct CheckpointTicket: Sendable {
    let entry: CacheEntry
    let fetchedByteCount: Int64
  }

  /// Whether nothing waits, is in flight or is uncommitted; drops the entry if so.
  ///
  /// - Parameter areDescriptorsShort: whether the entry is dropped although it has bytes that are to
  ///   be committed.
  /// - Returns: whether it need not be watched any more.
  func isIdle(areDescriptorsShort: Bool) -> Bool {
    let (idle, entry) = state.withLock { guarded -> (Bool, CacheEntry?) in
      guard !guarded.version.needsWatch, !guarded.isCheckpointing,
        areDescriptorsShort || (guarded.entry?.uncommittedByteCount ?? 0) == 0
      else { return (false, nil) }
      let entry = guarded.takeIdleEntry(areDescriptorsShort: areDescriptorsShort)
      return ((guarded.entry?.uncommittedByteCount ?? 0) == 0, entry)
    }
    drop(entry)
    return idle
  }

  func beginCheckpoint(
    now: ContinuousClock.Instant, byteCount: Int64, interval: Duration
  ) -> CheckpointTicket? {
    state.withLock { guarded in
      guard let entry = guarded.entry, !guarded.isCheckpointing else { return nil }
      let uncommitted = entry.uncommittedByteCount
      guard
        uncommitted >= byteCount
          || uncommitted > 0 && now - guarded.lastCheckpoint >= interval
      else { return nil }
      guarded.isCheckpointing = true
      guarded.lastCheckpoint = now
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

  /// The second step, on the network thread, which alone appends to the record.
  func commit(_ ticket: CheckpointTicket, _ checkpoint: Checkpoint) {
    do throws(CacheError) {
      try ticket.entry.appendCommit(checkpoint, fetchedByteCount: ticket.fetchedByteCount)
    } catch {
      checkpointFailed(error, of: ticket.entry)
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

  func endCheckpoint() { state.withLock { $0.isCheckpointing = false } }

  /// What a failed fdatasync of `failed` has left is unknown: everything uncommitted is given up.
  ///
  /// On the network thread, where nothing is stored meanwhile.
  private func discardUncommitted(of failed: CacheEntry) {
    file.loading.withLock { _ in
      let isCurrent = state.withLock { guarded in
        guard guarded.entry === failed, !guarded.version.isSuperseded else { return false }
        // Like a handle, so that nobody lets go of the entry meanwhile.
        guarded.holdCount += 1
        return true
      }
      guard isCurrent else { return }
      var fresh: CacheEntry?
      var isReadable = true
      do throws(CacheError) {
        fresh = try environment.cache.openEntry(file.cacheKey, uncommitted: .discard)
      } catch {
        isReadable = false
      }
      state.withLock { guarded in
        guarded.holdCount -= 1
        guarded.retired.append(failed)
        guarded.entry = fresh
        guarded.hasRecord = fresh != nil || !isReadable
        // A disk that fails deserves a second look at everything.
        guarded.setCached(
          fresh?.recoveredExtents ?? ExtentSet(), believed: fresh?.believedExtents ?? ExtentSet())
      }
      if fresh == nil { environment.release(file.cacheKey) }
    }
  }

  private func checkpointFailed(_ error: CacheError, of entry: CacheEntry) {
    if error.code == .syncFailed {
      environment.client.perform { [self] in discardUncommitted(of: entry) }
    }
    noteCacheFailure(error)
    file.noteFailure(FileError(error), isRetried: false)
  }

  func commitFinally() {
    guard let ticket = beginCheckpoint(now: .now, byteCount: 1, interval: .zero) else { return }
    guard let checkpoint = syncData(ticket) else { return endCheckpoint() }
    commit(ticket, checkpoint)
    finishCheckpoint(ticket)
  }

  func noteFetched(_ byteCount: Int) {
    state.withLock { $0.fetchedByteCount += Int64(byteCount) }
  }
}
