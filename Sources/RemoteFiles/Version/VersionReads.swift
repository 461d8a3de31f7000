internal import ExtentRecord
internal import HTTPTransfer
package import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// Answers the reads of a version, immediately or when their bytes have arrived.
package struct VersionReads: Sendable {
  let owner: RemoteVersion

  package init(owner: RemoteVersion) { self.owner = owner }

  /// The cache file, which the kernel can read directly.
  ///
  /// It is nil unless the file holds every byte of the version, verified and committed, and no
  /// others. The disk may still refuse bytes that are not committed. Their pages are then lost, and
  /// the kernel would read zeros without asking this process.
  var backingFile: BackingFile? {
    let entry = owner.state.withLock { [checksum = owner.checksum] guarded in
      guarded.version.isComplete && guarded.unverified.isEmpty && guarded.spill == nil
        && !guarded.isUncacheable && (checksum == nil || guarded.fileChecksum.isRight)
        ? guarded.entry : nil
    }
    guard let entry, let length = owner.length, entry.isCommitted,
      entry.dataByteCount == length, entry.isReadable
    else { return nil }
    return BackingFile(of: entry)
  }

  /// Answers what can be answered immediately; on a libfuse thread, with a handle open.
  ///
  /// Reads the disk if it uses bytes that an earlier mount has stored.
  package func attempt(_ range: ByteRange) -> ReadOutcome {
    decide(range) { guarded, attempt, now, actions in
      guarded.version.note(range, now: now)
      if case .present = attempt { guarded.version.plan(now: now, into: &actions) }
    }
  }

  /// Whether an answer to a read of `range` may wait for the disk under the cache; uses memory
  /// only.
  package func mayWaitForDisk(_ range: ByteRange) -> Bool {
    owner.state.withLock { $0.entry != nil && $0.version.extents.overlaps(range) }
  }

  /// Parks a read of absent bytes until they arrive or its deadline passes.
  package func wait(for range: ByteRange, reply: any ReadReply) {
    let now = ContinuousClock.now
    wait(
      for: UnansweredRead(
        range: range, since: now, deadline: now + owner.environment.settings.readTimeout,
        reply: reply))
  }

  /// Parks a read that may have waited before; it keeps its first deadline.
  func wait(for read: UnansweredRead) {
    // The bytes may have arrived since the attempt.
    let outcome = decide(read.range) { guarded, attempt, now, actions in
      guard case .absent = attempt else { return }
      var read = read
      read.range = guarded.version.clamped(read.range)
      guarded.version.park(guarded.replies.keep(read), into: &actions)
      guarded.version.plan(now: now, into: &actions)
      actions.needsWatch = true
    }
    switch outcome {
    case .present(let bytes): read.reply.succeed(bytes)
    case .failed(let error): read.reply.fail(error)
    case .absent: break
    }
  }

  /// Determines the state of `range`; `then` acts on it under the same lock.
  private func decide(
    _ range: ByteRange,
    then: (
      inout VersionHoldings, ReadAttempt, ContinuousClock.Instant, inout VersionActions
    ) -> Void
  ) -> ReadOutcome {
    // Damaged bytes are absent in the next round; each round leaves fewer bytes unverified.
    for _ in 0..<Self.decisionLimit {
      let decision = owner.transact { guarded, actions -> Decision in
        let now = ContinuousClock.now
        guarded.forgetExtentsWithoutEntry()
        if guarded.mustVerify(range) { return .verify }
        let attempt = guarded.version.attempt(range, now: now)
        then(&guarded, attempt, now, &actions)
        switch attempt {
        case .absent: return .absent
        case .failed(let error): return .failed(error)
        case .present(let byteCount):
          let present = ByteRange(offset: range.lowerBound, byteCount: Int64(byteCount))
          return .present(guarded.locate(present))
        }
      }
      switch decision {
      case .verify: CacheVerifier(owner: owner).verify(range)
      case .absent: return .absent
      case .failed(let error): return .failed(error)
      case .present(let located):
        let bytes = PresentBytes(of: owner, located)
        if isIntact(located) { return .present(bytes) }
      }
    }
    return .failed(FileError(.cacheFailed, "the cache changes while it is read"))
  }

  /// Whether the cache's file still holds its part of `located`.
  ///
  /// Bytes that the disk has refused, or that were cut off, are absent from then on. It is called
  /// before bytes are delivered, and after they were hashed: a hash of lost bytes says nothing
  /// about a server.
  func isIntact(_ located: LocatedBytes) -> Bool {
    guard let entry = located.entry else { return true }
    if entry.hasLostWrites {
      VersionCheckpoints(owner: owner).loseWrites(of: entry)
      return false
    }
    guard let size = entry.dataByteCount, size < located.cachedEnd else { return true }
    _ = CacheVerifier(owner: owner).forget(from: size, of: entry)
    return false
  }

  /// The action that the state of a range requires.
  private enum Decision {
    case present(LocatedBytes)
    case failed(FileError)
    case absent
    /// The bytes must be verified first.
    case verify
  }

  private static let decisionLimit = 8
}
