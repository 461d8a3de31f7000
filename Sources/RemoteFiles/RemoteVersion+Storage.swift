internal import ExtentRecord
internal import Glibc
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Storing bytes, and looking at those that are stored: what may fail with the disk under the cache.
extension RemoteVersion {
  // MARK: Verification

  /// Verifies those bytes of `range` that an earlier mount has stored; what is damaged is absent from
  /// then on, and fetched again by whoever reads it.
  ///
  /// Reads the disk, where anything is to be verified.
  func verify(_ range: ByteRange) {
    // Each round settles all that it looked at; another one is needed where the entry was exchanged
    // meanwhile.
    for _ in 0..<Self.verificationLimit {
      let work = state.withLock { guarded -> (entry: CacheEntry, runs: [ByteRange])? in
        guard let entry = guarded.entry, guarded.unverified.overlaps(range) else { return nil }
        return (entry, guarded.unverified.runs(in: range))
      }
      guard let work else { break }
      for run in work.runs { verify(run, of: work.entry) }
    }
    // When that was the last of a whole file, the next mount shall know.
    if state.withLock({ $0.awaitsStamp }) { environment.watch(self) }
  }

  private static let verificationLimit = 4

  private func verify(_ run: ByteRange, of entry: CacheEntry) {
    let verification: CacheEntry.Verification
    do throws(CacheError) {
      verification = try entry.verify(run)
    } catch {
      // Nothing says that these bytes are right, nor that they are damaged: they are fetched, and the
      // record stays as it is.
      _ = drop(ExtentSet([run]), of: entry)
      return noteCacheFailure(error)
    }
    state.withLock { guarded in
      guard guarded.entry === entry else { return }
      for range in verification.intact.extents { guarded.unverified.remove(range) }
    }
    let damagedByteCount = drop(verification.damaged, of: entry)
    if damagedByteCount > 0 {
      noteDamage(damagedByteCount, "cached bytes are not what was stored")
    }
  }

  /// A look at all that is cached has shown that the record is false about `damaged`: it is absent
  /// from now on, also when the entry is opened anew.
  ///
  /// - Returns: how many bytes of it were taken for present.
  func refute(_ damaged: ExtentSet) -> Int64 {
    let lost = state.withLock { guarded -> Int64 in
      var byteCount: Int64 = 0
      for range in damaged.extents {
        // What is spilled lies elsewhere.
        for run in guarded.spill?.extents.holes(in: range) ?? [range] {
          byteCount += guarded.version.extents.remove(run)
          guarded.unverified.remove(run)
          guarded.refuted.insert(run)
        }
      }
      return byteCount
    }
    if lost > 0 { noteDamage(lost, "cached bytes are not what was stored") }
    return lost
  }

  /// Takes those bytes of `extents` for absent that are still unverified; returns how many they are.
  private func drop(_ extents: ExtentSet, of entry: CacheEntry) -> Int64 {
    state.withLock { guarded -> Int64 in
      guard guarded.entry === entry else { return 0 }
      var byteCount: Int64 = 0
      for range in extents.extents {
        for run in guarded.unverified.runs(in: range) {
          guarded.version.extents.remove(run)
          byteCount += run.byteCount
        }
        guarded.unverified.remove(range)
      }
      return byteCount
    }
  }

  /// The disk does not give back what the cache holds of `range`: from then on this version is kept in
  /// memory, because the disk would not give back what is stored anew either.
  func noteUnreadable(_ range: ByteRange) {
    let (lost, entry) = state.withLock { guarded -> (Int64, CacheEntry?) in
      guard let entry = guarded.entry else { return (0, nil) }
      guarded.isUncacheable = true
      var cached = guarded.version.extents
      for extent in guarded.spill?.extents.extents ?? [] { cached.remove(extent) }
      for run in cached.runs(in: range) {
        guarded.version.extents.remove(run)
        guarded.unverified.remove(run)
      }
      return (cached.runs(in: range).reduce(0) { $0 + $1.byteCount }, entry)
    }
    // The next mount shall find that before a reader does.
    entry?.distrust()
    guard lost > 0 else { return }
    noteDamage(lost, "the cache file cannot be read")
    environment.health.noteFailure("the cache file of '\(file.source.path)' cannot be read")
  }

  /// The data file of `entry` has become shorter than `end`: what it held beyond is absent.
  ///
  /// - Returns: whether anything was there.
  func forget(from end: Int64, of entry: CacheEntry) -> Bool {
    let lost = state.withLock { guarded -> Int64 in
      guard guarded.entry === entry else { return 0 }
      var cached = guarded.version.extents
      for extent in guarded.spill?.extents.extents ?? [] { cached.remove(extent) }
      var byteCount: Int64 = 0
      for run in cached.runs(in: end..<Int64.max) {
        byteCount += guarded.version.extents.remove(run)
        guarded.unverified.remove(run)
      }
      return byteCount
    }
    if lost > 0 { noteDamage(lost, "the cache file was cut") }
    return lost > 0
  }

  private func noteDamage(_ byteCount: Int64, _ reason: String) {
    file.noteDamage(byteCount)
    environment.logger.error(
      "cache damaged, fetching again",
      metadata: [
        "file": "\(file.source.path)", "bytes": "\(byteCount)", "reason": "\(reason)",
      ])
  }

  // MARK: Storing

  /// Stores bytes that have arrived: in the cache, or where that fails in memory; on the storage
  /// queue.
  ///
  /// - Throws: `stale` where the file has a newer version, `tooManyFiles` where nobody reads and there
  ///   are descriptors for readers only, `unavailable` where there is not even memory for them.
  func store(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
    // What nobody has opened yet must not take the descriptors of those who read: it has them for this
    // call only, and what it stored is committed by whoever opens it next.
    let isExtra = state.withLock { $0.openCount == 0 && $0.entry == nil }
    let isBorrowing = isExtra && !environment.cache.hasSpareDescriptors
    // What is not recorded yet would be lost with the descriptor.
    if isBorrowing, hasPieces || !environment.cache.hasBorrowableDescriptors {
      throw FileError(.tooManyFiles, "too many open files; raise the limit with ulimit -n")
    }
    defer { if isBorrowing { returnEntry() } }
    if environment.health.mayStore(), !state.withLock({ $0.isUncacheable }) {
      var isStale = false
      do throws(CacheError) {
        try makingRoom { () throws(CacheError) in
          guard let entry = try writableEntry() else {
            isStale = true
            return
          }
          if hasPieces {
            // Recorded when their hash is known to be right.
            try entry.write(bytes, at: offset)
          } else {
            try entry.store(bytes, at: offset)
          }
        }
        if !isStale { return environment.health.noteSuccess() }
      } catch {
        noteCacheFailure(error)
      }
      if isStale { throw FileError(.stale, "the remote file has changed") }
    }
    do throws(ErrorNumber) {
      try spill(bytes, at: offset)
    } catch {
      throw FileError(
        .unavailable,
        "no memory for what the cache cannot take: "
          + SystemCalls.text(of: error.rawValue))
    }
  }

  /// Lets go of an entry that was opened though descriptors are short, unless somebody reads by now.
  private func returnEntry() {
    let entry = state.withLock { guarded -> CacheEntry? in
      guard guarded.openCount == 0, guarded.holdCount == 0, !guarded.isCheckpointing else {
        return nil
      }
      defer { guarded.entry = nil }
      return guarded.entry
    }
    drop(entry)
  }

  /// Does `work`; where the disk is full and something can be evicted, a second time.
  private func makingRoom(_ work: () throws(CacheError) -> Void) throws(CacheError) {
    do throws(CacheError) {
      try work()
    } catch {
      // A limit of the size of one file is not helped by others being gone.
      guard error.code == .noSpace, error.errno != EFBIG, environment.makeRoom() else {
        throw error
      }
      try work()
    }
  }

  func noteCacheFailure(_ error: CacheError) {
    if error.code == .laterFormat {
      // The cache is well, but for this file.
      state.withLock { $0.isUncacheable = true }
      file.noteFailure(FileError(error), isRetried: false)
      return
    }
    environment.health.noteFailure("\(error)")
    environment.logger.error(
      "the cache fails; reading without it",
      metadata: ["file": "\(file.source.path)", "error": "\(error)"])
  }

  private func spill(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(ErrorNumber) {
    let known = state.withLock { $0.spill?.file }
    // Only this queue makes one.
    let file: Descriptor
    if let known { file = known } else { file = try SystemCalls.createMemoryFile(label: "httpfs") }
    try SystemCalls.write(file.rawValue, bytes, at: offset)
    let range = ByteRange(offset: offset, byteCount: Int64(bytes.count))
    state.withLock { guarded in
      guarded.forgetExtentsWithoutEntry()
      guarded.spill = guarded.spill ?? Spill(file: file)
      guarded.spill?.insert(range)
      guarded.version.readAheadLimit = SpillMemory.readAheadByteCount
    }
    environment.spills.note(range, of: self)
  }

  /// Gives up spilled bytes, unless somebody reads or waits for some of them; on the storage queue.
  ///
  /// - Returns: whether they are gone.
  func giveUpSpilled(_ range: ByteRange) -> Bool {
    let (file, isGone) = state.withLock { guarded -> (Descriptor?, Bool) in
      guard guarded.spill != nil else { return (nil, true) }
      guard !guarded.version.parked.reads.contains(where: { $0.range.overlaps(range) }),
        guarded.spill?.remove(range) == true
      else { return (nil, false) }
      guarded.version.extents.remove(range)
      guarded.version.forgetUnverified(range)
      return (guarded.spill?.file, true)
    }
    if let file {
      // Where it fails the memory is freed with the file.
      try? SystemCalls.punchHole(file.rawValue, range.lowerBound, byteCount: range.byteCount)
    }
    return isGone
  }

  func endLease(_ number: Int) { state.withLock { $0.spill?.endLease(number) } }
}
