internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache
internal import Synchronization

/// Hashing the pieces that have arrived: what is in the cache file and in no record becomes present when its
/// hash is the one that the list says.
///
/// A crash loses what is not in the record, as if it had never come.
struct PieceVerifier: Sendable {
  let owner: RemoteVersion

  /// Sees to it that a piece is recorded once; on the storage queue.
  private final class PieceRecording: Sendable {
    private let hasBegun = Atomic<Bool>(false)

    func begin() -> Bool { !hasBegun.exchange(true, ordering: .relaxed) }
  }

  /// What has become of a look at the bytes of a piece.
  private enum PieceReading: Sendable {
    case read(PieceContent)
    /// They are no longer there.
    case gone
    /// The disk does not give them back.
    case unreadable
  }

  /// What the bytes of a piece are.
  private struct PieceContent: Sendable {
    let digest: Checksum
    /// The blocks to record, and what they hash to.
    let claims: [(range: ByteRange, contentHash: UInt64)]
    /// Where they were read; nil where memory holds some of them.
    let entry: CacheEntry?

    /// Whether they are what the list says of the piece.
    func matches(_ check: PieceTable.Check, of pieces: PieceTable) -> Bool {
      digest.digest == pieces.hashes.digests[check.piece]
    }
  }

  /// Has pieces hashed that have arrived as a whole; the entry stays at hand until that is done.
  func hash(_ checks: [PieceTable.Check]) {
    owner.state.withLock { $0.holdCount += checks.count }
    for check in checks {
      owner.environment.hashPiece { [self] in
        let reading = read(check)
        if case .unreadable = reading { owner.verifier.noteUnreadable(check.range) }
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

  /// Takes up what the hash of a piece has shown while the disk stands still, and has the piece recorded when it
  /// moves again; the entry stays at hand until then.
  private func recordLater(
    _ reading: PieceReading, of check: PieceTable.Check, _ recording: PieceRecording
  ) {
    // Before the piece is present: nobody is to take it for recorded.
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
      owner.state.withLock {
        $0.holdCount -= 1
        $0.unrecordedCount -= 1
      }
      owner.environment.watch(owner)
    }
  }

  /// Reads a piece where it was stored; on the hashing queue.
  private func read(_ check: PieceTable.Check) -> PieceReading {
    guard let pieces = owner.state.withLock({ $0.version.pieces }) else { return .gone }
    // What the disk has damaged says nothing about a server.
    owner.verifier.verify(check.range)
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
      // Nor does what it has lost.
      guard owner.isIntact(located), owner.state.withLock({ $0.isCurrent(check) }) else {
        return .gone
      }
      guard isRead else { return .unreadable }
      return .read(
        PieceContent(
          digest: digest.finish(), claims: claims,
          entry: located.lease == nil ? located.entry : nil))
    }
  }

  /// Takes up what the hash of a piece has shown.
  private func settle(_ check: PieceTable.Check, _ reading: PieceReading) {
    defer {
      owner.state.withLock { $0.holdCount -= 1 }
      // What was recorded is to be committed, and the entry let go of.
      owner.environment.watch(owner)
    }
    guard case .read(let content) = reading else {
      // That says nothing about a server: the bytes are fetched again.
      return owner.change { $0.abandon(check, now: .now, into: &$1) }
    }
    guard let pieces = owner.state.withLock({ $0.version.pieces }) else { return }
    let matches = content.matches(check, of: pieces)
    let trusted = owner.file.mirrors?.snapshot.trusted ?? [0]
    var outcome = PieceTable.Outcome.outdated
    // Before what was wrong is asked for anew, the liar must be known.
    let liar = pieces.liar(of: check, matches: matches, trusted: trusted)
    if let liar { refuse(liar, for: check) }
    owner.change {
      if let liar { $0.endRequests(to: liar, into: &$1) }
      outcome = $0.settle(check, matches: matches, trusted: trusted, now: .now, into: &$1)
    }
    switch outcome {
    case .verified:
      owner.environment.checkpointIfDue(owner, now: .now)
      owner.whole?.hashIfDue()
      noteProgressOfPieces()
    case .mismatch: owner.file.noteFailure(.wrongPiece, isRetried: true)
    case .lost: owner.file.noteFailure(.wrongPiece, isRetried: false)
    case .outdated: break
    }
  }

  /// Records a piece whose hash is right; on the storage queue, which alone appends to records.
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
      // This mount has the bytes all the same.
      owner.noteCacheFailure(error)
      refused = error
    }
    owner.state.withLock { guarded in
      for claim in content.claims {
        if !guarded.refuted.isEmpty { guarded.refuted.remove(claim.range) }
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

  /// A file that was fetched for nobody may be complete only now.
  private func noteProgressOfPieces() {
    if owner.state.withLock({ $0.version.isPrefetched }) { owner.environment.wakePrefetcher() }
    if !owner.environment.cache.hasSpareDescriptors { _ = owner.releaseIdleEntry() }
  }
}
