internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import RangeCache
internal import Synchronization

/// Verifies the cached bytes of a version, and drops those that are damaged or lost.
struct CacheVerifier: Sendable {
  let owner: RemoteVersion

  /// Verifies the bytes of `range` that an earlier mount has stored.
  ///
  /// Damaged bytes are absent from then on, and the next read of them fetches them again. Reads the
  /// disk if there are bytes to verify.
  func verify(_ range: ByteRange) {
    // Each round settles all bytes that it read; another is needed if the entry was replaced
    // meanwhile.
    for _ in 0..<Self.verificationLimit {
      let work = owner.state.withLock { guarded -> (entry: CacheEntry, runs: [ByteRange])? in
        guard let entry = guarded.entry, guarded.unverified.overlaps(range) else { return nil }
        return (entry, guarded.unverified.runs(in: range))
      }
      guard let work else { break }
      for run in work.runs { verify(run, of: work.entry) }
    }
    // If these were the last bytes of a whole file, a stamp tells the next mount.
    owner.transact { if $0.awaitsFingerprint { $1.needsWatch = true } }
  }

  private static let verificationLimit = 4

  private func verify(_ run: ByteRange, of entry: CacheEntry) {
    let verification: CacheEntry.Verification
    do throws(CacheError) {
      verification = try entry.verify(run)
    } catch {
      // It is unknown whether these bytes are right or damaged: they are fetched again, and the
      // record stays unchanged.
      _ = drop(ExtentSet([run]), of: entry, isRefuted: false)
      return owner.recordCacheFailure(error)
    }
    owner.state.withLock { guarded in
      guard guarded.entry === entry else { return }
      for range in verification.intact.extents { guarded.unverified.remove(range) }
    }
    let damagedByteCount = drop(verification.damaged, of: entry, isRefuted: true)
    if damagedByteCount > 0 {
      owner.recordDamage(damagedByteCount, "cached bytes are not what was stored")
    }
  }

  /// Takes `damaged` for absent, because a check of all cached bytes has refuted the record there.
  ///
  /// The bytes stay absent when the entry is opened again.
  ///
  /// - Returns: how many of them were taken for present.
  func refute(_ damaged: ExtentSet) -> Int64 {
    let lost = owner.state.withLock { guarded -> Int64 in
      var byteCount: Int64 = 0
      for range in damaged.extents {
        for run in guarded.spill?.extents.holes(in: range) ?? [range] {
          guarded.invalidated.insert(run)
        }
        byteCount += guarded.loseCached(range)
      }
      return byteCount
    }
    if lost > 0 { owner.recordDamage(lost, "cached bytes are not what was stored") }
    return lost
  }

  /// Takes the bytes of `extents` that are still unverified for absent.
  ///
  /// If the record `isRefuted` about them, they stay absent when the entry is opened again.
  ///
  /// - Returns: how many bytes those are.
  private func drop(_ extents: ExtentSet, of entry: CacheEntry, isRefuted: Bool) -> Int64 {
    owner.state.withLock { guarded -> Int64 in
      guard guarded.entry === entry else { return 0 }
      var byteCount: Int64 = 0
      for range in extents.extents {
        for run in guarded.unverified.runs(in: range) {
          if isRefuted { guarded.invalidated.insert(run) }
          byteCount += guarded.loseCached(run)
        }
        guarded.unverified.remove(range)
      }
      return byteCount
    }
  }

  /// Takes the bytes beyond `end` for absent, because the data file of `entry` has become shorter.
  ///
  /// - Returns: whether any bytes were present there.
  func forget(from end: Int64, of entry: CacheEntry) -> Bool {
    let lost = owner.state.withLock { guarded -> Int64 in
      guard guarded.entry === entry else { return 0 }
      return guarded.loseCached(end..<Int64.max)
    }
    if lost > 0 { owner.recordDamage(lost, "the cache file was cut") }
    return lost > 0
  }
}
