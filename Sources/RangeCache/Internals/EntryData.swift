import ExtentRecord
import HTTPTransferCore
import LinuxSystem
import Synchronization

/// The data file of an entry, as one entry object has it open.
///
/// ``write(_:at:present:believed:)`` belongs to the writer.
///
/// Lock order: `state` is a leaf. Code that holds it must not call out or wait for the disk.
final class EntryData: Sendable {
  let file: Descriptor
  /// Identifies the data file.
  let id: UInt64
  private let folder: EntryFolder
  private let blocks: BlockTable
  private let stamps: DataStamps
  private let state: Mutex<State>

  private struct State {
    /// The end of the file after the opening or the writer's last change.
    var end: Int64
    var writes: WriteMarks
    /// The `errno` of the first failed write to the disk, as `fdatasync` or the kernel reported it.
    var failure: ErrorNumber?
    /// Whether something else has changed the file since it was opened.
    var changes: ChangeWatch
  }

  /// Takes the data file of an entry.
  ///
  /// - Parameters:
  ///   - file: the data file.
  ///   - header: the header of its record.
  ///   - isNew: whether it was just created.
  ///   - hasUnsynced: whether writes of an earlier object may still be lost.
  ///   - stamp: its stamp at its opening.
  ///   - context: shared by all entries.
  init(
    _ file: Descriptor, header: RecordHeader, isNew: Bool, hasUnsynced: Bool,
    stamp: FileFingerprint?,
    context: CacheContext
  ) {
    self.file = file
    id = header.dataID
    folder = context.folder(of: header.key)
    blocks = context.blocks
    stamps = context.stamps
    blocks.beginUse(of: id, isNew: isNew)
    state = Mutex(
      State(
        end: (try? SystemCalls.status(file.rawValue).byteCount) ?? 0,
        writes: WriteMarks(hasUnsynced: hasUnsynced), changes: ChangeWatch(stamp)))
  }

  deinit {
    blocks.endUse(of: id, isSynced: state.withLock { $0.writes.areSynced })
  }

  // MARK: File

  /// The size of the file (`fstat(2)`); nil if unknown.
  var byteCount: Int64? { try? SystemCalls.status(file.rawValue).byteCount }

  /// Whether the file can be read: false if its file system was shut down.
  var isReadable: Bool {
    var byte: [UInt8] = [0]
    return (try? SystemCalls.read(file.rawValue, into: &byte, at: 0)) != nil
  }

  /// Whether bytes may be written; see ``DataBlocks/isWritable``.
  var isWritable: Bool { blocks.isWritable(id) }

  /// Writes `bytes` at `offset`, in a file that has held `present` since its opening, `believed` of
  /// it unread.
  func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int64, present: ExtentSet, believed: ExtentSet
  ) throws(CacheError) {
    try checkSync()
    recordChanges { $0.look($1) }
    state.withLock { $0.writes.begin() }
    defer { state.withLock { $0.writes.end() } }
    do throws(ErrorNumber) {
      try blocks.settle(file, id, present: present)
      // The damage was found before any program read these bytes.
      let range = ByteRange(offset: offset, byteCount: Int64(bytes.count))
      if believed.overlaps(range) { _ = try FreeBlocks.giveBack(of: file, range) }
      // Write the data first, then the record that claims it.
      try SystemCalls.write(file.rawValue, bytes, at: offset)
    } catch {
      recordChanges { $0.changed($1) }
      throw CacheError(error, path: folder.path)
    }
    state.withLock { $0.end = max($0.end, offset + Int64(bytes.count)) }
    recordChanges { $0.changed($1) }
  }

  /// The end of the file, if something else has truncated it; reported once.
  func recordCut() -> Int64? {
    guard let end = byteCount else { return nil }
    return state.withLock { state in
      guard end < state.end else { return nil }
      state.end = end
      return end
    }
  }

  // MARK: On disk

  /// Whether all writes are known to be on the disk and none has failed.
  var isSynced: Bool { state.withLock { $0.failure == nil && $0.writes.areSynced } }

  /// Whether the disk has refused written bytes; never waits for it.
  var hasLostWrites: Bool {
    // Under the lock, because the kernel reports a failure once: a later commit must see it here.
    let (hasLost, isNews) = state.withLock { state -> (Bool, Bool) in
      if state.failure != nil { return (true, false) }
      guard !state.writes.areSynced else { return (false, false) }
      do throws(ErrorNumber) {
        try SystemCalls.checkWriteback(file.rawValue)
        return (false, false)
      } catch {
        state.failure = error
        return (true, true)
      }
    }
    if isNews { blocks.recordLoss(in: id) }
    return hasLost
  }

  /// The failure that ``hasLostWrites`` or ``sync()`` found; nil if none.
  var lostWrites: CacheError? {
    state.withLock { $0.failure }
      .map { CacheError(code: .syncFailed, path: folder.path, errno: $0.rawValue) }
  }

  func checkSync() throws(CacheError) {
    if let failure = lostWrites { throw failure }
  }

  /// Records that written bytes were lost, unless that is already known.
  func recordFailure(_ number: ErrorNumber) {
    state.withLock { if $0.failure == nil { $0.failure = number } }
  }

  /// Waits until all bytes written before this call are on the disk (`fdatasync(2)`).
  ///
  /// - Returns: which writes these are; ``recordSync(since:)`` takes it once they are committed.
  func sync() throws(CacheError) -> WriteMarks.Mark {
    let mark = state.withLock { $0.writes.mark }
    do throws(ErrorNumber) {
      try SystemCalls.syncData(file.rawValue)
    } catch {
      recordFailure(error)
      blocks.recordLoss(in: id)
      throw CacheError(code: .syncFailed, path: folder.path, errno: error.rawValue)
    }
    return mark
  }

  func recordSync(since mark: WriteMarks.Mark) {
    state.withLock { $0.writes.recordSync(since: mark) }
  }

  // MARK: External changes

  /// The stamp after this object's last change; nil once something else has changed the file, or if
  /// the file system cannot show changes.
  var stamp: FileFingerprint? { state.withLock { $0.changes.last } }

  /// The same stamp; also nil after a lost write.
  var soundStamp: FileFingerprint? { state.withLock { $0.failure == nil ? $0.changes.last : nil } }

  /// Checks whether something else has changed the file.
  func lookForChanges() { recordChanges { $0.look($1) } }

  /// Passes the current stamp of the file to `changes`.
  private func recordChanges(_ note: (inout ChangeWatch, FileFingerprint?) -> Void) {
    guard stamp != nil else { return }
    let current = stamps.stamp(of: file)
    state.withLock { note(&$0.changes, current) }
  }
}
