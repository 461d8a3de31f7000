import ExtentRecord
import LinuxSystem
import Synchronization

/// The record of an entry, to which one entry object appends while it has the right to record.
///
/// ``append(_:storedByteCount:)``, ``renew()`` and ``release()`` belong to the writer.
///
/// Lock order: `state` is a leaf. Code that holds it must not call out or wait for the disk.
final class EntryRecord: Sendable {
  private let folder: EntryFolder
  private let salt: UInt64
  private let recordings: RecordLeases
  private let recording: RecordLease
  private let state: Mutex<State>

  private struct State {
    /// The record file, while it is open.
    var file: Descriptor?
    var end: LogEnd
    /// The bytes claimed through this object, plus the uncommitted ones found when it was opened.
    var storedByteCount: Int64
    /// How many of `storedByteCount` a COMMIT covers.
    var committedByteCount: Int64 = 0
    /// Whether the directories that lead to the record were synced.
    var areNamesDurable = false
    /// Whether a sync of the record has failed.
    ///
    /// Its content may then never reach the disk, whatever a later sync reports: the next COMMIT
    /// goes to a copy.
    var isLost = false
    /// Whether the last record is a valid stamp, or no stamp can be written.
    var isStampSettled: Bool
  }

  /// Begins the recording of the entry.
  ///
  /// - Parameters:
  ///   - file: the record file, if it is already open.
  ///   - header: its header.
  ///   - end: the end of its log.
  ///   - uncommittedByteCount: the bytes that it claims and no COMMIT covers.
  ///   - isStamped: whether it holds the current stamp of the data file.
  ///   - context: shared by all entries.
  init(
    _ file: Descriptor?, header: RecordHeader, end: LogEnd, uncommittedByteCount: Int64,
    isStamped: Bool, context: CacheContext
  ) {
    folder = context.folder(of: header.key)
    salt = header.salt
    recordings = context.recordings
    recording = recordings.begin(header.key)
    state = Mutex(
      State(
        file: file, end: end, storedByteCount: uncommittedByteCount, isStampSettled: isStamped))
  }

  deinit { recordings.remove(recording, of: folder.key) }

  // MARK: Coverage

  /// Whether the recording has ended.
  var hasEnded: Bool { recording.isEnded }

  /// The bytes that no COMMIT covers yet; 0 once the recording has ended.
  var uncommittedByteCount: Int64 {
    if hasEnded { return 0 }
    return state.withLock { $0.storedByteCount - $0.committedByteCount }
  }

  /// Whether a COMMIT covers all bytes, even if the recording has ended.
  var isCommitted: Bool { state.withLock { $0.storedByteCount == $0.committedByteCount } }

  /// Whether a sync of the record has failed and no copy has replaced it yet.
  var isLost: Bool { state.withLock { $0.isLost } }

  /// Whether a stamp would add information to the record.
  var lacksStamp: Bool {
    state.withLock { !$0.isStampSettled && $0.storedByteCount == $0.committedByteCount }
  }

  /// Records that no stamp is needed before the next other record.
  func settleStamp() { state.withLock { $0.isStampSettled = true } }

  /// The number of the last record, and the bytes stored up to it.
  var progress: (sequence: UInt64, storedByteCount: Int64) {
    state.withLock { ($0.end.sequence, $0.storedByteCount) }
  }

  /// Records an appended COMMIT for `storedByteCount`.
  func recordCommitted(_ storedByteCount: Int64) {
    state.withLock { $0.committedByteCount = max($0.committedByteCount, storedByteCount) }
  }

  // MARK: File

  /// Appends a record; returns false, without writing, if the recording has ended.
  func append(_ record: LogRecord, storedByteCount: Int64 = 0) throws(CacheError) -> Bool {
    guard let file = try open() else { return false }
    let end = state.withLock { $0.end }
    let words = record.encoded(sequence: end.sequence + 1, salt: salt)
    do throws(ErrorNumber) {
      // If this fails half-way, the next record goes to the same offset.
      try withUnsafeBytes(of: words) { bytes throws(ErrorNumber) in
        try SystemCalls.write(file.rawValue, bytes, at: end.position)
      }
    } catch {
      throw CacheError(error, path: folder.path)
    }
    state.withLock {
      $0.end = end.next
      $0.storedByteCount += storedByteCount
      $0.isStampSettled = false
    }
    return true
  }

  /// Replaces a record that a failed sync may have lost by a copy.
  ///
  /// - Returns: false if the kernel has dropped pages that it could not write, so that the record
  ///   holds less than was appended.
  /// - Throws: the error of the file system; the record is then unchanged.
  func renew() throws(CacheError) -> Bool {
    guard let file = try open() else { return true }
    let sequence = state.withLock { $0.end.sequence }
    let copy: Descriptor?
    do throws(ErrorNumber) {
      copy = try folder.copyRecord(file, recordCount: sequence)
    } catch {
      throw CacheError(error, path: folder.path)
    }
    guard let copy else { return false }
    state.withLock { state in
      state.file = copy
      state.isLost = false
    }
    return true
  }

  /// Closes the file until the next append.
  func release() {
    // The descriptor is closed after the lock is released.
    let released = state.withLock { state in
      defer { state.file = nil }
      return state.file
    }
    _ = consume released
  }

  /// Waits until the records appended before this call are on the disk (`fdatasync(2)`), and at the
  /// first call also the directories that lead to the file (`fsync(2)`).
  func sync() throws(CacheError) {
    guard !hasEnded, !isLost else { return }
    // If the writer has released the record, open it for this call only: an idle entry stays idle.
    var open = state.withLock { $0.file }
    if open == nil { open = try folder.openRecord(salt: salt) }
    guard let file = open else { return }
    do throws(ErrorNumber) {
      try SystemCalls.syncData(file.rawValue)
      if !state.withLock({ $0.areNamesDurable }) {
        try folder.syncNames()
        state.withLock { $0.areNamesDurable = true }
      }
    } catch {
      // With no committed bytes, the next checkpoint replaces the record by a copy.
      state.withLock {
        $0.isLost = true
        $0.committedByteCount = 0
      }
      throw CacheError(error, path: folder.path)
    }
  }

  /// The file, opened if needed; nil if the recording has ended.
  private func open() throws(CacheError) -> Descriptor? {
    if hasEnded {
      release()
      return nil
    }
    if let open = state.withLock({ $0.file }) { return open }
    guard let opened = try folder.openRecord(salt: salt) else {
      // Another program removed the files: continue as after a removal.
      recording.end()
      return nil
    }
    return state.withLock { state in
      if let other = state.file { return other }
      state.file = opened
      return opened
    }
  }
}
