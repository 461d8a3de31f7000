internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Verifies what the cache holds of a version, and gives up what is damaged or lost.
struct CacheVerifier: Sendable {
  let owner: RemoteVersion

  /// Verifies those bytes of `range` that an earlier mount has stored; what is damaged is absent from
  /// then on, and fetched again by whoever reads it.
  ///
  /// Reads the disk, where anything is to be verified.
  func verify(_ range: ByteRange) {
    // Each round settles all that it looked at; another one is needed where the entry was exchanged
    // meanwhile.
    for _ in 0..<Self.verificationLimit {
      let work = owner.state.withLock { guarded -> (entry: CacheEntry, runs: [ByteRange])? in
        guard let entry = guarded.entry, guarded.unverified.overlaps(range) else { return nil }
        return (entry, guarded.unverified.runs(in: range))
      }
      guard let work else { break }
      for run in work.runs { verify(run, of: work.entry) }
    }
    // When that was the last of a whole file, the next mount shall know.
    if owner.state.withLock({ $0.awaitsStamp }) { owner.environment.watch(owner) }
  }

  private static let verificationLimit = 4

  private func verify(_ run: ByteRange, of entry: CacheEntry) {
    let verification: CacheEntry.Verification
    do throws(CacheError) {
      verification = try entry.verify(run)
    } catch {
      // Nothing says that these bytes are right, nor that they are damaged: they are fetched, and the
      // record stays as it is.
      _ = drop(ExtentSet([run]), of: entry, isRefuted: false)
      return owner.noteCacheFailure(error)
    }
    owner.state.withLock { guarded in
      guard guarded.entry === entry else { return }
      for range in verification.intact.extents { guarded.unverified.remove(range) }
    }
    let damagedByteCount = drop(verification.damaged, of: entry, isRefuted: true)
    if damagedByteCount > 0 {
      noteDamage(damagedByteCount, "cached bytes are not what was stored")
    }
  }

  /// A look at all that is cached has shown that the record is false about `damaged`: it is absent
  /// from now on, also when the entry is opened anew.
  ///
  /// - Returns: how many bytes of it were taken for present.
  func refute(_ damaged: ExtentSet) -> Int64 {
    let lost = owner.state.withLock { guarded -> Int64 in
      var byteCount: Int64 = 0
      for range in damaged.extents {
        for run in guarded.spill?.extents.holes(in: range) ?? [range] {
          guarded.refuted.insert(run)
        }
        byteCount += guarded.loseCached(range)
      }
      return byteCount
    }
    if lost > 0 { noteDamage(lost, "cached bytes are not what was stored") }
    return lost
  }

  /// Takes those bytes of `extents` for absent that are still unverified, also when the entry is opened
  /// anew if the record `isRefuted` about them; returns how many they are.
  private func drop(_ extents: ExtentSet, of entry: CacheEntry, isRefuted: Bool) -> Int64 {
    owner.state.withLock { guarded -> Int64 in
      guard guarded.entry === entry else { return 0 }
      var byteCount: Int64 = 0
      for range in extents.extents {
        for run in guarded.unverified.runs(in: range) {
          if isRefuted { guarded.refuted.insert(run) }
          byteCount += guarded.loseCached(run)
        }
        guarded.unverified.remove(range)
      }
      return byteCount
    }
  }

  /// The disk does not give back what the cache holds of `range`: from then on this version is kept in
  /// memory, because the disk would not give back what is stored anew either.
  func noteUnreadable(_ range: ByteRange) {
    let (lost, entry) = owner.state.withLock { guarded -> (Int64, CacheEntry?) in
      guard let entry = guarded.entry else { return (0, nil) }
      guarded.isUncacheable = true
      return (guarded.loseCached(range), entry)
    }
    // The next mount shall find that before a reader does.
    entry?.distrust()
    guard lost > 0 else { return }
    noteDamage(lost, "the cache file cannot be read")
    owner.environment.health.noteFailure(
      "the cache file of '\(owner.file.source.path)' cannot be read")
  }

  /// The data file of `entry` has become shorter than `end`: what it held beyond is absent.
  ///
  /// - Returns: whether anything was there.
  func forget(from end: Int64, of entry: CacheEntry) -> Bool {
    let lost = owner.state.withLock { guarded -> Int64 in
      guard guarded.entry === entry else { return 0 }
      return guarded.loseCached(end..<Int64.max)
    }
    if lost > 0 { noteDamage(lost, "the cache file was cut") }
    return lost > 0
  }

  private func noteDamage(_ byteCount: Int64, _ reason: String) {
    owner.file.noteDamage(byteCount)
    owner.environment.logger.error(
      "cache damaged, fetching again",
      metadata: [
        "file": "\(owner.file.source.path)", "bytes": "\(byteCount)", "reason": "\(reason)",
      ])
  }
}

extension RemoteVersion {
  /// Verifies what the cache holds.
  var verifier: CacheVerifier { CacheVerifier(owner: self) }
}
