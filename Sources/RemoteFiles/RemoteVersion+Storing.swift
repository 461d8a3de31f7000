internal import ExtentRecord
internal import HTTPTransfer
internal import HTTPTransferCore
internal import Logging
internal import RangeCache
internal import Synchronization

/// Putting bytes that have arrived somewhere: into the cache, or where that fails into memory.
extension RemoteVersion {
  /// What became of bytes that were to be stored, before anything is marked present.
  struct StoreResult: Sendable {
    /// What has been dealt with.
    let range: ByteRange
    let receipts: [StoreReceipt]
    /// Why the rest has not.
    let failure: FileError?
    /// Whether the entry was opened for this alone.
    let isBorrowing: Bool
  }

  /// Puts what is absent of `range`, which `bytes` holds, somewhere: where the disk stands still
  /// (`withDisk` is false), into memory.
  ///
  /// It fails with `stale` where the file has a newer version, `tooManyFiles` where nobody reads and there
  /// are descriptors for readers only, `unavailable` where there is not even memory for them.
  func put(_ bytes: UnsafeRawBufferPointer, as range: ByteRange, withDisk: Bool) -> StoreResult {
    // What nobody has opened yet must not take the descriptors of those who read: it has them for this
    // call only, and what it stored is committed by whoever opens it next.
    let isExtra = state.withLock { $0.openCount == 0 && $0.entry == nil }
    let isBorrowing = isExtra && !environment.cache.hasSpareDescriptors
    var end = range.upperBound
    var receipts: [StoreReceipt] = []
    var failure: FileError?
    // What is not recorded yet would be lost with the descriptor.
    if isBorrowing, hasPieces || !environment.cache.hasBorrowableDescriptors {
      failure = FileError(.tooManyFiles, "too many open files; raise the limit with ulimit -n")
      end = range.lowerBound
    }
    for hole in failure == nil ? holes(in: range) : [] {
      let slice = bytes[
        Int(hole.lowerBound - range.lowerBound)..<Int(hole.upperBound - range.lowerBound)]
      do throws(FileError) {
        receipts.append(
          try put(UnsafeRawBufferPointer(rebasing: slice), at: hole, withDisk: withDisk))
      } catch {
        failure = error
        end = hole.lowerBound
        break
      }
    }
    return StoreResult(
      range: range.lowerBound..<end, receipts: receipts, failure: failure,
      isBorrowing: isBorrowing)
  }

  /// Marks present what was put somewhere for a request.
  ///
  /// - Throws: why not all of it was.
  func take(_ result: StoreResult, of id: SegmentID) throws(FileError) {
    defer { if result.isBorrowing { returnEntry() } }
    if result.failure == nil || !result.receipts.isEmpty {
      stored(id, result.range, result.receipts)
    }
    if let failure = result.failure { throw failure }
  }

  /// Puts bytes into the cache, or where that fails into memory.
  ///
  /// - Returns: a receipt that says where they are.
  private func put(
    _ bytes: UnsafeRawBufferPointer, at range: ByteRange, withDisk: Bool
  ) throws(FileError) -> StoreReceipt {
    if withDisk, environment.health.mayStore(), !state.withLock({ $0.isUncacheable }) {
      var receipt: StoreReceipt?
      var isStale = false
      do throws(CacheError) {
        try makingRoom { () throws(CacheError) in
          guard let (entry, known) = try writableEntry() else {
            isStale = true
            return
          }
          var generation = known
          if let end = entry.noteCut() {
            _ = forget(from: end, of: entry)
            generation = state.withLock { $0.generation }
          }
          if hasPieces {
            // Recorded when their hash is known to be right.
            try entry.write(bytes, at: range.lowerBound)
          } else {
            try entry.store(bytes, at: range.lowerBound)
          }
          receipt = StoreReceipt(range: range, place: .cache(entry, generation: generation))
        }
      } catch {
        noteCacheFailure(error)
      }
      if isStale { throw FileError(.stale, "the remote file has changed") }
      if let receipt {
        environment.health.noteSuccess()
        environment.noteStored(range.byteCount)
        return receipt
      }
    }
    do throws(ErrorNumber) {
      return try spill(bytes, as: range)
    } catch {
      throw FileError(
        .unavailable,
        "no memory for what the cache cannot take: "
          + SystemCalls.text(of: error.rawValue))
    }
  }

  /// Bytes of `range` were put where `receipts` say.
  private func stored(_ id: SegmentID, _ range: ByteRange, _ receipts: [StoreReceipt]) {
    // While the disk is what limits the transfers, the network thread's leisure means nothing.
    let idle = environment.client.idleSeconds - environment.storage.fullSeconds
    var spilled: [(range: ByteRange, file: SpillFile)] = []
    transact { guarded, actions in
      let accepted = receipts.filter { guarded.accept($0) }
      for receipt in accepted {
        if case .memory(let file) = receipt.place { spilled.append((receipt.range, file)) }
      }
      if checksum != nil { guarded.wholeCheck.noteStored(from: guarded.version.mirror(of: id)) }
      guarded.version.stored(
        id, range, present: accepted.map(\.range), idle: idle, now: .now, into: &actions)
    }
    // After the reads were answered: from here on these bytes may be given up like the rest.
    for (range, file) in spilled { environment.spills.note(range, in: file, of: self) }
    environment.checkpointIfDue(self, now: .now)
    if checksum != nil { hashWholeIfDue() }
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
    _ = consume entry
  }

  /// Does `work`; where the disk is full and something can be evicted, a second time.
  private func makingRoom(_ work: () throws(CacheError) -> Void) throws(CacheError) {
    do throws(CacheError) {
      try work()
    } catch {
      // A limit of the size of one file is not helped by others being gone.
      guard error.code == .noSpace, !error.isOfEntry, environment.makeRoom() else { throw error }
      try work()
    }
  }

  /// Handles a failure of the cache.
  ///
  /// Trouble with one entry affects that file only; after any other failure the cache is not used
  /// for a while.
  func noteCacheFailure(_ error: CacheError) {
    if error.isOfEntry {
      // Only this file is affected.
      state.withLock { $0.isUncacheable = true }
      file.noteFailure(FileError(error), isRetried: false)
      return
    }
    environment.health.noteFailure("\(error)")
    environment.logger.error(
      "the cache fails; reading without it",
      metadata: ["file": "\(file.source.path)", "error": "\(error)"])
  }

  // MARK: Memory

  /// Puts bytes into memory.
  private func spill(
    _ bytes: UnsafeRawBufferPointer, as range: ByteRange
  ) throws(ErrorNumber) -> StoreReceipt {
    let file = try spillFile()
    try environment.spills.writing.withLock { (_) throws(ErrorNumber) in
      try SystemCalls.write(file.descriptor.rawValue, bytes, at: range.lowerBound)
    }
    return StoreReceipt(range: range, place: .memory(file))
  }

  private func spillFile() throws(ErrorNumber) -> SpillFile {
    if let known = state.withLock({ $0.spill?.file }) { return known }
    let file = try SpillFile()
    return state.withLock { guarded in
      guarded.forgetExtentsWithoutEntry()
      let spill = guarded.spill ?? Spill(file: file)
      guarded.spill = spill
      return spill.file
    }
  }

  /// Gives up bytes that lie in `file`, unless somebody reads or waits for some of them.
  ///
  /// - Returns: whether they are gone.
  func giveUpSpilled(_ range: ByteRange, in file: SpillFile) -> Bool {
    // What is found absent from then on is written after it is freed.
    environment.spills.writing.withLock { _ in giveUp(range, in: file) }
  }

  private func giveUp(_ range: ByteRange, in file: SpillFile) -> Bool {
    let (isGone, mustFree) = state.withLock { guarded -> (Bool, Bool) in
      // Another file holds nothing of it.
      guard guarded.spill?.file === file else { return (true, false) }
      guard !guarded.version.mustKeep(range, now: .now), guarded.spill?.remove(range) == true
      else { return (false, false) }
      guarded.version.extents.remove(range)
      guarded.version.forgetUnverified(range)
      return (true, true)
    }
    if mustFree {
      // Where it fails the memory is freed with the file.
      try? SystemCalls.punchHole(
        file.descriptor.rawValue, range.lowerBound, byteCount: range.byteCount)
    }
    return isGone
  }

  func endLease(_ claim: SpillLease.Claim) {
    state.withLock { if $0.spill?.file === claim.file { $0.spill?.endLease(claim.number) } }
  }
}
