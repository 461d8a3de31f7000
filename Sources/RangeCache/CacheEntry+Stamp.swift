internal import ExtentRecord
package import LinuxSystem
import Synchronization

/// A stamp in the record says that all bytes were as recorded when the data file had that stamp. If
/// the file still has it under the same boot, the bytes need not be read again.
extension CacheEntry {
  /// The result of an attempt to append a stamp.
  public enum StampOutcome: Sendable, Equatable {
    case stamped
    /// The data file was changed a moment ago: it can be stamped after this time.
    case tooEarly(Duration)
    /// Something else has changed the data file, bytes are not committed, nothing is recorded any
    /// more, or the file system cannot show changes.
    case impossible
  }

  /// The stamp of the data file after this object's last change; nil once something else has
  /// changed it, or if the file system cannot show changes.
  package var dataStamp: FileStamp? { state.withLock { $0.changes.last } }

  /// Whether the record lacks a stamp that it could have.
  public var awaitsStamp: Bool {
    if recording.isEnded { return false }
    return state.withLock { $0.canStamp }
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
  public func appendStamp(fetchedByteCount: Int64) throws(CacheError) -> StampOutcome {
    try appendStamp(fetchedByteCount: fetchedByteCount, now: SystemCalls.timeOfDay)
  }

  /// Like ``appendStamp(fetchedByteCount:)``; `now` is the time of day since 1970.
  func appendStamp(
    fetchedByteCount: Int64, now: Duration
  ) throws(CacheError) -> StampOutcome {
    try checkSync()
    noteChanges { $0.look($1) }
    let (stamp, sequence) = state.withLock { ($0.canStamp ? $0.changes.last : nil, $0.sequence) }
    guard let stamp, let bootID = directory.bootID, fetchedByteCount >= 0 else {
      return .impossible
    }
    switch stamp.settling(at: now) {
    case .settled: break
    case .after(let delay): return .tooEarly(delay)
    case .never:
      state.withLock { $0.isStampSettled = true }
      return .impossible
    }
    // Also if the append fails: readers do not need the stamp.
    defer { state.withLock { $0.isStampSettled = true } }
    let record = LogRecord.commit(
      fetchedByteCount: fetchedByteCount, coveredSequence: sequence,
      stamp: stamp.digest(bootID: bootID, salt: salt))
    return try append(record) ? .stamped : .impossible
  }

  /// Invalidates every stamp of the entry: its bytes cannot be used although no program has changed
  /// them.
  public func distrust() { CacheDirectory.distrust(data) }

  /// Passes the current stamp of the data file to `changes`.
  func noteChanges(_ note: (inout ChangeWatch, FileStamp?) -> Void) {
    guard state.withLock({ $0.changes.last != nil }) else { return }
    let stamp = directory.stamp(of: data)
    state.withLock { note(&$0.changes, stamp) }
  }
}

extension CacheEntry.State {
  /// Whether a stamp could be appended and would say something new.
  var canStamp: Bool {
    !isStampSettled && changes.last != nil && failedSync == nil
      && storedByteCount == committedByteCount
  }
}
