internal import HTTPTransfer
internal import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache
internal import Synchronization

/// Putting bytes that have arrived somewhere: into the cache, or where that fails into memory.
struct ByteStorer: Sendable {
  let owner: RemoteVersion

  /// What became of bytes that were to be stored, before anything is marked present.
  struct StoreResult: Sendable {
    /// What has been dealt with.
    let range: ByteRange
    let receipts: [StoreReceipt]
    /// Why the rest has not.
    let failure: FileError?
    /// Whether the disk does not take the rest.
    let isRefused: Bool
    /// Whether the entry was opened for this alone.
    let isBorrowing: Bool
  }

  /// Puts what is absent of `range`, which `bytes` holds, into the cache; or, where `withDisk` is false, into
  /// memory, on the thread that alone writes there.
  ///
  /// It fails with `stale` where the file has a newer version, `tooManyFiles` where nobody reads and there
  /// are descriptors for readers only, `cacheFailed` where there is not even memory for them.
  func put(_ bytes: UnsafeRawBufferPointer, as range: ByteRange, withDisk: Bool) -> StoreResult {
    // What nobody has opened yet must not take the descriptors of those who read: it has them for this
    // call only, and what it stored is committed by whoever opens it next.
    let isExtra = owner.state.withLock { $0.openCount == 0 && $0.entry == nil }
    let isBorrowing = isExtra && !owner.environment.cache.hasSpareDescriptors
    var end = range.lowerBound
    var receipts: [StoreReceipt] = []
    var failure: FileError?
    var step = Step.refused
    do throws(FileError) {
      // What is not recorded yet would be lost with the descriptor.
      if isBorrowing, owner.hasPieces || !owner.environment.cache.hasBorrowableDescriptors {
        throw FileError(.tooManyFiles, "too many open files; raise the limit with ulimit -n")
      }
      repeat {
        step =
          try withDisk
          ? storeFirst(of: bytes, range, from: end) : spillFirst(of: bytes, range, from: end)
        switch step {
        case .put(let receipt):
          receipts.append(receipt)
          end = receipt.range.upperBound
        case .nothingAbsent: end = range.upperBound
        case .refused: break
        }
      } while step.goesOn
    } catch {
      failure = error
    }
    return StoreResult(
      range: range.lowerBound..<end, receipts: receipts, failure: failure,
      isRefused: failure == nil && step.isRefused, isBorrowing: isBorrowing)
  }

  /// What one write has done.
  private enum Step {
    case put(StoreReceipt)
    case nothingAbsent
    /// The disk does not take it.
    case refused

    var goesOn: Bool { if case .put = self { true } else { false } }
    var isRefused: Bool { if case .refused = self { true } else { false } }
  }

  /// Marks present what was put somewhere for a request.
  ///
  /// - Returns: whether that was all; if not, the rest is to be put into memory.
  /// - Throws: why not all of it was.
  func take(_ result: StoreResult, of id: SegmentID) throws(FileError) -> Bool {
    defer { if result.isBorrowing { returnEntry() } }
    if result.failure == nil && !result.isRefused || !result.receipts.isEmpty {
      stored(id, result.range, result.receipts)
    }
    if let failure = result.failure { throw failure }
    return !result.isRefused
  }

  /// Puts what is absent first from `start` on, of the bytes of `range`, into the cache.
  private func storeFirst(
    of bytes: UnsafeRawBufferPointer, _ range: ByteRange, from start: Int64
  ) throws(FileError) -> Step {
    let rest = start..<range.upperBound
    if owner.holes(in: rest).isEmpty { return .nothingAbsent }
    guard owner.environment.health.mayStore(), !owner.state.withLock({ $0.isUncacheable }) else {
      return .refused
    }
    var step = Step.refused
    var isStale = false
    do throws(CacheError) {
      try makingRoom { () throws(CacheError) in
        guard let (known, _) = try owner.loader.writableEntry() else {
          isStale = true
          return
        }
        if let end = known.noteCut() { _ = owner.verifier.forget(from: end, of: known) }
        // What is absent, and of which bytes, is known when the entry is at hand, not before: it may have
        // brought what the record says. Nobody but this thread makes anything of it present until then.
        let place = owner.state.withLock {
          guarded -> (CacheEntry, generation: Int, hole: ByteRange?)? in
          guard let (entry, generation) = guarded.writableEntry else { return nil }
          return (entry, generation, guarded.version.absent(in: rest).first)
        }
        // Where a sync has failed, replies may still read what it has lost.
        guard let (entry, generation, hole) = place, entry.isWritable else { return }
        guard let hole else {
          step = .nothingAbsent
          return
        }
        let part = Self.part(hole, of: bytes, range)
        if owner.hasPieces {
          // Recorded when their hash is known to be right.
          try entry.write(part, at: hole.lowerBound)
        } else {
          try entry.store(part, at: hole.lowerBound)
        }
        step = .put(
          StoreReceipt(range: hole, place: .cache(entry, generation: generation)))
      }
    } catch {
      owner.noteCacheFailure(error)
      // Only readers may use memory.
      if error.code == .descriptorLimit, !owner.hasHandles { throw FileError(error) }
      return .refused
    }
    if isStale { throw FileError(.stale, "the remote file has changed") }
    if case .put(let receipt) = step {
      owner.environment.health.noteSuccess()
      owner.environment.noteStored(receipt.range.byteCount)
    }
    return step
  }

  /// The bytes `hole` of those of `range`.
  private static func part(
    _ hole: ByteRange, of bytes: UnsafeRawBufferPointer, _ range: ByteRange
  ) -> UnsafeRawBufferPointer {
    let start = Int(hole.lowerBound - range.lowerBound)
    return UnsafeRawBufferPointer(rebasing: bytes[start..<(start + Int(hole.byteCount))])
  }

  /// Bytes of `range` were put where `receipts` say.
  private func stored(_ id: SegmentID, _ range: ByteRange, _ receipts: [StoreReceipt]) {
    // While the disk is what limits the transfers, the network thread's leisure means nothing.
    let idle = owner.environment.client.idleSeconds - owner.environment.storage.fullSeconds
    var spilled: [(range: ByteRange, file: SpillFile)] = []
    owner.transact { guarded, actions in
      var accepted: [ByteRange] = []
      for receipt in receipts {
        let runs = guarded.accept(receipt)
        accepted += runs
        if case .memory(let file) = receipt.place { spilled += runs.map { ($0, file) } }
      }
      if owner.checksum != nil {
        guarded.wholeCheck.noteStored(from: guarded.version.mirror(of: id))
      }
      guarded.version.stored(
        id, range, present: accepted, idle: idle, now: .now, into: &actions)
    }
    // After the reads were answered: from here on these bytes may be given up like the rest.
    for (range, file) in spilled { owner.environment.spills.note(range, in: file, of: owner) }
    owner.environment.checkpointIfDue(owner, now: .now)
    owner.whole?.hashIfDue()
  }

  /// Lets go of an entry that was opened though descriptors are short, unless somebody reads by now.
  private func returnEntry() {
    let entry = owner.state.withLock { guarded -> CacheEntry? in
      guard guarded.openCount == 0, guarded.holdCount == 0, !guarded.checkpoint.isBusy else {
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
      guard error.code == .noSpace, !error.isOfEntry, owner.environment.makeRoom() else {
        throw error
      }
      try work()
    }
  }

  // MARK: Memory

  /// Puts what is absent first from `start` on, of the bytes of `range`, into memory.
  private func spillFirst(
    of bytes: UnsafeRawBufferPointer, _ range: ByteRange, from start: Int64
  ) throws(FileError) -> Step {
    let rest = start..<range.upperBound
    if owner.holes(in: rest).isEmpty { return .nothingAbsent }
    do throws(ErrorNumber) {
      let file = try spillFile()
      return try owner.environment.spills.writing.withLock { (_) throws(ErrorNumber) -> Step in
        guard let hole = owner.holes(in: rest).first else { return .nothingAbsent }
        try SystemCalls.write(
          file.descriptor.rawValue, Self.part(hole, of: bytes, range), at: hole.lowerBound)
        return .put(StoreReceipt(range: hole, place: .memory(file)))
      }
    } catch {
      throw FileError(
        .cacheFailed,
        "no memory for what the cache cannot take: "
          + error.description)
    }
  }

  private func spillFile() throws(ErrorNumber) -> SpillFile {
    if let known = owner.state.withLock({ $0.spill?.file }) { return known }
    let file = try SpillFile()
    return owner.state.withLock { guarded in
      guarded.forgetExtentsWithoutEntry()
      return guarded.version.beginSpill(into: file)
    }
  }

  /// Gives up bytes that lie in `file`, unless somebody reads or waits for some of them.
  ///
  /// - Returns: whether they are gone.
  func giveUpSpilled(_ range: ByteRange, in file: SpillFile) -> Bool {
    // What is found absent from then on is written after it is freed.
    owner.environment.spills.writing.withLock { _ in giveUp(range, in: file) }
  }

  private func giveUp(_ range: ByteRange, in file: SpillFile) -> Bool {
    let (isGone, mustFree) = owner.state.withLock { guarded -> (Bool, Bool) in
      // Another file holds nothing of it.
      guard guarded.spill?.file === file else { return (true, false) }
      guard guarded.version.giveUpSpilled(range, now: .now) else { return (false, false) }
      guarded.generation += 1
      return (true, true)
    }
    if mustFree {
      // Where it fails the memory is freed with the file.
      try? FileSystemCalls.punchHole(
        file.descriptor.rawValue, range.lowerBound, byteCount: range.byteCount)
    }
    return isGone
  }
}

extension RemoteVersion {
  /// Puts bytes that have arrived somewhere.
  var storer: ByteStorer { ByteStorer(owner: self) }
}
