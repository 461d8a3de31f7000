package import ExtentRecord
import Glibc
package import HTTPTransferCore
package import LinuxSystem

/// The cached bytes of one version of a remote file: a sparse data file, and a record of the
/// extents that are present.
///
/// Threads: ``store(_:at:)``, ``recordCompleteLength(_:)``, ``appendCommit(_:fetchedByteCount:)``,
/// ``appendFingerprint(fetchedByteCount:)`` and ``releaseRecord()`` belong to the writer. The
/// caller ensures that there is one writer thread at a time. All other methods may be called from
/// any thread at any time, also while the writer works.
///
/// A checkpoint has three steps, so that the writer never waits for the disk:
/// ```swift
/// let checkpoint = try entry.syncData()                          // any thread
/// try entry.appendCommit(checkpoint, fetchedByteCount: fetched)  // the writer
/// try entry.syncRecord()                                         // any thread
/// ```
///
/// An entry that was replaced, removed, evicted or opened again stays usable: its descriptor stays
/// readable and ``store(_:at:)`` writes, but it records no more.
package final class CacheEntry: Sendable {
  /// The key of the entry.
  package let key: CacheKey

  /// The version of the bytes, as recorded when the entry was opened or created, with the complete
  /// length that was recorded last.
  package let recoveredVersion: ContentVersion

  /// The URL, without credentials, of the server that described the version; nil if unknown.
  package let reference: String?

  /// The extents that were present when the entry was opened.
  package let recoveredExtents: ExtentSet

  /// The part of ``recoveredExtents`` that was not read since it was committed.
  ///
  /// Verify it before its first use, see ``verify(_:)``.
  package let believedExtents: ExtentSet

  /// The number of body bytes fetched for this entry before it was opened: the last commit's figure
  /// plus the bytes stored since.
  package let recoveredFetchedByteCount: Int64

  /// The checksum that the whole file matched after the last store, when the entry was opened.
  let checksumMark: ChecksumMark

  private let salt: UInt64
  let data: EntryData
  private let record: EntryRecord
  private let claims: RecoveredClaims
  private let stamps: DataStamps
  private let allocated: AllocatedBytes
  private let folder: EntryFolder

  /// Adopts the files of an entry.
  ///
  /// - Parameters:
  ///   - found: the content of the files.
  ///   - data: the data file.
  ///   - isNewData: whether it was just created.
  ///   - record: the record file, if it is already open.
  ///   - context: shared by all entries.
  init(
    _ found: FoundEntry, data: Descriptor, isNewData: Bool = false, record: Descriptor? = nil,
    context: CacheContext
  ) {
    let header = found.header
    self.data = EntryData(
      data, header: header, isNew: isNewData, hasUnsynced: found.uncommittedByteCount > 0,
      stamp: found.stamp, context: context)
    self.record = EntryRecord(
      record, header: header, end: found.end, uncommittedByteCount: found.uncommittedByteCount,
      isStamped: found.isStamped, context: context)
    claims = RecoveredClaims(header: header, end: found.end, context: context)
    stamps = context.stamps
    allocated = context.allocated
    folder = context.folder(of: header.key)
    key = header.key
    salt = header.salt
    recoveredVersion = header.version
    reference = header.reference
    recoveredExtents = found.extents
    believedExtents = found.believed
    recoveredFetchedByteCount = found.fetchedByteCount
    checksumMark = ChecksumMark(rawValue: found.checksumMark, salt: salt)
  }

  /// The descriptor of the data file, for reading.
  ///
  /// Valid while this object exists; its `deinit` closes it.
  package var dataDescriptor: CInt { data.file.rawValue }

  /// The size of the data file (`fstat(2)`); nil if unknown.
  ///
  /// Bytes beyond it are lost, whatever the record says.
  package var dataByteCount: Int64? { data.byteCount }

  /// Whether the data file can be read: false if its file system was shut down.
  package var isReadable: Bool { data.isReadable }

  /// The number of stored bytes that no commit covers yet.
  ///
  /// A loss of power may lose them.
  ///
  /// 0 once the recording has ended.
  package var uncommittedByteCount: Int64 { record.uncommittedByteCount }

  /// Whether a COMMIT covers all bytes that were written or found uncommitted, and no `fdatasync`
  /// has failed.
  ///
  /// Only then may the kernel read the data file directly, because no unwritten page can be lost.
  ///
  /// It is also false once the recording has ended: bytes that are uncommitted by then stay so.
  package var isCommitted: Bool { data.isSynced && record.isCommitted }

  /// Whether the disk has refused written bytes.
  ///
  /// The kernel may have dropped them, and the data file then reads as zeros there.
  ///
  /// The kernel writes pages long before ``syncData()`` would report an error. Check this before
  /// reading bytes that no commit covers. Like a failure of ``syncData()``, a failure found here is
  /// final. Never waits for the disk.
  package var hasLostWrites: Bool { data.hasLostWrites }

  /// Whether a sync of the record has failed and no copy has replaced the record yet.
  package var isRecordLost: Bool { record.isLost }

  /// The failure that ``hasLostWrites`` or ``syncData()`` found; nil if none.
  package var lostWrites: CacheError? { data.lostWrites }

  /// Whether bytes may be written to the data file.
  ///
  /// False after a failed sync, while another object that has the file open may still be read.
  package var isWritable: Bool { data.isWritable }

  // MARK: Writer

  /// Writes `bytes` to the data file at `offset`, then records the extent.
  ///
  /// When this returns, the bytes survive the death of the process. They survive a loss of power
  /// after the next commit, or if their hash proves them right. The bytes must belong to
  /// ``recoveredVersion``. Allocates nothing.
  ///
  /// - Parameters:
  ///   - bytes: the bytes to store.
  ///   - offset: the offset of the first byte in the remote file, 0 or more.
  /// - Throws: the error of the file system, or ``CacheError/Code/syncFailed`` after a failed sync.
  ///   The extent then is not recorded; the entry can still be used.
  package func store(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
    guard !bytes.isEmpty else { return }
    try write(bytes, at: offset)
    try claim(
      ByteRange(offset: offset, byteCount: Int64(bytes.count)),
      contentHash: ContentHash.hash(bytes))
  }

  /// Writes `bytes` to the data file at `offset` without recording them.
  ///
  /// They are not present before ``claim(_:contentHash:)``.
  ///
  /// - Parameters:
  ///   - bytes: the bytes to write.
  ///   - offset: the offset of the first byte in the remote file, 0 or more.
  /// - Throws: as ``store(_:at:)``.
  /// - Precondition: ``isWritable``.
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
    guard (0...Int64.maximumFileOffset - Int64(bytes.count)).contains(offset) else {
      throw CacheError(code: .invalidArgument, path: folder.path)
    }
    try data.write(bytes, at: offset, present: recoveredExtents, believed: believedExtents)
  }

  /// The end of the data file, if something else has truncated it.
  ///
  /// Reported once; otherwise nil.
  ///
  /// The bytes beyond are lost. Ask before each ``store(_:at:)`` and ``write(_:at:)``, which would
  /// extend the file again, with zeros in between.
  package func recordCut() -> Int64? { data.recordCut() }

  /// Records that written bytes are present.
  ///
  /// - Parameters:
  ///   - range: their range; not empty.
  ///   - contentHash: their hash.
  /// - Throws: as ``store(_:at:)``.
  package func claim(_ range: ByteRange, contentHash: UInt64) throws(CacheError) {
    try data.checkSync()
    let extent = LogRecord.extent(
      offset: range.lowerBound, byteCount: range.byteCount, contentHash: contentHash)
    if try record.append(extent, storedByteCount: range.byteCount) {
      allocated.recordStored(range.byteCount)
    }
  }

  /// Records the complete length, if it was unknown when the entry was created.
  ///
  /// - Parameter length: the length of the whole remote file in bytes, 0 or more.
  /// - Throws: as ``store(_:at:)``.
  package func recordCompleteLength(_ length: Int64) throws(CacheError) {
    guard (0...Int64.maximumFileOffset).contains(length) else {
      throw CacheError(code: .invalidArgument, path: folder.path)
    }
    try data.checkSync()
    _ = try record.append(.completeLength(length))
  }

  /// Records that the whole file, of `length` bytes, matched `checksum`.
  ///
  /// - Throws: as ``store(_:at:)``.
  package func recordChecksum(_ checksum: Checksum, length: Int64) throws(CacheError) {
    try data.checkSync()
    _ = try record.append(
      .completeLength(length, mark: ChecksumMark.value(of: checksum, salt: salt)))
  }

  /// Whether the record says that the whole file matched `checksum`, and no bytes were stored
  /// since.
  ///
  /// The answer is that of the record when the entry was opened.
  package func isRecorded(_ checksum: Checksum) -> Bool {
    checksumMark.is(checksum)
  }

  /// Records that the bytes that `checkpoint` covers are on the disk.
  ///
  /// - Parameters:
  ///   - checkpoint: the result of this object's ``syncData()``.
  ///   - fetchedByteCount: the number of body bytes received for this entry in total, 0 or more.
  /// - Throws: as ``store(_:at:)``.
  package func appendCommit(
    _ checkpoint: Checkpoint, fetchedByteCount: Int64
  ) throws(CacheError) {
    guard fetchedByteCount >= 0, checkpoint.entry == ObjectIdentifier(self) else {
      throw CacheError(code: .invalidArgument, path: folder.path)
    }
    try data.checkSync()
    if record.isLost {
      if try !record.renew() { data.recordFailure(ErrorNumber(rawValue: EIO)) }
      try data.checkSync()
    }
    let commit = LogRecord.commit(
      fetchedByteCount: fetchedByteCount, coveredSequence: checkpoint.sequence)
    guard try record.append(commit) else { return }
    data.recordSync(since: checkpoint.writes)
    record.recordCommitted(checkpoint.storedByteCount)
  }

  /// Closes the record file until the next append, so that an idle entry needs only one descriptor.
  package func releaseRecord() { record.release() }

  // MARK: Called on any thread

  /// Waits until all bytes stored before this call are on the disk (`fdatasync(2)`).
  ///
  /// A failure is final for this object: every later call of the writer throws
  /// ``CacheError/Code/syncFailed``, because the kernel may have dropped bytes that it could not
  /// write. Release the object and open the entry with ``UncommittedExtents/discard``, or replace
  /// it.
  package func syncData() throws(CacheError) -> Checkpoint {
    try data.checkSync()
    let (sequence, storedByteCount) = record.progress
    let writes = try data.sync()
    return Checkpoint(
      entry: ObjectIdentifier(self), sequence: sequence, storedByteCount: storedByteCount,
      writes: writes)
  }

  /// Waits until the records appended before this call are on the disk (`fdatasync(2)`).
  ///
  /// The first call also syncs the directories that lead to their files (`fsync(2)`).
  package func syncRecord() throws(CacheError) { try record.sync() }

  // MARK: Fingerprints

  // A stamp in the record says that all bytes were as recorded when the data file had that stamp.
  // If the file still has it under the same boot, the bytes need not be read again.

  /// The result of an attempt to append a stamp.
  package enum StampOutcome: Sendable, Equatable {
    case stamped
    /// The data file was changed a moment ago: it can be stamped after this time.
    case tooEarly(Duration)
    /// Something else has changed the data file, bytes are not committed, the recording has ended,
    /// or the file system cannot show changes.
    case impossible
  }

  /// The stamp of the data file after this object's last change; nil once something else has
  /// changed it, or if the file system cannot show changes.
  package var dataStamp: FileFingerprint? { data.stamp }

  /// Whether the record lacks a stamp that it could have.
  package var awaitsFingerprint: Bool {
    !record.hasEnded && record.lacksStamp && data.soundStamp != nil
  }

  /// Appends a stamp, which says that all bytes are as the record claims.
  ///
  /// Does so only if nothing else has changed the data file since the entry was opened. Only the
  /// writer may call it.
  ///
  /// The caller has stored or verified all bytes through this object, or through an earlier one
  /// whose last stamp (``dataStamp``) this object found when it opened the file. Nothing is synced:
  /// after a loss of power or a new mount of the file system, the stamp no longer matches.
  ///
  /// - Parameter fetchedByteCount: the number of body bytes received for this entry in total, 0 or
  ///   more.
  /// - Returns: whether the stamp was appended, may be tried later, or is impossible.
  /// - Throws: as ``store(_:at:)``; it is then not tried again.
  @discardableResult
  package func appendFingerprint(fetchedByteCount: Int64) throws(CacheError) -> StampOutcome {
    try appendFingerprint(fetchedByteCount: fetchedByteCount, now: ProcessCalls.timeOfDay)
  }

  /// Like ``appendFingerprint(fetchedByteCount:)``; `now` is the time of day since 1970.
  func appendFingerprint(
    fetchedByteCount: Int64, now: Duration
  ) throws(CacheError) -> StampOutcome {
    try data.checkSync()
    data.lookForChanges()
    guard record.lacksStamp, let stamp = data.soundStamp, fetchedByteCount >= 0,
      let digest = stamps.digest(of: stamp, salt: salt)
    else { return .impossible }
    switch stamp.settling(at: now) {
    case .settled: break
    case .after(let delay): return .tooEarly(delay)
    case .never:
      record.settleStamp()
      return .impossible
    }
    // Also if the append fails: readers do not need the stamp.
    defer { record.settleStamp() }
    let commit = LogRecord.commit(
      fetchedByteCount: fetchedByteCount, coveredSequence: record.progress.sequence,
      stamp: digest)
    return try record.append(commit) ? .stamped : .impossible
  }

  /// Invalidates every stamp of the entry: its bytes cannot be used although no program has changed
  /// them.
  package func invalidateFingerprint() { DataStamps.invalidateFingerprint(data.file) }

  // MARK: Verification

  /// The result of verifying cached bytes.
  package struct Verification: Sendable {
    /// The bytes with the recorded hash.
    package var intact = ExtentSet()
    /// The bytes that have another hash, cannot be read, or have no record.
    package var damaged = ExtentSet()

    package init() {}
  }

  /// Reads the blocks that hold the bytes of `range` and compares them with their recorded hashes.
  ///
  /// Call it for bytes of ``believedExtents`` before their first use, because a disk may have
  /// changed them since they were committed. It verifies blocks as they were stored, so the result
  /// may reach beyond `range`. It reads the disk, and at the first call the whole record.
  ///
  /// - Parameter range: the bytes that are about to be used.
  /// - Returns: which bytes are intact and which must not be used; both together contain all of
  ///   `range`.
  /// - Throws: if the record cannot be read; nothing is then known.
  package func verify(_ range: ByteRange) throws(CacheError) -> Verification {
    var result = Verification()
    var verifier = ExtentVerifier(data: data.file)
    var invalidated: [ByteRange] = []
    for claim in try claims.claims(about: range) {
      let isIntact = verifier.matches(
        offset: claim.range.lowerBound, byteCount: claim.range.byteCount,
        contentHash: claim.contentHash)
      if isIntact { result.intact.insert(claim.range) } else { invalidated.append(claim.range) }
    }
    for range in invalidated + [range] {
      for hole in result.intact.holes(in: range) { result.damaged.insert(hole) }
    }
    return result
  }
}
