internal import ExtentRecord
internal import HTTPTransferCore
internal import LinuxSystem
internal import RangeCache

/// What the lock of a version guards: its state, where its bytes lie, and who needs them there.
struct VersionHoldings {
  var version: VersionState
  /// Who is to be told what becomes of the reads that wait.
  var replies = ReplyTable()
  /// Has the writer of a segment hand over what has arrived and is not stored; on the network thread.
  typealias Flush = @Sendable () -> Void
  var flushes: [SegmentID: Flush] = [:]
  /// The cache entry: there while a handle is open, a request is in flight or bytes are not
  /// committed, so that idle files hold no descriptors.
  var entry: CacheEntry?
  /// Whether the record under the entry's name is of this version.
  var hasRecord: Bool
  /// Whether what the record says was taken for absent, because the entry could not be opened.
  var isRecordUnread = false
  /// Whether the disk has refused bytes that were not committed: the record is opened without them, once.
  var hasLostSync = false
  /// Whether the entry is not ours to write.
  var isUncacheable = false
  /// Whether a handle has asked for the entry, and the look for it has not begun.
  var isLookQueued = false
  /// What of the extents nobody has looked at since an earlier mount stored it: verified before it
  /// is used.
  var unverified: ExtentSet
  /// What of the record is known to be false, though it stays in the record.
  var refuted = ExtentSet()
  /// What lies in memory because the cache could not take it.
  var spill: Spill? { version.spill }
  /// Counts how often bytes were given up, in the entry or in memory, or the entry was replaced.
  ///
  /// The result of a store or of a hash that began under an earlier number is not believed.
  var generation = 0
  /// What is known of the whole's checksum, where the list has one.
  var wholeCheck = WholeCheck()
  /// How the data file was when the entry was let go of: what is known of its bytes holds while it is so.
  var lastStamp: FileStamp?
  var openCount = 0
  /// How many looks for the entry are under way, and when one last began.
  var lookCount = 0
  var lookedAt: ContinuousClock.Instant?
  /// How many others need the entry to stay at hand.
  var holdCount = 0
  /// How many pieces are present, and recorded only when the disk moves again.
  var unrecordedCount = 0
  /// What the entry holds of pieces that its record has refused: a later mount does not find it.
  var unclaimed = ExtentSet()
  /// How many runs of bytes are on their way to the entry.
  var storeCount = 0
  /// Since when no handle has been open.
  var unreadSince = ContinuousClock.now
  var checkpoint = CheckpointPhase()
  var fetchedByteCount: Int64

  /// Bytes that cannot be read are absent, until the entry is opened.
  mutating func forgetExtentsWithoutEntry() {
    guard entry == nil, version.content.isInCache else { return }
    if hasRecord { isRecordUnread = true }
    setCached(ExtentSet(), believed: ExtentSet())
  }

  /// Takes up what the record of `entry` says; `saysWhole` is whether it says that the whole has its checksum.
  mutating func noteRecord(of entry: CacheEntry, saysWhole: Bool) {
    if version.isComplete, saysWhole, wholeCheck.begin() { wholeCheck.succeed() }
    if !entry.recoveredExtents.isEmpty { wholeCheck.hasEarlierBytes = true }
  }

  /// Whether bytes of `range` are there of which nobody has looked at yet.
  func mustVerify(_ range: ByteRange) -> Bool { entry != nil && unverified.overlaps(range) }

  /// Makes `cached` what is present, beside what is spilled; of `believed` nobody has seen the
  /// bytes.
  ///
  /// Where that may add bytes, the caller wakes reads once it holds no other lock.
  mutating func setCached(_ cached: ExtentSet, believed: ExtentSet) {
    generation += 1
    unclaimed = ExtentSet()
    var cached = cached
    unverified = believed
    for extent in refuted.extents {
      cached.remove(extent)
      unverified.remove(extent)
    }
    version.setCached(cached)
    for extent in spill?.extents.extents ?? [] { unverified.remove(extent) }
  }

  /// Accepts a receipt for stored bytes.
  ///
  /// What has come by another way meanwhile stays where it is: it may be read there, and be known to
  /// be right.
  ///
  /// - Returns: what reads find at that place from now on; the caller marks it present.
  mutating func accept(_ receipt: StoreReceipt) -> [ByteRange] {
    let absent = version.absent(in: receipt.range)
    switch receipt.place {
    case .cache(let entry, let generation):
      guard entry === self.entry, generation == self.generation else { return [] }
      if !refuted.isEmpty { refuted.remove(receipt.range) }
      version.limitReadAhead(to: nil)
    case .memory(let file):
      guard file === spill?.file else { return [] }
      version.noteSpilled(absent)
    }
    return absent
  }

  /// Whether the bytes that `check` is about are still there.
  func isCurrent(_ check: PieceTable.Check) -> Bool {
    version.pieces?.isCurrent(check) == true
  }

  /// Marks what the entry holds of `range` as absent.
  ///
  /// - Returns: how many bytes of it were there.
  mutating func loseCached(_ range: ByteRange) -> Int64 {
    generation += 1
    unclaimed.remove(range)
    var byteCount: Int64 = 0
    // What is spilled lies elsewhere.
    for run in spill?.extents.holes(in: range) ?? [range] {
      byteCount += version.forget(run)
      unverified.remove(run)
    }
    return byteCount
  }

  /// Takes what lies in memory for absent.
  mutating func dropSpill() {
    guard spill != nil else { return }
    generation += 1
    version.dropSpill()
  }

  /// Where the bytes of a read are, which have come; nil if they must be verified first or are gone.
  mutating func locate(_ read: ParkedRead) -> LocatedBytes? {
    let range = version.clamped(read.range)
    guard let end = version.content.answerableEnd(of: range) else { return nil }
    let present = range.lowerBound..<end
    return mustVerify(present) ? nil : locate(present)
  }

  /// Finds the replies and the writers that `actions` names in the tables.
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

  /// The bytes of `range`, which are there; those that are spilled are kept until the lease ends.
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

  /// Whether all of `range` is present, and lies in `entry`.
  func holds(_ range: ByteRange, in entry: CacheEntry) -> Bool {
    entry === self.entry && !version.isSuperseded && version.extents.holes(in: range).isEmpty
      && spill?.extents.overlaps(range) != true && !unverified.overlaps(range)
  }

  var writableEntry: (CacheEntry, generation: Int)? { entry.map { ($0, generation) } }

  /// Whether no handle is open, and nothing is in flight or being synced.
  var isUnused: Bool {
    openCount == 0 && holdCount == 0 && storeCount == 0 && !checkpoint.isBusy && version.isUnused
  }

  /// Whether a later mount would not find all that is present.
  var isPartlyUncached: Bool {
    spill.map { !$0.extents.isEmpty } ?? false || unrecordedCount > 0 || !unclaimed.isEmpty
  }

  /// Whether the record of the whole file is still to say that all of its bytes were looked at.
  var awaitsStamp: Bool {
    // The stamp is the last word of a record.
    if wholeCheck.isHashing { return false }
    guard let entry, version.isComplete, unverified.isEmpty, refuted.isEmpty, spill == nil,
      unrecordedCount == 0, unclaimed.isEmpty,
      !isUncacheable, !version.isSuperseded,
      version.extents.byteCount >= FileSettings.leastStampedByteCount
    else { return false }
    return entry.awaitsStamp
  }

  /// Whether there is anything to be written to the record.
  var awaitsRecord: Bool { (entry?.uncommittedByteCount ?? 0) > 0 || awaitsStamp }

  /// Gives the entry up, and all that it holds; replies that read from it keep it open.
  ///
  /// - Returns: the entry, to be let go of after the lock.
  mutating func giveUpEntry() -> CacheEntry? {
    defer {
      entry = nil
      hasRecord = false
      refuted = ExtentSet()
      setCached(ExtentSet(), believed: ExtentSet())
    }
    return entry
  }

  /// Hands the entry out to be closed, after the lock, if nobody needs it any more; one with bytes that are
  /// to be committed, or with a stamp to come, only where its descriptors are needed: whoever opens it next
  /// verifies those.
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
