internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import Logging
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
    if owner.state.withLock({ $0.awaitsFingerprint }) { owner.environment.watch(owner) }
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
      recordDamage(damagedByteCount, "cached bytes are not what was stored")
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
    if lost > 0 { recordDamage(lost, "cached bytes are not what was stored") }
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

  /// Notes that the disk does not return the cached bytes of `range`.
  ///
  /// From then on this version is kept in memory, because the disk would not return newly stored
  /// bytes either.
  func recordUnreadable(_ range: ByteRange) {
    let (lost, entry) = owner.state.withLock { guarded -> (Int64, CacheEntry?) in
      guard let entry = guarded.entry else { return (0, nil) }
      guarded.isUncacheable = true
      return (guarded.loseCached(range), entry)
    }
    // The next mount verifies the entry before an application reads it.
    entry?.invalidateFingerprint()
    guard lost > 0 else { return }
    recordDamage(lost, "the cache file cannot be read")
    owner.environment.health.recordFailure(
      "the cache file of '\(owner.file.source.path)' cannot be read")
  }

  /// Takes the bytes beyond `end` for absent, because the data file of `entry` has become shorter.
  ///
  /// - Returns: whether any bytes were present there.
  func forget(from end: Int64, of entry: CacheEntry) -> Bool {
    let lost = owner.state.withLock { guarded -> Int64 in
      guard guarded.entry === entry else { return 0 }
      return guarded.loseCached(end..<Int64.max)
    }
    if lost > 0 { recordDamage(lost, "the cache file was cut") }
    return lost > 0
  }

  private func recordDamage(_ byteCount: Int64, _ reason: String) {
    owner.file.recordDamage(byteCount)
    owner.environment.logger.error(
      "cache damaged, fetching again",
      metadata: [
        "file": "\(owner.file.source.path)", "bytes": "\(byteCount)", "reason": "\(reason)",
      ])
  }
}

extension RemoteVersion {
  /// The verifier of the version's cached bytes.
  var verifier: CacheVerifier { CacheVerifier(owner: self) }
}
