package import ExtentRecord
import Synchronization

/// A stamp in the record says that all bytes were as recorded when the data file was as it then was:
/// who finds it so again, under the same kernel, need not read them to know.
extension CacheEntry {
  /// What has become of a stamp.
  public enum StampOutcome: Sendable, Equatable {
    case stamped
    /// The data file was changed just now: it can be stamped after this time.
    case tooEarly(Duration)
    /// Somebody else has changed the data file, bytes are not committed, or nothing is recorded or
    /// shown by the file system.
    case impossible
  }

  /// How this object has left the data file; nil where somebody else has changed it, or nothing would
  /// show that.
  package var dataStamp: FileStamp? { state.withLock { $0.changes.last } }

  /// Whether the record lacks a stamp that it could have.
  public var awaitsStamp: Bool {
    if recording.isEnded { return false }
    return state.withLock { $0.canStamp }
  }

  /// Records that all bytes that the record claims are as it claims, if nobody else has changed the data
  /// file since the entry was opened; belongs to the writer.
  ///
  /// The caller has stored or verified all of them through this object, or through an earlier one
  /// that left the data file as this one found it (``dataStamp``). Nothing is synced: what a loss of power
  /// or a new mount of the file system leaves is not believed.
  ///
  /// - Parameter fetchedByteCount: the body bytes that have travelled for this entry in total, 0 or
  ///   more.
  /// - Returns: whether it is done, may be tried later, or will not do.
  /// - Throws: as ``store(_:at:)``; then it is not tried again.
  @discardableResult
  public func appendStamp(fetchedByteCount: Int64) throws(CacheError) -> StampOutcome {
    try appendStamp(fetchedByteCount: fetchedByteCount, now: SystemCalls.timeOfDay)
  }

  /// As ``appendStamp(fetchedByteCount:)``; `now` is the time of day since 1970.
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
    // Where the append fails, too: a reader has no need of the stamp.
    defer { state.withLock { $0.isStampSettled = true } }
    let record = LogRecord.commit(
      fetchedByteCount: fetchedByteCount, coveredSequence: sequence,
      stamp: stamp.digest(bootID: bootID, salt: salt))
    return try append(record) ? .stamped : .impossible
  }

  /// Lets no stamp of the entry hold any more: its bytes cannot be used, though nobody has changed them.
  public func distrust() { CacheDirectory.distrust(data) }

  /// Looks at the data file, for what the record may say of it.
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
