internal import HTTPTransfer
internal import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache
internal import Synchronization

/// Stores bytes that have arrived: in the cache, or in memory if that fails.
struct ByteStorer: Sendable {
  let owner: RemoteVersion

  /// The result of storing bytes, before any of them are marked present.
  struct StoreResult: Sendable {
    /// The bytes that were handled.
    let range: ByteRange
    let receipts: [StoreReceipt]
    /// Why the rest was not handled.
    let failure: FileError?
    /// Whether the disk refuses the rest.
    let isRefused: Bool
    /// Whether the entry was opened for this call only.
    let isBorrowing: Bool
  }

  /// Stores the absent bytes of `range`, which `bytes` holds.
  ///
  /// They go to the cache; if `withDisk` is false, they go to memory, on the only thread that
  /// writes there.
  ///
  /// It fails with `stale` if the file has a newer version, with `tooManyFiles` if no program has
  /// the file open and the descriptors are reserved for readers, and with `cacheFailed` if there is
  /// not even memory for the bytes.
  func put(_ bytes: UnsafeRawBufferPointer, as range: ByteRange, withDisk: Bool) -> StoreResult {
    // A file that no program has open must not take descriptors from readers. It has them for this
    // call only, and the next program that opens it commits the bytes.
    let isExtra = owner.state.withLock { $0.openCount == 0 && $0.entry == nil }
    let isBorrowing = isExtra && !owner.environment.cache.hasSpareDescriptors
    var end = range.lowerBound
    var receipts: [StoreReceipt] = []
    var failure: FileError?
    var step = Step.refused
    do throws(FileError) {
      // Bytes that are not recorded yet would be lost with the descriptor.
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
      } while step.goesOn && end < range.upperBound
    } catch {
      failure = error
    }
    return StoreResult(
      range: range.lowerBound..<end, receipts: receipts, failure: failure,
      isRefused: failure == nil && step.isRefused, isBorrowing: isBorrowing)
  }

  /// The result of one write.
  private enum Step {
    case put(StoreReceipt)
    case nothingAbsent
    /// The disk refuses the bytes.
    case refused

    var goesOn: Bool { if case .put = self { true } else { false } }
    var isRefused: Bool { if case .refused = self { true } else { false } }
  }

  /// Marks bytes present that were stored for a request.
  ///
  /// - Returns: whether those are all; if not, the rest must be stored in memory.
  /// - Throws: why not all of them were stored.
  func take(_ result: StoreResult, of id: SegmentID) throws(FileError) -> Bool {
    defer { if result.isBorrowing { returnEntry() } }
    if result.failure == nil && !result.isRefused || !result.receipts.isEmpty {
      stored(id, result.range, result.receipts)
    }
    if let failure = result.failure { throw failure }
    return !result.isRefused
  }

  /// Stores the first absent bytes of `range` from `start` on in the cache.
  private func storeFirst(
    of bytes: UnsafeRawBufferPointer, _ range: ByteRange, from start: Int64
  ) throws(FileError) -> Step {
    let rest = start..<range.upperBound
    let (isPresent, isUncacheable) = owner.state.withLock {
      ($0.version.absent(in: rest).isEmpty, $0.isUncacheable)
    }
    if isPresent { return .nothingAbsent }
    guard owner.environment.health.mayStore(), !isUncacheable else { return .refused }
    var step = Step.refused
    var isStale = false
    do throws(CacheError) {
      try makingRoom { () throws(CacheError) in
        guard let (known, _) = try EntryLoader(owner: owner).writableEntry() else {
          isStale = true
          return
        }
        if let end = known.recordCut() {
          _ = CacheVerifier(owner: owner).forget(from: end, of: known)
        }
        // Determine the absent bytes, and their version, only with the entry open: opening it may
        // have added the bytes of its record. Until then, only this thread makes bytes of it
        // present.
        let place = owner.state.withLock {
          guarded -> (CacheEntry, generation: Int, hole: ByteRange?)? in
          guard let (entry, generation) = guarded.writableEntry else { return nil }
          return (entry, generation, guarded.version.absent(in: rest).first)
        }
        // After a failed sync the entry is not writable: replies may still read what the sync has
        // lost.
        guard let (entry, generation, hole) = place, entry.isWritable else { return }
        guard let hole else {
          step = .nothingAbsent
          return
        }
        let part = Self.part(hole, of: bytes, range)
        if owner.hasPieces {
          // They are recorded once their hash is known to be right.
          try entry.write(part, at: hole.lowerBound)
        } else {
          try entry.store(part, at: hole.lowerBound)
        }
        step = .put(
          StoreReceipt(range: hole, place: .cache(entry, generation: generation)))
      }
    } catch {
      owner.recordCacheFailure(error)
      // Only readers may use memory.
      if error.code == .descriptorLimit, !owner.hasHandles { throw FileError(error) }
      return .refused
    }
    if isStale { throw FileError.hasChanged }
    if case .put(let receipt) = step {
      owner.environment.health.recordSuccess()
      owner.environment.recordStored(receipt.range.byteCount)
    }
    return step
  }

  /// The bytes `hole` out of those of `range`.
  private static func part(
    _ hole: ByteRange, of bytes: UnsafeRawBufferPointer, _ range: ByteRange
  ) -> UnsafeRawBufferPointer {
    let start = Int(hole.lowerBound - range.lowerBound)
    return UnsafeRawBufferPointer(rebasing: bytes[start..<(start + Int(hole.byteCount))])
  }

  /// Records that bytes of `range` were stored according to `receipts`.
  private func stored(_ id: SegmentID, _ range: ByteRange, _ receipts: [StoreReceipt]) {
    // While the disk limits the transfers, an idle network thread means nothing.
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
        guarded.fileChecksum.recordStored(from: guarded.version.mirror(of: id))
      }
      guarded.version.stored(
        id, range, present: accepted, idle: idle, now: .now, into: &actions)
    }
    // Only after the reads were answered, because these bytes may be dropped from now on.
    for (range, file) in spilled { owner.environment.spills.note(range, in: file, of: owner) }
    owner.environment.checkpointIfDue(VersionCheckpoints(owner: owner), now: .now)
    WholeVerifier(owner: owner)?.hashIfDue()
  }

  /// Releases an entry that was opened despite a lack of descriptors, unless it is in use by now.
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

  /// Runs `work`; if the disk is full and files can be evicted, runs it a second time.
  private func makingRoom(_ work: () throws(CacheError) -> Void) throws(CacheError) {
    do throws(CacheError) {
      try work()
    } catch {
      // Evicting other files does not help against a limit on the size of one file.
      guard error.code == .noSpace, !error.isOfEntry, owner.environment.makeRoom() else {
        throw error
      }
      try work()
    }
  }

  // MARK: Memory

  /// Stores the first absent bytes of `range` from `start` on in memory.
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
}
