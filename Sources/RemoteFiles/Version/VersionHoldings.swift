internal import ExtentRecord
internal import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache

/// What the lock of a version guards: its state, the location of its bytes, and their users.
struct VersionHoldings {
  var version: VersionState
  /// The replies of the waiting reads.
  var replies = ReplyTable()
  /// Makes the writer of a segment hand over its bytes that are not stored; on the network thread.
  typealias Flush = @Sendable () -> Void
  var flushes: [SegmentID: Flush] = [:]
  /// The cache entry: open while a handle is open, a request is in flight or bytes are uncommitted.
  ///
  /// Idle files therefore hold no descriptors.
  var entry: CacheEntry?
  /// Whether the record under the entry's name belongs to this version.
  var hasRecord: Bool
  /// Whether the recorded bytes were taken for absent, because the entry could not be opened.
  var isRecordUnread = false
  /// Whether the disk has refused uncommitted bytes: the record is opened without them, once.
  var hasLostSync = false
  /// Whether this version must not write to the entry.
  var isUncacheable = false
  /// Whether a handle has requested the entry, and the look for it has not begun.
  var isLookQueued = false
  /// The extents that an earlier mount has stored and that are not verified yet; they are verified
  /// before use.
  var unverified: ExtentSet
  /// The extents that the record claims falsely.
  var invalidated = ExtentSet()
  /// The bytes that memory holds because the cache could not store them.
  var spill: Spill? { version.spill }
  /// Counts how often bytes were dropped from the entry or memory, or the entry was replaced.
  ///
  /// The result of a store or of a hash that began under an earlier number is ignored.
  var generation = 0
  /// What is known about the checksum of the whole, if the list has one.
  var fileChecksum = FileChecksum()
  /// The stamp of the data file when the entry was closed: what is known about its bytes holds
  /// while it is unchanged.
  var lastStamp: FileFingerprint?
  var openCount = 0
  /// How many looks for the entry are under way, and when the last one began.
  var lookCount = 0
  var lookedAt: ContinuousClock.Instant?
  /// How many other users need the entry to stay open.
  var holdCount = 0
  /// How many pieces are present, but recorded only when the disk responds again.
  var unrecordedCount = 0
  /// The cached bytes of pieces that the record has refused: a later mount does not find them.
  var unclaimed = ExtentSet()
  /// How many runs of bytes are on their way to the entry.
  var storeCount = 0
  /// Since when no handle has been open.
  var unreadSince = ContinuousClock.now
  var checkpoint = CheckpointPhase()
  var fetchedByteCount: Int64

  /// Takes bytes that cannot be read for absent until the entry is opened.
  mutating func forgetExtentsWithoutEntry() {
    guard entry == nil, version.content.isInCache else { return }
    if hasRecord { isRecordUnread = true }
    setCached(ExtentSet(), believed: ExtentSet())
  }

  /// Adopts what a record says: whether the whole has matched its checksum, and whether it has
  /// bytes of an earlier mount.
  mutating func recordWhole(isRight: Bool, hasBytes: Bool) {
    if version.isComplete, isRight, fileChecksum.begin() { fileChecksum.succeed() }
    if hasBytes { fileChecksum.hasEarlierBytes = true }
  }

  /// Whether `range` has present bytes that are not verified yet.
  func mustVerify(_ range: ByteRange) -> Bool { entry != nil && unverified.overlaps(range) }

  /// Makes `cached` what is present besides the spilled bytes; `believed` are the unverified ones.
  ///
  /// If that may add bytes, the caller wakes reads once it holds no other lock.
  mutating func setCached(_ cached: ExtentSet, believed: ExtentSet) {
    generation += 1
    unclaimed = ExtentSet()
    var cached = cached
    unverified = believed
    for extent in invalidated.extents {
      cached.remove(extent)
      unverified.remove(extent)
    }
    version.setCached(cached)
    for extent in spill?.extents.extents ?? [] { unverified.remove(extent) }
  }

  /// Accepts a receipt for stored bytes.
  ///
  /// Bytes that have arrived by another route meanwhile stay where they are: they may be in use
  /// there, and known to be right.
  ///
  /// - Returns: the ranges that reads find at that place from now on; the caller marks them
  ///   present.
  mutating func accept(_ receipt: StoreReceipt) -> [ByteRange] {
    let absent = version.absent(in: receipt.range)
    switch receipt.place {
    case .cache(let entry, let generation):
      guard entry === self.entry, generation == self.generation else { return [] }
      if !invalidated.isEmpty { invalidated.remove(receipt.range) }
      version.limitReadAhead(to: nil)
    case .memory(let file):
      guard file === spill?.file else { return [] }
      version.recordSpilled(absent)
    }
    return absent
  }

  /// Whether the bytes of `check` are still present.
  func isCurrent(_ check: PieceTable.Check) -> Bool {
    version.pieces?.isCurrent(check) == true
  }

  /// Marks the cached bytes of `range` as absent.
  ///
  /// - Returns: how many bytes of it were present.
  mutating func loseCached(_ range: ByteRange) -> Int64 {
    generation += 1
    unclaimed.remove(range)
    var byteCount: Int64 = 0
    // Spilled bytes lie elsewhere.
    for run in spill?.extents.holes(in: range) ?? [range] {
      byteCount += version.forget(run)
      unverified.remove(run)
    }
    return byteCount
  }

  /// Takes the bytes in memory for absent.
  mutating func dropSpill() {
    guard spill != nil else { return }
    generation += 1
    version.dropSpill()
  }

  /// The location of the bytes of a woken read; nil if they must be verified first or are lost.
  mutating func locate(_ read: ParkedRead) -> LocatedBytes? {
    let range = version.clamped(read.range)
    guard let end = version.content.answerableEnd(of: range) else { return nil }
    let present = range.lowerBound..<end
    return mustVerify(present) ? nil : locate(present)
  }

  /// Looks up the replies and the writers that `actions` names.
  mutating func resolve(_ actions: VersionActions) -> VersionEffects {
    var effects = VersionEffects(actions: actions)
    for read in actions.wakes {
      guard let waiting = replies.take(read) else { continue }
      if let located = locate(read) {
        effects.woken.append(WokenRead(read: waiting, located: located))
      } else {
        effects.unready.append(waiting)
      }
    }
    effects.failed = actions.failures.compactMap { failure in
      replies.take(failure.read).map { ($0.reply, failure.error) }
    }
    effects.flushes = actions.flushes.compactMap { flushes[$0] }
    return effects
  }

  /// The location of the bytes of `range`, which are present; spilled ones are kept until the lease
  /// ends.
  mutating func locate(_ range: ByteRange) -> LocatedBytes {
    let cached = entry?.dataDescriptor ?? -1
    let spilled = spill?.extents.runs(in: range) ?? []
    var located = LocatedBytes(offset: range.lowerBound, cachedEnd: range.lowerBound)
    var position = range.lowerBound
    for run in spilled {
      if position < run.lowerBound {
        located.pieces.append(
          .init(descriptor: cached, byteCount: Int(run.lowerBound - position)))
        located.cachedEnd = run.lowerBound
      }
      located.pieces.append(
        .init(
          descriptor: spill?.file.descriptor.rawValue ?? -1, byteCount: Int(run.byteCount)))
      position = run.upperBound
    }
    if position < range.upperBound || spilled.isEmpty {
      located.pieces.append(
        .init(descriptor: cached, byteCount: Int(range.upperBound - position)))
      located.cachedEnd = range.upperBound
    }
    if located.cachedEnd > range.lowerBound { located.entry = entry }
    if !spilled.isEmpty { located.lease = version.beginLease(of: range) }
    return located
  }

  /// Whether all of `range` is present and lies in `entry`.
  func holds(_ range: ByteRange, in entry: CacheEntry) -> Bool {
    entry === self.entry && !version.isSuperseded && version.extents.holes(in: range).isEmpty
      && spill?.extents.overlaps(range) != true && !unverified.overlaps(range)
  }

  var writableEntry: (CacheEntry, generation: Int)? { entry.map { ($0, generation) } }

  /// Whether no handle is open, and no request or sync is under way.
  var isUnused: Bool {
    openCount == 0 && holdCount == 0 && storeCount == 0 && !checkpoint.isBusy && version.isUnused
  }

  /// Whether a later mount would miss some of the present bytes.
  var isPartlyUncached: Bool {
    spill.map { !$0.extents.isEmpty } ?? false || unrecordedCount > 0 || !unclaimed.isEmpty
  }

  /// Whether the record of the whole file still lacks a stamp that it could have.
  var awaitsFingerprint: Bool {
    // A stamp must come last in a record, so it waits for the checksum.
    if fileChecksum.isHashing { return false }
    guard let entry, version.isComplete, unverified.isEmpty, invalidated.isEmpty, spill == nil,
      unrecordedCount == 0, unclaimed.isEmpty,
      !isUncacheable, !version.isSuperseded,
      version.extents.byteCount >= FileSettings.minimumStampedByteCount
    else { return false }
    return entry.awaitsFingerprint
  }

  /// Whether bytes or a stamp are still to be written to the record.
  var awaitsRecord: Bool { (entry?.uncommittedByteCount ?? 0) > 0 || awaitsFingerprint }

  /// Queues a look for the entry if reads wait and it could not be opened before.
  ///
  /// - Returns: whether it did.
  mutating func queueLookAgain(now: ContinuousClock.Instant) -> Bool {
    guard isRecordUnread, hasRecord, entry == nil, !isUncacheable, !version.isSuperseded,
      !version.parked.isEmpty, !isLookQueued, lookCount == 0,
      lookedAt.map({ now - $0 >= CacheHealth.timeout }) ?? true
    else { return false }
    isLookQueued = true
    return true
  }

  /// Drops the entry with all its bytes; replies that read from it keep it open.
  ///
  /// - Returns: the entry, to be released after the lock.
  mutating func giveUpEntry() -> CacheEntry? {
    defer {
      entry = nil
      hasRecord = false
      invalidated = ExtentSet()
      setCached(ExtentSet(), believed: ExtentSet())
    }
    return entry
  }

  /// Takes the entry, to be closed after the lock, if it is not in use.
  ///
  /// An entry that awaits a commit or a stamp is only taken if its descriptors are needed; the next
  /// open then verifies the uncommitted bytes.
  mutating func takeIdleEntry(areDescriptorsShort: Bool) -> CacheEntry? {
    guard isUnused else { return nil }
    // Memory is for readers only.
    dropSpill()
    guard let entry, areDescriptorsShort || !awaitsRecord else { return nil }
    self.entry = nil
    version.forgetUnverified(0..<Int64.max)
    lastStamp = entry.dataStamp
    return entry
  }
}
