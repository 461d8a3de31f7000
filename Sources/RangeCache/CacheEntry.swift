public import ExtentRecord
import Glibc
public import HTTPTransferCore
internal import LinuxSystem
import Synchronization

/// The cached bytes of one version of a remote file: a sparse data file, and a record of the
/// extents that are present.
///
/// Threads: ``store(_:at:)``, ``recordCompleteLength(_:)``, ``appendCommit(_:fetchedByteCount:)``,
/// ``appendStamp(fetchedByteCount:)`` and ``releaseRecord()`` belong to the writer. The caller
/// ensures that there is one writer thread at a time. All other methods may be called from any
/// thread at any time, also while the writer works.
///
/// A checkpoint has three steps, so that the writer never waits for the disk:
/// ```swift
/// let checkpoint = try entry.syncData()                          // any thread
/// try entry.appendCommit(checkpoint, fetchedByteCount: fetched)  // the writer
/// try entry.syncRecord()                                         // any thread
/// ```
///
/// An entry that was replaced, removed, evicted or opened again stays usable: its descriptor stays
/// readable and ``store(_:at:)`` writes, but nothing is recorded any more.
///
/// Lock order: `state` is a leaf. Code that holds it must not call out or wait for the disk.
public final class CacheEntry: Sendable {
  /// The key of the entry.
  public let key: CacheKey

  /// The version of the bytes, as recorded when the entry was opened or created, with the complete
  /// length that was recorded last.
  public let recoveredVersion: ContentVersion

  /// The URL, without credentials, of the server that described the version; nil if unknown.
  public let definer: String?

  /// The extents that were present when the entry was opened.
  public let recoveredExtents: ExtentSet

  /// The part of ``recoveredExtents`` that was not read since it was committed.
  ///
  /// Verify it before its first use, see ``verify(_:)``.
  public let believedExtents: ExtentSet

  /// The number of body bytes fetched for this entry before it was opened: the last commit's figure
  /// plus the bytes stored since.
  public let recoveredFetchedByteCount: Int64

  /// Identifies the checksum that the whole file matched after the last store; 0 if none is
  /// recorded.
  private let recoveredChecksumMark: UInt64

  let directory: CacheDirectory
  let recording: Recording
  let data: Descriptor
  /// Identifies the data file.
  let dataID: UInt64
  let salt: UInt64
  /// The offset of the log in the record file.
  let logStart: Int64
  /// The number of the last record when the entry was opened.
  let recoveredSequence: UInt64
  let state: Mutex<State>

  /// The position and the results of the writer.
  struct State {
    /// The record file, while it is open.
    var record: Descriptor?
    /// The offset of the next record.
    var position: Int64
    /// The number of the last record written.
    var sequence: UInt64
    /// The bytes stored through this object, plus the uncommitted ones found when it was opened.
    var storedByteCount: Int64
    /// Whether the directories that lead to the record were synced.
    var areNamesDurable = false
    /// How many of `storedByteCount` a COMMIT covers.
    var committedByteCount: Int64 = 0
    /// Whether a sync of the record has failed.
    ///
    /// Its content may then never reach the disk, whatever a later sync reports: the next COMMIT
    /// goes to a copy.
    var isRecordLost = false
    /// The end of the data file after the opening or the writer's last change.
    var dataEnd: Int64
    /// The writes to the data file.
    var writes: WriteMarks
    /// The `errno` of the first failed write to the disk, as `fdatasync` or the kernel reported it.
    var failedSync: ErrorNumber?
    /// The claims to verify against; nil until needed.
    var claims: ClaimIndex?
    /// Whether something else has changed the data file since it was opened.
    var changes: ChangeWatch
    /// Whether the last record is a valid stamp, or no stamp can be written.
    var isStampSettled: Bool
  }

  /// Takes over the files of an entry.
  ///
  /// `isNew` says whether the data file was just created. `stamp` is the data file's stamp at its
  /// opening, and `isStamped` says whether the record has the same one. `record` is the record
  /// file, if it is already open; `position` is the offset of its next record, and `sequence` the
  /// number of its last record.
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
        // Earlier writes may still be lost.
        writes: WriteMarks(hasUnsynced: uncommittedByteCount > 0),
        changes: ChangeWatch(stamp), isStampSettled: isStamped))
  }

  /// The descriptor of the data file, for reading.
  ///
  /// Valid while this object exists; its `deinit` closes it.
  public var dataDescriptor: CInt { data.rawValue }

  /// The size of the data file (`fstat(2)`); nil if unknown.
  ///
  /// Bytes beyond it are lost, whatever the record says.
  public var dataByteCount: Int64? { try? SystemCalls.status(data.rawValue).byteCount }

  /// Whether the data file can be read at all: false if its file system was shut down.
  public var isReadable: Bool {
    var byte: [UInt8] = [0]
    return (try? SystemCalls.read(data.rawValue, into: &byte, at: 0)) != nil
  }

  /// The number of stored bytes that no commit covers yet.
  ///
  /// A loss of power may lose them.
  ///
  /// 0 once nothing is recorded any more.
  public var uncommittedByteCount: Int64 {
    if recording.isEnded { return 0 }
    return state.withLock { $0.storedByteCount - $0.committedByteCount }
  }

  /// Whether a COMMIT covers all bytes that were written or found uncommitted, and no `fdatasync`
  /// has failed.
  ///
  /// Only then may the kernel read the data file by itself, because no page is still to be written
  /// and can be lost.
  ///
  /// Also false once the recording has ended: bytes that are uncommitted by then stay so.
  public var isCommitted: Bool {
    state.withLock {
      $0.failedSync == nil && $0.storedByteCount == $0.committedByteCount
        && $0.writes.areSynced
    }
  }

  /// Whether the disk has refused written bytes.
  ///
  /// The kernel may have dropped them, and the data file then reads as zeros there.
  ///
  /// The kernel writes by itself, long before ``syncData()`` would report an error. Check this
  /// before reading bytes that no commit covers. Like a failure of ``syncData()``, a failure found
  /// here is final. Never waits for the disk.
  public var hasLostWrites: Bool {
    // Under the lock, because the kernel reports a failure once: a later commit must see it here.
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

  /// Whether a sync of the record has failed and no copy has replaced the record yet.
  public var isRecordLost: Bool { state.withLock { $0.isRecordLost } }

  /// The failure that ``hasLostWrites`` or ``syncData()`` found; nil if none.
  public var lostWrites: CacheError? {
    state.withLock { $0.failedSync }
      .map { CacheError(code: .syncFailed, path: path, errno: $0.rawValue) }
  }

  /// Whether bytes may be written to the data file.
  ///
  /// False after a failed sync, while another object that has the file open may still be read.
  public var isWritable: Bool { directory.isWritable(dataID) }

  // MARK: The writer

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
  public func store(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(CacheError) {
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
      // The damage was found before any program read these bytes.
      let range = ByteRange(offset: offset, byteCount: Int64(bytes.count))
      if believedExtents.overlaps(range) { _ = try FreeBlocks.giveBack(of: data, range) }
      // Write the data first, then the record that claims it.
      try SystemCalls.write(data.rawValue, bytes, at: offset)
    } catch {
      noteChanges { $0.changed($1) }
      throw CacheError(error, path: path)
    }
    state.withLock { $0.dataEnd = max($0.dataEnd, offset + Int64(bytes.count)) }
    noteChanges { $0.changed($1) }
  }

  /// The end of the data file, if something else has truncated it.
  ///
  /// Reported once; otherwise nil.
  ///
  /// The bytes beyond are lost. Ask before each ``store(_:at:)`` and ``write(_:at:)``, which would
  /// extend the file again, with zeros in between.
  public func noteCut() -> Int64? {
    guard let end = dataByteCount else { return nil }
    return state.withLock { state in
      guard end < state.dataEnd else { return nil }
      state.dataEnd = end
      return end
    }
  }

  /// Records that written bytes are present.
  ///
  /// - Parameters:
  ///   - range: their range; not empty.
  ///   - contentHash: their hash.
  /// - Throws: as ``store(_:at:)``.
  public func claim(_ range: ByteRange, contentHash: UInt64) throws(CacheError) {
    try checkSync()
    let extent = LogRecord.extent(
      offset: range.lowerBound, byteCount: range.byteCount, contentHash: contentHash)
    if try append(extent, storedByteCount: range.byteCount) {
      directory.noteStored(range.byteCount)
    }
  }

  /// Records the complete length, if it was unknown when the entry was created.
  ///
  /// - Parameter length: the length of the whole remote file in bytes, 0 or more.
  /// - Throws: as ``store(_:at:)``.
  public func recordCompleteLength(_ length: Int64) throws(CacheError) {
    guard length >= 0 else { throw CacheError(code: .invalidArgument, path: path) }
    try checkSync()
    _ = try append(.completeLength(length))
  }

  /// Records that the whole file, of `length` bytes, matched `checksum`.
  ///
  /// - Throws: as ``store(_:at:)``.
  public func recordChecksum(_ checksum: Checksum, length: Int64) throws(CacheError) {
    try checkSync()
    _ = try append(.completeLength(length, mark: mark(of: checksum)))
  }

  /// Whether the record says that the whole file matched `checksum`, and nothing was stored since.
  ///
  /// It tells of the entry as it was opened.
  public func isRecorded(_ checksum: Checksum) -> Bool {
    recoveredChecksumMark == mark(of: checksum)
  }

  private func mark(of checksum: Checksum) -> UInt64 {
    let text = Array(checksum.description.utf8)
    // 0 means no checksum.
    return max(1, text.withUnsafeBytes { ContentHash.hash($0, seed: salt) })
  }

  /// Records that the bytes that `checkpoint` covers are on the disk.
  ///
  /// - Parameters:
  ///   - checkpoint: the result of this object's ``syncData()``.
  ///   - fetchedByteCount: the number of body bytes received for this entry in total, 0 or more.
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

  /// Closes the record file until the next record, so that an idle entry needs only one descriptor.
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

  /// Waits until the records appended before this call are on the disk (`fdatasync(2)`).
  ///
  /// The first call also syncs the directories that lead to their files (`fsync(2)`).
  public func syncRecord() throws(CacheError) {
    guard !recording.isEnded, !isRecordLost else { return }
    // If the writer has released the record, open it for this call only: an idle entry stays idle.
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
      // With no committed bytes, the next checkpoint replaces the record by a copy.
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

  /// Appends a record; returns false if the recording has ended and nothing was written.
  func append(
    _ record: LogRecord, storedByteCount: Int64 = 0
  ) throws(CacheError) -> Bool {
    guard let descriptor = try openRecord() else { return false }
    let (position, sequence) = state.withLock { ($0.position, $0.sequence + 1) }
    let words = record.encoded(sequence: sequence, salt: salt)
    do throws(ErrorNumber) {
      // If this fails half-way, the next record goes to the same offset.
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

  /// Replaces a record that a failed sync may have lost by a copy.
  ///
  /// - Throws: ``CacheError/Code/syncFailed`` if the kernel has dropped what it could not write, so
  ///   that the record holds less than was stored. Otherwise the error of the file system; the
  ///   record is then unchanged.
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

  /// The record file, opened if needed; nil if the recording has ended.
  private func openRecord() throws(CacheError) -> Descriptor? {
    if recording.isEnded {
      releaseRecord()
      return nil
    }
    if let open = state.withLock({ $0.record }) { return open }
    guard let opened = try directory.openRecord(of: key, salt: salt) else {
      // Another program removed the files: continue as after a removal.
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
