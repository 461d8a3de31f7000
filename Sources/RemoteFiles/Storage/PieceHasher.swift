internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache
internal import Synchronization

/// Hashes the pieces that have arrived.
///
/// Bytes that are in the cache file, but in no record, become present if their hash matches the
/// list. A crash loses the bytes that are not in the record.
struct PieceHasher: Sendable {
  let owner: RemoteVersion

  /// Ensures that a piece is recorded only once; used on the storage queue.
  private final class PieceRecording: Sendable {
    private let hasBegun = Atomic<Bool>(false)

    func begin() -> Bool { !hasBegun.exchange(true, ordering: .relaxed) }
  }

  /// The result of reading a piece.
  private enum PieceReading: Sendable {
    case read(PieceContent)
    /// The bytes are no longer stored.
    case gone
    /// The disk cannot read the bytes.
    case unreadable
  }

  /// The content of a piece.
  private struct PieceContent: Sendable {
    let digest: Checksum
    /// The blocks to record, and their hashes.
    let claims: [(range: ByteRange, contentHash: UInt64)]
    /// The entry that they were read from; nil if memory holds some of them.
    let entry: CacheEntry?

    /// Whether the hash of the piece is that of the list.
    func matches(_ check: PieceTable.Check, of pieces: PieceTable) -> Bool {
      digest.digest == pieces.hashes.digests[check.piece]
    }
  }

  /// Hashes pieces that have arrived completely; the entry stays open until that is done.
  func hash(_ checks: [PieceTable.Check]) {
    owner.state.withLock { $0.holdCount += checks.count }
    for check in checks {
      owner.environment.hashPiece { [self] in
        let reading = read(check)
        if case .unreadable = reading { owner.recordUnreadable(check.range) }
        let recording = PieceRecording()
        owner.environment.storage.record { [self] in
          record(reading, of: check, recording)
          return { [self] in settle(check, reading) }
        } withoutDisk: { [self] in
          // Readers wait for the hash, not for the record.
          recordLater(reading, of: check, recording)
        }
      }
    }
  }

  /// Applies the result of a hash while the disk is stalled, and records the piece later.
  ///
  /// The entry stays open until then.
  private func recordLater(
    _ reading: PieceReading, of check: PieceTable.Check, _ recording: PieceRecording
  ) {
    // Count it before the piece is present, which must not be taken for recorded.
    owner.state.withLock {
      $0.holdCount += 1
      $0.unrecordedCount += 1
    }
    settle(check, reading)
    owner.environment.storage.perform { [self] in
      if case .read(let content) = reading, let entry = content.entry,
        owner.state.withLock({ $0.holds(check.range, in: entry) }), recording.begin()
      {
        record(content, in: entry)
      }
      owner.transact { guarded, actions in
        guarded.holdCount -= 1
        guarded.unrecordedCount -= 1
        actions.needsWatch = true
      }
    }
  }

  /// Reads a piece from where it was stored; called on the hashing queue.
  private func read(_ check: PieceTable.Check) -> PieceReading {
    guard let pieces = owner.state.withLock({ $0.version.pieces }) else { return .gone }
    // Bytes that the disk has damaged say nothing about a server.
    CacheVerifier(owner: owner).verify(check.range)
    let found = owner.state.withLock { guarded -> LocatedBytes? in
      guard guarded.isCurrent(check) else { return nil }
      return guarded.locate(check.range)
    }
    guard let located = found else { return .gone }
    defer { if let lease = located.lease { owner.endLease(lease) } }
    // The entry keeps its descriptor open.
    return withExtendedLifetime(located.entry) {
      let digest = RunningDigest(pieces.hashes.algorithm)
      var claims: [(range: ByteRange, contentHash: UInt64)] = []
      let isRead = BlockReader.forEach(
        of: located.pieces, from: check.range.lowerBound
      ) { bytes, offset in
        digest.update(bytes)
        claims.append(
          (ByteRange(offset: offset, byteCount: Int64(bytes.count)), ContentHash.hash(bytes)))
      }
      // Neither do bytes that it has lost.
      guard VersionReads(owner: owner).isIntact(located),
        owner.state.withLock({ $0.isCurrent(check) })
      else { return .gone }
      guard isRead else { return .unreadable }
      return .read(
        PieceContent(
          digest: digest.finish(), claims: claims,
          entry: located.lease == nil ? located.entry : nil))
    }
  }

  /// Applies the result of a hash.
  private func settle(_ check: PieceTable.Check, _ reading: PieceReading) {
    // The recorded bytes must be committed, and the entry released.
    defer { owner.endHold() }
    guard case .read(let content) = reading else {
      // That says nothing about a server: the bytes are fetched again.
      return owner.change { $0.abandon(check, now: .now, into: &$1) }
    }
    guard let pieces = owner.state.withLock({ $0.version.pieces }) else { return }
    let matches = content.matches(check, of: pieces)
    let trusted = owner.file.mirrors?.snapshot.trusted ?? [0]
    var outcome = PieceTable.Outcome.outdated
    // The liar must be known before the wrong bytes are requested again.
    let culprit = pieces.culprit(of: check, matches: matches, trusted: trusted)
    if let culprit { refuse(culprit, for: check) }
    owner.change {
      if let culprit { $0.endRequests(to: culprit, into: &$1) }
      outcome = $0.settle(check, matches: matches, trusted: trusted, now: .now, into: &$1)
    }
    switch outcome {
    case .verified:
      owner.environment.checkpointIfDue(VersionCheckpoints(owner: owner), now: .now)
      WholeVerifier(owner: owner)?.hashIfDue()
      recordProgressOfPieces()
    case .mismatch: owner.file.recordFailure(.wrongPiece, isRetried: true)
    case .lost: owner.file.recordFailure(.wrongPiece, isRetried: false)
    case .outdated: break
    }
  }

  /// Records a piece whose hash is right; called on the storage queue, which alone appends to
  /// records.
  private func record(
    _ reading: PieceReading, of check: PieceTable.Check, _ recording: PieceRecording
  ) {
    guard case .read(let content) = reading, let entry = content.entry,
      let pieces = owner.state.withLock({ $0.version.pieces }), pieces.isCurrent(check),
      content.matches(check, of: pieces), recording.begin()
    else { return }
    record(content, in: entry)
  }

  private func record(_ content: PieceContent, in entry: CacheEntry) {
    var refused: CacheError?
    do throws(CacheError) {
      for claim in content.claims {
        try entry.claim(claim.range, contentHash: claim.contentHash)
      }
    } catch {
      // This mount has the bytes anyway.
      owner.recordCacheFailure(error)
      refused = error
    }
    owner.state.withLock { guarded in
      for claim in content.claims {
        if !guarded.invalidated.isEmpty { guarded.invalidated.remove(claim.range) }
        guard entry === guarded.entry else { continue }
        if refused != nil {
          guarded.unclaimed.insert(claim.range)
        } else if !guarded.unclaimed.isEmpty {
          guarded.unclaimed.remove(claim.range)
        }
      }
    }
  }

  private func refuse(_ mirror: Int, for check: PieceTable.Check) {
    owner.file.refuseMirror(
      mirror, "it has sent wrong bytes: piece \(check.piece) does not match its hash")
  }

  /// Continues after a verified piece, because a prefetched file may be complete only now.
  private func recordProgressOfPieces() {
    if owner.state.withLock({ $0.version.isPrefetched }) { owner.environment.wakePrefetcher() }
    if !owner.environment.cache.hasSpareDescriptors { _ = owner.releaseIdleEntry() }
  }
}
