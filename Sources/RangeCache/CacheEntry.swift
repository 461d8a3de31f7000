public import ExtentRecord
import Glibc
public import HTTPTransferCore
import Synchronization

/// The cached bytes of one version of a remote file: a sparse data file and the record of what of
/// it is present.
///
/// Threads: ``store(_:at:)``, ``recordCompleteLength(_:)``, ``appendCommit(_:fetchedByteCount:)``,
/// ``appendStamp(fetchedByteCount:)`` and ``releaseRecord()`` belong to the writer: one thread at a time, which the caller sees to.
/// Everything else may be called from any thread at any time, also while the writer works.
///
/// A checkpoint has three steps, so that the writer never waits for the disk:
/// ```swift
/// let checkpoint = try entry.syncData()                          // any thread
/// try entry.appendCommit(checkpoint, fetchedByteCount: fetched)  // the writer
/// try entry.syncRecord()                                         // any thread
/// ```
///
/// An entry that has been replaced, removed, evicted or opened again goes on: its descriptor stays
/// readable and ``store(_:at:)`` writes, but nothing is recorded any more.
///
/// Lock order: `state` is a leaf; nothing is called while it is held, and nothing waits for the disk.
public final class CacheEntry: Sendable {
  /// What the entry is filed under.
  public let key: CacheKey

  /// The version that the bytes belong to, as recorded when the entry was opened or created; the
  /// complete length is the one recorded last.
  public let recoveredVersion: ContentVersion

  /// Which of the file's servers has described the version, as its URL without credentials; nil where it is
  /// not known.
  public let definer: String?

  /// The extents that were present when the entry was opened.
  public let recoveredExtents: ExtentSet

  /// Those of ``recoveredExtents`` whose bytes nobody has looked at since they were committed: to be
  /// verified before their first use, see ``verify(_:)``.
  public let believedExtents: ExtentSet

  /// The number of body bytes fetched for this entry before it was opened: the last commit's
  /// figure and the bytes stored since.
  public let recoveredFetchedByteCount: Int64

  /// What names the checksum that the whole was found to have when it was last stored to; 0 where that is
  /// not recorded.
  private let recoveredChecksumMark: UInt64

  let directory: CacheDirectory
  let recording: Recording
  let data: Descriptor
  /// What names the data file.
  let dataID: UInt64
  let salt: UInt64
  /// Where the log starts in the record file.
  let logStart: Int64
  /// The number of the last record when the entry was opened.
  let recoveredSequence: UInt64
  let state: Mutex<State>

  /// Where the writer stands.
  struct State {
    /// The record file, while it is open.
    var record: Descriptor?
    /// Where the next record goes.
    var position: Int64
    /// The number of the record written last.
    var sequence: UInt64
    /// The bytes stored through this object, and those found uncommitted when it was opened.
    var storedByteCount: Int64
    /// Whether the directories that lead to the record have been synced.
    var areNamesDurable = false
    /// Those of `storedByteCount` that a COMMIT covers.
    var committedByteCount: Int64 = 0
    /// Whether a sync of the record has failed.
    ///
    /// What it says may never come to the disk, whatever a later sync tells: the next COMMIT goes to a
    /// copy.
    var isRecordLost = false
    /// Where the data file ends, as the opening or the writer has left it.
    var dataEnd: Int64
    /// The writes to the data file.
    var writes: WriteMarks
    /// The `errno` of the first write to the disk that failed, as `fdatasync` or the kernel tells it.
    var failedSync: ErrorNumber?
    /// The claims to verify by; nil until the first of them is needed.
    var claims: ClaimIndex?
    /// Whether somebody else has changed the data file since it was opened.
    var changes: ChangeWatch
    /// Whether the last record is a stamp that holds, or none can be written.
    var isStampSettled: Bool
  }

  /// Takes over the files of an entry.
  ///
  /// `isNew` says whether the data file was just created; `stamp` is how the data file was when it was opened; `isStamped`, whether the record says so, too;
  /// `record` is the record file, if it is open already; `position`, where its next record goes;
  /// `sequence`, the number of its last record.
  init(
    directory: CacheDirectory, header: RecordHeader, extents: ExtentSet, believed: ExtentSet,
    fetchedByteCount: Int64, uncommittedByteCount: Int64, data: Descriptor, isNew: Bool = false,
    stamp: FileStamp?, isStamped: Bool, checksumMark: UInt64 = 0, record: Descriptor?,
    position: Int64,
    sequence: UInt64
  ) {
    recoveredChecksumMark = checksumMark
    self.directory = directory
    self.data = data
    dataID = header.dataID
    directory.beginUse(ofData: dataID, isNew: isNew)
    key = header.key
    recording = directory.beginRecording(of: header.key)
    salt = header.salt
    recoveredVersion = header.version
    definer = header.definer
    recoveredExtents = extents
    believedExtents = believed
    recoveredFetchedByteCount = fetchedByteCount
    logStart = position - Int64(sequence) * Int64(LogRecord.byteCount)
    recoveredSequence = sequence
    state = Mutex(
      State(
        record: record, position: position, sequence: sequence,
        storedByteCount: uncommittedByteCount,
        dataEnd: (try? SystemCalls.status(data.rawValue).byteCount) ?? 0,
        // What was written before may still be lost.
        writes: WriteMarks(hasUnsynced: uncommittedByteCount > 0),
        changes: ChangeWatch(stamp), isStampSettled: isStamped))
  }

  /// The descriptor of the data file, for reading.
  ///
  /// Valid while the object lives; closed by its `deinit`.
  public var dataDescriptor: CInt { data.rawValue }

  /// The size of the data file: bytes beyond it are lost, whatever the record says (`fstat(2)`); nil
  /// where that cannot be told.
  public var dataByteCount: Int64? { try? SystemCalls.status(data.rawValue).byteCount }

  /// Whether the data file can be read at all: not, where its file system has been shut down.
  public var isReadable: Bool {
    var byte: [UInt8] = [0]
    return (try? SystemCalls.read(data.rawValue, into: &byte, at: 0)) != nil
  }

  /// The bytes stored that no commit covers yet: what a power loss would put at risk.
  ///
  /// None, once nothing is recorded any more.
  public var uncommittedByteCount: Int64 {
    if recording.isEnded { return 0 }
    return state.withLock { $0.storedByteCount - $0.committedByteCount }
  }

  /// Whether a COMMIT covers all that was written or found uncommitted, and no `fdatasync` has
  /// failed.
  ///
  /// Only then may the kernel read the data file by itself: it cannot lose pages that are still to
  /// be written.
  ///
  /// False also once the recording has ended: bytes not committed by then never will be.
  public var isCommitted: Bool {
    state.withLock {
      $0.failedSync == nil && $0.storedByteCount == $0.committedByteCount
        && $0.writes.areSynced
    }
  }

  /// Whether the disk has refused bytes that were written: the kernel may have dropped them, and then
  /// the data file reads as zeros there.
  ///
  /// The kernel writes by itself, long before ``syncData()`` would tell. Asked before bytes are read
  /// that no commit covers. A failure that it finds is final, like one of ``syncData()``.
  /// Never waits for the disk.
  public var hasLostWrites: Bool {
    // Under the lock, since the kernel tells it once: a commit that comes later sees it here.
    let (hasLost, isNews) = state.withLock { state -> (Bool, Bool) in
      if state.failedSync != nil { return (true, false) }
      guard !state.writes.areSynced else { return (false, false) }
      do throws(ErrorNumber) {
        try SystemCalls.checkWriteback(data.rawValue)
        return (false, false)
      } catch {
        state.failedSync = error
        return (true, true)
      }
    }
    if isNews { directory.noteLoss(inData: dataID) }
    return hasLost
  }

  /// Whether a sync of the record has failed, and no copy has taken its place yet.
  public var isRecordLost: Bool { state.withLock { $0.isRecordLost } }

  /// What ``hasLostWrites`` or ``syncData()`` has found; nil while all is well.
  public var lostWrites: CacheError? {
    state.withLock { $0.failedSync }
      .map { CacheError(code: .syncFailed, path: path, errno: $0.rawValue) }
  }

  /// Whether bytes may be written to the data file: not, after a failed sync, while another object that is
  /// open on it is still read.
  public var isWritable: Bool { directory.isWritable(dataID) }

  // MARK: The writer

  /// Writes `bytes` to the data file at `offset`, then records the extent.
  ///
  /// When this returns, the bytes survive the death of the process; they survive a loss of power
  /// after the next commit, or if their hash proves them right. The bytes must belong to
  /// ``recoveredVersion``. Nothing is allocated.
  ///
  /// - Parameters:
  ///   - bytes: what to store.
  ///   - offset: the place of the first byte in the remote file, 0 or more.
  /// - Throws: what the file system says, ``CacheError/Code/syncFailed`` after a failed sync. The
  ///   extent then is not recorded; the entry can still be used.
  public func store(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
    guard !bytes.isEmpty else { return }
    try write(bytes, at: offset)
    try claim(
      ByteRange(offset: offset, byteCount: Int64(bytes.count)),
      contentHash: ContentHash.hash(bytes))
  }

  /// Writes `bytes` to the data file at `offset` and records nothing: nobody is to take them for present
  /// before ``claim(_:contentHash:)``.
  ///
  /// - Parameters:
  ///   - bytes: what to write.
  ///   - offset: the place of the first byte in the remote file, 0 or more.
  /// - Throws: as ``store(_:at:)``.
  /// - Precondition: ``isWritable``.
  public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
    guard offset >= 0, !offset.addingReportingOverflow(Int64(bytes.count)).overflow else {
      throw CacheError(code: .invalidArgument, path: path)
    }
    try checkSync()
    noteChanges { $0.look($1) }
    state.withLock { $0.writes.begin() }
    defer { state.withLock { $0.writes.end() } }
    do throws(ErrorNumber) {
      try directory.settle(data, dataID, present: recoveredExtents)
      // It was found to be damaged, before anybody got it.
      let range = ByteRange(offset: offset, byteCount: Int64(bytes.count))
      if believedExtents.overlaps(range) { _ = try FreeBlocks.giveBack(of: data, range) }
      // Data first, then the record that claims it.
      try SystemCalls.write(data.rawValue, bytes, at: offset)
    } catch {
      noteChanges { $0.changed($1) }
      throw CacheError(error, path: path)
    }
    state.withLock { $0.dataEnd = max($0.dataEnd, offset + Int64(bytes.count)) }
    noteChanges { $0.changed($1) }
  }

  /// Where the data file ends, if somebody else has cut it: told once, and nil otherwise.
  ///
  /// What was beyond is lost. Asked before each ``store(_:at:)`` and ``write(_:at:)``, which would make
  /// the file long again, with zeros in between.
  public func noteCut() -> Int64? {
    guard let end = dataByteCount else { return nil }
    return state.withLock { state in
      guard end < state.dataEnd else { return nil }
      state.dataEnd = end
      return end
    }
  }

  /// Records that bytes that have been written are present.
  ///
  /// - Parameters:
  ///   - range: which; not empty.
  ///   - contentHash: what they hash to.
  /// - Throws: as ``store(_:at:)``.
  public func claim(_ range: ByteRange, contentHash: UInt64) throws(CacheError) {
    try checkSync()
    let extent = LogRecord.extent(
      offset: range.lowerBound, byteCount: range.byteCount, contentHash: contentHash)
    if try append(extent, storedByteCount: range.byteCount) {
      directory.noteStored(range.byteCount)
    }
  }

  /// Records the complete length, where it was unknown when the entry was created.
  ///
  /// - Parameter length: the number of bytes of the whole remote file, 0 or more.
  /// - Throws: as ``store(_:at:)``.
  public func recordCompleteLength(_ length: Int64) throws(CacheError) {
    guard length >= 0 else { throw CacheError(code: .invalidArgument, path: path) }
    try checkSync()
    _ = try append(.completeLength(length))
  }

  /// Records that the whole, of `length` bytes, was found to hash to `checksum`.
  ///
  /// - Throws: as ``store(_:at:)``.
  public func recordChecksum(_ checksum: Checksum, length: Int64) throws(CacheError) {
    try checkSync()
    _ = try append(.completeLength(length, mark: mark(of: checksum)))
  }

  /// Whether the record says that the whole was found to hash to `checksum`, and nothing was stored since.
  ///
  /// Of what was there when the entry was opened.
  public func isRecorded(_ checksum: Checksum) -> Bool {
    recoveredChecksumMark == mark(of: checksum)
  }

  private func mark(of checksum: Checksum) -> UInt64 {
    let text = Array(checksum.description.utf8)
    // 0 says nothing.
    return max(1, text.withUnsafeBytes { ContentHash.hash($0, seed: salt) })
  }

  /// Records that what `checkpoint` covers is on the disk.
  ///
  /// - Parameters:
  ///   - checkpoint: what ``syncData()`` of this same object returned.
  ///   - fetchedByteCount: the body bytes that have travelled for this entry in total, 0 or more.
  /// - Throws: as ``store(_:at:)``.
  public func appendCommit(
    _ checkpoint: Checkpoint, fetchedByteCount: Int64
  ) throws(CacheError) {
    guard fetchedByteCount >= 0, checkpoint.entry == ObjectIdentifier(self) else {
      throw CacheError(code: .invalidArgument, path: path)
    }
    try checkSync()
    if isRecordLost { try renewRecord() }
    let commit = LogRecord.commit(
      fetchedByteCount: fetchedByteCount, coveredSequence: checkpoint.sequence)
    guard try append(commit) else { return }
    state.withLock {
      $0.committedByteCount = max($0.committedByteCount, checkpoint.storedByteCount)
      $0.writes.noteSync(since: checkpoint.writes)
    }
  }

  /// Closes the record file until something is recorded again, so that an idle entry holds one
  /// descriptor only.
  public func releaseRecord() {
    // The descriptor is closed after the lock is released.
    let released = state.withLock { state in
      defer { state.record = nil }
      return state.record
    }
    _ = consume released
  }

  // MARK: Any thread

  /// Waits until all bytes stored before this call are on the disk (`fdatasync(2)`).
  ///
  /// A failure is final for this object: every later call of the writer throws
  /// ``CacheError/Code/syncFailed``, because the kernel may have dropped what it could not write.
  /// Release the object and open the entry with ``UncommittedExtents/discard``, or replace it.
  public func syncData() throws(CacheError) -> Checkpoint {
    try checkSync()
    let checkpoint = state.withLock {
      Checkpoint(
        entry: ObjectIdentifier(self), sequence: $0.sequence, storedByteCount: $0.storedByteCount,
        writes: $0.writes.mark)
    }
    do throws(ErrorNumber) {
      try SystemCalls.syncData(data.rawValue)
    } catch {
      state.withLock { if $0.failedSync == nil { $0.failedSync = error } }
      directory.noteLoss(inData: dataID)
      throw CacheError(code: .syncFailed, path: path, errno: error.rawValue)
    }
    return checkpoint
  }

  /// Waits until the records appended before this call are on the disk (`fdatasync(2)`), the first
  /// time with the names of the files that hold them (`fsync(2)` of the directories).
  public func syncRecord() throws(CacheError) {
    guard !recording.isEnded, !isRecordLost else { return }
    // Opened for this call alone where the writer has released it: an idle entry stays idle.
    var open = state.withLock { $0.record }
    if open == nil { open = try directory.openRecord(of: key, salt: salt) }
    guard let record = open else { return }
    do throws(ErrorNumber) {
      try SystemCalls.syncData(record.rawValue)
      if !state.withLock({ $0.areNamesDurable }) {
        try directory.syncNames(of: key)
        state.withLock { $0.areNamesDurable = true }
      }
    } catch {
      // With nothing committed, the next checkpoint puts a copy in the record's place.
      state.withLock {
        $0.isRecordLost = true
        $0.committedByteCount = 0
      }
      throw CacheError(error, path: path)
    }
  }

  // MARK: The record

  var path: String { directory.path(of: key) }

  func checkSync() throws(CacheError) {
    if let failure = lostWrites { throw failure }
  }

  /// Appends a record; false where the recording has ended and nothing was written.
  func append(
    _ record: LogRecord, storedByteCount: Int64 = 0
  ) throws(CacheError) -> Bool {
    guard let descriptor = try openRecord() else { return false }
    let (position, sequence) = state.withLock { ($0.position, $0.sequence + 1) }
    let words = record.encoded(sequence: sequence, salt: salt)
    do throws(ErrorNumber) {
      // Where this fails half-way, the next record goes to the same place.
      try withUnsafeBytes(of: words) { bytes throws(ErrorNumber) in
        try SystemCalls.write(descriptor.rawValue, bytes, at: position)
      }
    } catch {
      throw CacheError(error, path: path)
    }
    state.withLock {
      $0.position = position + Int64(LogRecord.byteCount)
      $0.sequence = sequence
      $0.storedByteCount += storedByteCount
      $0.isStampSettled = false
    }
    return true
  }

  /// Puts a copy in the place of a record that a failed sync may have lost.
  ///
  /// - Throws: ``CacheError/Code/syncFailed`` where the kernel has dropped what it could not write:
  ///   the record then holds less than was stored. Otherwise what the file system says, and the record
  ///   stays as it is.
  private func renewRecord() throws(CacheError) {
    guard let record = try openRecord() else { return }
    let sequence = state.withLock { $0.sequence }
    let copy: Descriptor?
    do throws(ErrorNumber) {
      copy = try directory.copyRecord(record, of: key, recordCount: sequence)
    } catch {
      throw CacheError(error, path: path)
    }
    state.withLock { state in
      if let copy {
        state.record = copy
        state.isRecordLost = false
      } else if state.failedSync == nil {
        state.failedSync = ErrorNumber(rawValue: EIO)
      }
    }
    try checkSync()
  }

  /// The record file, opened if it is not; nil where the recording has ended.
  private func openRecord() throws(CacheError) -> Descriptor? {
    if recording.isEnded {
      releaseRecord()
      return nil
    }
    if let open = state.withLock({ $0.record }) { return open }
    guard let opened = try directory.openRecord(of: key, salt: salt) else {
      // The files were taken away from outside: go on as after a removal.
      recording.end()
      return nil
    }
    return state.withLock { state in
      if let other = state.record { return other }
      state.record = opened
      return opened
    }
  }

  deinit {
    let isSynced = state.withLock { $0.writes.areSynced }
    directory.endUse(ofData: dataID, isSynced: isSynced)
    directory.endRecording(recording, of: key)
  }
}
