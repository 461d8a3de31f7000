internal import HTTPTransfer
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// The handles that programs have open on a version, and the looks for its cache entry.
///
/// The entry stays open while there are any handles.
package struct VersionHandles: Sendable {
  let owner: RemoteVersion

  package init(owner: RemoteVersion) { self.owner = owner }

  /// Counts an opened handle, and has the cache entry open until the last handle is closed.
  ///
  /// If the cache cannot be opened, or the disk is too slow, the file is read without it.
  ///
  /// - Parameters:
  ///   - needsBacking: whether ``VersionReads/backingFile`` is wanted, which reads the disk.
  ///   - answer: gets the file, or `tooManyFiles` if the process has no descriptor left; then no
  ///     handle is open. Called immediately or on a look queue.
  package func retain(
    needsBacking: Bool, _ answer: @escaping @Sendable (Result<BackingFile?, FileError>) -> Void
  ) {
    // Counted first: from then on an open entry stays open.
    let trust = owner.environment.readAheadHistory.withLock { $0.trust }
    let isOpened = owner.state.withLock { guarded in
      // Under the lock: of two concurrent opens, the first has counted the version.
      if guarded.openCount == 0 {
        guard owner.environment.openVersions.begin() else { return false }
        guarded.version.beginReading(trust)
      }
      guarded.openCount += 1
      return true
    }
    guard isOpened else {
      return answer(
        .failure(
          FileError(.tooManyFiles, "too many open files; raise the limit with ulimit -n")))
    }
    let (mustWait, isRepeated) = owner.state.withLock { guarded in
      let mustWait =
        guarded.entry == nil && guarded.hasRecord || needsBacking && guarded.version.isComplete
      defer { if mustWait { guarded.isLookQueued = true } }
      return (mustWait, guarded.isLookQueued)
    }
    guard mustWait else {
      WholeVerifier(owner: owner)?.hashIfDue()
      return answer(.success(nil))
    }
    let pending = PendingAnswer(answer)
    owner.environment.cacheOpens.perform(isRepeated: isRepeated) { [self] in
      owner.state.withLock { $0.isLookQueued = false }
      loadForHandle(pending)
    } late: {
      pending.take()?(.success(nil))
    }
  }

  /// Opens the entry for handles that were opened; on a thread that may wait for the disk.
  private func loadForHandle(_ pending: PendingAnswer<Result<BackingFile?, FileError>>) {
    // If this took too long, the opener has been answered, and may have closed the file again.
    guard owner.hasHandles else { return }
    do throws(CacheError) {
      try look()
    } catch {
      owner.recordCacheFailure(error)
      if error.code == .descriptorLimit {
        guard let answer = pending.take() else { return }
        release()
        return answer(.failure(FileError(error)))
      }
    }
    WholeVerifier(owner: owner)?.hashIfDue()
    verifyIfSmall()
    guard let answer = pending.take() else {
      // The handle may have been closed; the watch then closes the entry.
      return owner.requestWatch()
    }
    answer(.success(VersionReads(owner: owner).backingFile))
  }

  /// Verifies a complete file as a whole if that is quick.
  ///
  /// Its first open can then have a ``VersionReads/backingFile``. Of a larger file, each read
  /// verifies its own bytes. Reads the disk.
  private func verifyIfSmall() {
    let range = owner.state.withLock { guarded -> ByteRange? in
      guard guarded.version.isComplete, !guarded.unverified.isEmpty,
        guarded.unverified.byteCount <= FileSettings.verifiedAtOpenByteCount
      else { return nil }
      return 0..<(guarded.version.length ?? 0)
    }
    if let range { CacheVerifier(owner: owner).verify(range) }
  }

  /// Opens the entry for waiting reads.
  private func look() throws(CacheError) {
    owner.state.withLock {
      $0.lookCount += 1
      $0.lookedAt = .now
    }
    defer { owner.state.withLock { $0.lookCount -= 1 } }
    try EntryLoader(owner: owner).bring(create: false)
  }

  /// Looks for the entry again, because reads wait and it could not be opened before.
  func lookAgain() {
    owner.environment.cacheOpens.perform { [self] in
      owner.state.withLock { $0.isLookQueued = false }
      // The reader may have closed the file.
      guard owner.hasHandles else { return }
      do throws(CacheError) {
        try look()
      } catch {
        // The first failure was reported, and a store that fails reports its own.
        if error.isOfEntry { owner.recordCacheFailure(error) }
      }
      // The handle may have been closed; the watch then closes the entry.
      owner.requestWatch()
    } late: {
    }
  }

  package func release() {
    let areDescriptorsShort = !owner.environment.cache.hasSpareDescriptors
    var usage: ReadActivity.Usage?
    let released = owner.transact { guarded, actions in
      guarded.openCount -= 1
      if guarded.openCount == 0 {
        guarded.unreadSince = .now
        usage = guarded.version.endReading()
        // The reads were interrupted: no program waits for their bytes any more.
        guarded.version.dropParked(into: &actions)
      }
      let released = guarded.takeIdleEntry(areDescriptorsShort: areDescriptorsShort)
      if usage != nil, guarded.awaitsFingerprint { actions.needsWatch = true }
      return released
    }
    if let usage {
      owner.environment.openVersions.end()
      let length = owner.length
      owner.environment.readAheadHistory.withLock {
        $0.note(fetched: usage.fetched, read: usage.read, length: length)
      }
      owner.recordConnections()
    }
    _ = consume released
  }
}
